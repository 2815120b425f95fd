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
  kdelta findings -o docs/findings.md

kdelta publish has the same on its page "Findings".
"""


@click.command(epilog=EPILOG)
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--most", "-n", type=click.IntRange(1), default=20, show_default=True, help="How many steps.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@_output.output_option("Write to a file.")
def command(experiments: tuple[str, ...], most: int, quiet: bool, output: Path | None) -> None:
    """Write the largest steps of the sweeps EXPERIMENT (all stored ones) with what is behind them, as Markdown."""
    from kdelta.cli.progress import Reporter
    from kdelta.report import findings as page
    from kdelta.results import findings
    from kdelta.store.store import Store

    with Store() as store, Reporter(quiet) as progress:
        progress.step("reading the stored sweeps")
        read, wrong = findings.swept(store, experiments)
    _output.write(page.markdown(findings.largest(read, most), read), output)
    for line in wrong:
        say(f"left out: {line}")
