# SPDX-License-Identifier: GPL-2.0-or-later
"""``kdelta export``: one experiment as one file, for another person to report."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from kdelta.cli import _output, _stores
from kdelta.cli._say import say
from kdelta.model import plans
from kdelta.units import counted

_EPILOG = """\b
Examples:
  kdelta export last                        writes ID.kdelta here
  kdelta export 7c1f -o pidfd.kdelta
  kdelta import pidfd.kdelta                on the other machine
"""


@click.command(epilog=_EPILOG)
@click.argument("experiment")
@_output.output_option("The file. Default: ID.kdelta")
def command(experiment: str, output: Path | None) -> None:
    """Write an EXPERIMENT (its id, the beginning of it, or last) as one file.

    The file holds everything that was kept: samples, histograms, profiles, consoles, facts about the host, paths of the
    kernels. Look at it as you would at a log before you send it.
    """

    with _stores.reading() as store:
        found = store.experiment(experiment).id
        path = output or Path(f"{found}.kdelta")
        store.export(found, path)
        boots = len(store.done(found))
        plan = store.experiment(found).plan
        counts, traced = plans.counted_by(plan), plans.traced_beside(plan)
    size_mb = path.stat().st_size / 1e6
    say(
        f"{path}: {found}, {counted(boots, 'boot')}, {size_mb:.2f} MB; read it with: kdelta import {shlex.quote(str(path))}"
    )
    if counts:
        say(f"the counts that explain its times are an experiment of their own: kdelta export {counts}", err=True)
    if traced:
        say(f"the exact holds beside it are an experiment of their own: kdelta export {traced}", err=True)
