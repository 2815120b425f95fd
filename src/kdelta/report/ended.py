# SPDX-License-Identifier: GPL-2.0-or-later
"""What is told where two kernels cannot be compared: the figure of the one that ran, how the other ended, and why."""

from __future__ import annotations

from collections.abc import Sequence

from kdelta.model import UNBOOTED, CellResult
from kdelta.report.figures import absolute
from kdelta.units import finite

_PANIC = "Kernel panic"  # kernel/panic.c


def word(cell: CellResult) -> str:
    """The verdict, the state where there is none, or "descriptive"."""
    return cell.verdict or ("descriptive" if cell.state == "ok" else UNBOOTED if cell.unbooted else cell.state)


def before(cells: Sequence[CellResult]) -> str:
    """What stands below the baseline: its figure, or how it ended; "-" where that is not known."""
    value = next((cell.baseline for cell in cells if finite(cell.baseline) is not None), None)
    if value is None:
        booted = [cell for cell in cells if cell.patched_label and not cell.unbooted]
        ended = next((cell.sides[0] for cell in booted), "ok")
        if ended != "ok":
            return ended
    return absolute(value, cells[0].unit, cells[0].metric)


def after(cell: CellResult) -> str:
    """What stands below the patched kernel of a cell without effect."""
    if cell.patched_label and finite(cell.patched) is not None:
        return absolute(cell.patched, cell.unit, cell.metric)
    if cell.unbooted:
        return "not yet"
    return cell.state if cell.sides[1] == "ok" else cell.sides[1]


def why(cell: CellResult) -> str:
    """State and reason of a cell without a figure, the state once: a verdict's reason begins with label and state."""
    if f": {cell.state}" in cell.why:
        return cell.why.removeprefix(f"{cell.patched_label}: ").removeprefix(f"{cell.baseline_label}: ")
    return ": ".join(filter(None, (cell.state, cell.why)))


def panics(cells: Sequence[CellResult]) -> dict[str, str]:
    """What patched kernels said when they panicked, by label."""
    found: dict[str, str] = {}
    for cell in cells:
        _, begin, said = cell.why.partition(_PANIC)
        if cell.state == "panicked" and said:
            found.setdefault(cell.patched_label, begin + said)
    return found
