# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta publish: the store as a directory of web pages, for any web host."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdelta import distributions
from kdelta.cli import _stores
from kdelta.cli._say import say
from kdelta.errors import HostError, UserError
from kdelta.units import counted

if TYPE_CHECKING:
    from kdelta.errors import KdeltaError

EPILOG = """\b
Examples:
  kdelta publish site/                      all experiments, as kdelta serve shows them
  kdelta publish site/ && rsync -a --delete site/ host:public_html/

Consoles of guests, command lines and notes are on the pages. What needs a server (filters
typed by a reader, comparisons across experiments) is left out.
"""
_LIST = ".kdelta-site"  # in the directory: which files are ours, and may be replaced


@click.command(epilog=EPILOG)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
def command(directory: Path, quiet: bool) -> None:
    """Write the stored experiments to DIR as web pages that need no server."""
    from kdelta.cli.progress import Reporter

    try:
        from kdelta.serve import site
        from kdelta.serve.app import create_app
        from kdelta.serve.guard import Access
    except ModuleNotFoundError as error:
        raise HostError(f"kdelta publish needs {error.name}: {distributions.extra('serve')}") from None

    before = _ours(directory)
    _begin(directory)
    lost: list[str] = []

    def failed(address: str, error: KdeltaError) -> None:
        lost.append(f"{address}: {error}")

    written: list[str] = []
    with _stores.reading() as store, Reporter(quiet) as reporter:
        count = len(store.experiments())
        title = f"making the pages of {counted(count, 'experiment')}"
        reporter.step(title)
        app = create_app(store, Access(), lambda _: None)

        def told(made: int, expected: int | None) -> None:
            reporter.step(title if expected else f"{title}: {made} are made", made, expected)

        for file in site.files(app, failed, told):
            _write(directory, file.name, file.content)
            written.append(file.name)
    _write(directory, _LIST, "".join(f"{name}\n" for name in sorted(written)).encode())
    for name in before - set(written):
        (directory / name).unlink(missing_ok=True)
    say(f"{directory}: {len(written)} files; open {shlex.quote(str(directory / 'index.html'))}")
    if lost:
        raise HostError(f"{len(lost)} pages could not be made and say so; the first is {lost[0]}")


def _ours(directory: Path) -> set[str]:
    """The files that an earlier run left in ``directory``.

    Raises:
        UserError: there are other things in it.
    """
    listed = directory / _LIST
    if listed.is_file():
        names = set(listed.read_text(encoding="utf-8").splitlines())
        return {name for name in names if name and not name.startswith("/") and ".." not in name.split("/")}
    if directory.is_dir() and any(directory.iterdir()):
        raise UserError(f"{directory} has other files in it: name a new directory, or one that kdelta published to")
    return set()


def _begin(directory: Path) -> None:
    """Make ``directory`` ours before minutes of work.

    Raises:
        UserError: it cannot be made or written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / _LIST).open("a").close()
    except OSError as error:
        raise UserError(f"{directory}: cannot be written ({error.strerror}); name a directory of yours") from None


def _write(directory: Path, name: str, content: bytes) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
