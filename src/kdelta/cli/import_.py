# SPDX-License-Identifier: GPL-2.0-or-later
"""``kdelta import``: take in an experiment that another person exported."""

from __future__ import annotations

from pathlib import Path

import click

from kdelta.cli import _stores
from kdelta.cli._say import say
from kdelta.units import counted

_EPILOG = """\b
Examples:
  kdelta import pidfd.kdelta
  KDELTA_STORE=sqlite:///theirs.sqlite kdelta import pidfd.kdelta
"""


@click.command(name="import", epilog=_EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
def command(file: Path) -> None:
    """Store the experiment in FILE, as kdelta export wrote it.

    The checksum is verified first; all of it is stored or nothing. Again, it adds only boots that are not there yet.

    What it names (QEMU, images, directories, trees) is shown in reports and never used: kdelta resume says how to go on.
    """

    with _stores.writing(lambda text: say(text, err=True)) as store:
        done = store.import_(file)
    if not done.created and not done.added:
        say(f"{done.id}: already in the store with all its boots; nothing was changed")
        return
    here = f", {done.present} already present" if done.present else ""
    say(f"{done.id}: {counted(done.added, 'boot')} added{here}; show it with: kdelta report {done.id}")
