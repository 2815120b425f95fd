# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta code: what differs in the machine code of two kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdelta.cli import _kernels, _output
from kdelta.cli.progress import Reporter
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.attribution.code import CodeDiff
    from kdelta.model import Kernel

EPILOG = """\b
Examples:
  kdelta code src:debian:6.12 src:debian:6.12+my.patch
  kdelta code src:debian:6.12 src:debian:6.12+my.patch pipe_write
  kdelta code debian:6.18 debian:7.0 link_path_walk

Without FUNCTION: the functions that differ, in the style of the kernel's bloat-o-meter. A distribution's kernels have no
symbol table, so their functions reach from one kallsyms name to the next, their variables go by the section that they
are in, and only sizes are compared.
"""


@click.command(epilog=EPILOG)
@click.argument("baseline")
@click.argument("patched")
@click.argument("function", required=False)
@click.option("--limit", type=click.IntRange(1, 100_000), default=40, show_default=True, help="Functions to list.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON: every function that differs.")
@_output.output_option("Write to a file.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
def command(
    baseline: str, patched: str, function: str | None, limit: int, as_json: bool, output: Path | None, quiet: bool
) -> int:
    """Compare the machine code of two kernels, or of one FUNCTION of them."""
    from kdelta.attribution import code, images

    if function and as_json:
        raise UserError("--json lists functions; one function is shown as a diff of its listing")
    with Reporter(quiet) as reporter:
        kernels = _kernels.fetched(_kernels.named([baseline, patched]), reporter)
        if len(kernels) != 2:
            raise UserError("code compares two kernels; a range is several")
        reporter.step("reading the machine code")
        before, after = images.alike(*map(images.image_of, kernels))
    if function:
        text = code.function_diff(before, after, function) or f"{function}: no instruction differs\n"
    else:
        diff, whole = images.compare(before, after)
        text = _json(kernels, diff, whole) if as_json else _text(diff, whole, limit)
    _output.write(text, output)
    return 0


def _text(diff: CodeDiff, whole: bool, limit: int) -> str:
    from kdelta.attribution import code

    if whole:
        return code.summary(diff, limit)
    note = "sizes between kallsyms symbols; changes that keep a size are not detected\n"
    return (code.summary(diff, limit) if diff.functions else "no function differs in size\n") + note


def _json(kernels: tuple[Kernel, ...], diff: CodeDiff, whole: bool) -> str:
    import msgspec

    document = {
        "schema": "kdelta-code/1",
        "kernels": [{"label": kernel.label, "release": kernel.release} for kernel in kernels],
        "compared": "instructions" if whole else "sizes",
        "identical": diff.identical if whole else None,
        "total_before": diff.total_before,
        "total_after": diff.total_after,
        "functions": diff.functions,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
