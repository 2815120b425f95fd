# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta findings: the largest steps of stored sweeps, as a page."""

from __future__ import annotations

from pathlib import Path

import click

from kdelta.cli import _output
from kdelta.cli._say import say

EPILOG = """\b
Examples:
  kdelta findings                        of all stored sweeps, the twenty largest steps
  kdelta findings last -n 5              of one
  kdelta findings --tree ./linux -o docs/findings.md

With --tree, a git tree of the kernel with its tags, each finding also tells the commits between the two releases that
change the functions behind it.

kdelta publish has the same on its page "Findings".
"""


@click.command(epilog=EPILOG)
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--most", "-n", type=click.IntRange(1), default=20, show_default=True, help="How many steps.")
@click.option("--tree", metavar="DIRECTORY", help="A git tree of the kernel, in which the changes are looked up.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@_output.output_option("Write to a file.")
def command(experiments: tuple[str, ...], most: int, tree: str | None, quiet: bool, output: Path | None) -> None:
    """Write the largest steps of the sweeps EXPERIMENT (all stored ones) with what is behind them, as Markdown."""
    from kdelta.cli.progress import Reporter
    from kdelta.kernel import history
    from kdelta.report import findings as page
    from kdelta.results import findings
    from kdelta.store.store import Store

    if tree is not None:
        history.commit(tree, "HEAD")
    with Store() as store, Reporter(quiet) as progress:
        progress.step("reading the stored sweeps")
        read, wrong = findings.swept(store, experiments)
        found = findings.largest(read, most)
        if tree is not None:
            found = findings.with_changes(found, tree, lambda what: progress.step(f"commits that change {what}"))
    _output.write(page.markdown(found, read), output)
    for line in wrong:
        say(f"left out: {line}")
