# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta findings: the largest steps of stored sweeps, as a page."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdelta.cli import _output, _stores
from kdelta.cli._say import say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kdelta.kernel.rewrites import Source
    from kdelta.model import Kernel, Progress

EPILOG = """\b
Examples:
  kdelta findings                        of all stored sweeps, the twenty largest steps
  kdelta findings last -n 5              of one
  kdelta findings --sources -o docs/findings.md
  kdelta findings --tree ./linux

With --sources each finding also tells what changed in the text of the functions behind it, where Debian's archive has
the sources of both kernels. They are fetched once: 160 MB a kernel, of which 60 MB are kept.

With --tree, a git tree of the kernel with its tags, each finding also tells the commits between the two releases that
change the functions behind it.

kdelta publish has the same on its page "Findings", with sources where they were fetched before.
"""


@click.command(epilog=EPILOG)
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--most", "-n", type=click.IntRange(1), default=20, show_default=True, help="How many steps.")
@click.option("--tree", metavar="DIRECTORY", help="A git tree of the kernel, in which the changes are looked up.")
@click.option("--sources", is_flag=True, help="Look the changes up in Debian's kernel sources.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@_output.output_option("Write to a file.")
def command(
    experiments: tuple[str, ...], most: int, tree: str | None, sources: bool, quiet: bool, output: Path | None
) -> None:
    """Write the largest steps of the sweeps EXPERIMENT (all stored ones) with what is behind them, as Markdown."""
    from kdelta.cli.progress import Reporter
    from kdelta.kernel import history
    from kdelta.report import findings as page
    from kdelta.results import findings

    if tree is not None:
        history.commit(tree, "HEAD")
    with _stores.reading() as store, Reporter(quiet) as progress:
        if not experiments and not store.experiments(kind="sweep"):
            raise UserError(f"no sweep is stored yet; {findings.MADE_BY}")
        progress.step("reading the stored sweeps")
        read, wrong = findings.swept(store, experiments)
        found = findings.largest(read, most)
        if tree is not None:
            found = findings.with_changes(found, tree, lambda what: progress.step(f"commits that change {what}"))
        if sources:
            found = findings.with_rewrites(found, _fetching(progress))
    _output.write(page.markdown(found, read), output)
    for line in wrong:
        say(f"left out: {line}")


def _fetching(progress: Progress) -> Callable[[Kernel], Source | None]:
    """The source of a kernel, fetched where Debian's archive has it; each kernel without one is told once."""
    from kdelta.kernel import excerpts

    @cache
    def of_version(version: str, release: str) -> Source | None:
        try:
            return excerpts.fetched(version, progress)
        except UserError as error:
            progress.note(f"{release}: {error}")
            return None

    def of_kernel(kernel: Kernel) -> Source | None:
        version = excerpts.version_of(kernel)
        return of_version(version, kernel.release) if version else None

    return of_kernel
