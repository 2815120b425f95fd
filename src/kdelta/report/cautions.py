# SPDX-License-Identifier: GPL-2.0-or-later
"""What the answer says beside verdicts on counts: what operations wait for, what is done later, what grows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kdelta.model import CellResult
from kdelta.results.warnings import BusyWaits, CancelsOut, Grows, Idles, PutsOff
from kdelta.units import counted, percent


def of(cells: Sequence[CellResult]) -> tuple[str, ...]:
    """A sentence for each thing that figures do not say, "" where there is nothing to say."""
    return (_nothing(cells), _cancels(cells), _waits(cells), _busy(cells), _delays(cells), _grows(cells))


def _nothing(cells: Sequence[CellResult]) -> str:
    """That no case executes anything of the kernel, so that none can differ."""
    figures = [(cell.baseline, cell.patched) for cell in cells if cell.metric == "instructions"]
    nothing = bool(figures) and all(one == (0.0, 0.0) for one in figures)
    return "Nothing of the kernel is executed: figures are 0 whatever changes" if nothing else ""


def _cancels(cells: Sequence[CellResult]) -> str:
    """In how many cases the same is a sum of what is less and what is more, and the largest of these."""
    found = [warning for cell in cells for warning in cell.warnings if isinstance(warning, CancelsOut)]
    if not found:
        return ""
    most = max(found, key=lambda one: min(abs(one.fewer[0].percent), one.more[0].percent))
    such = ", ".join(f"{one.name} {percent(one.percent)}" for one in (most.fewer[0], most.more[0]))
    return f"In {counted(len(found), 'case')} system calls that cost less cancel out others that cost more ({such})"


def _waits(cells: Sequence[CellResult]) -> str:
    """In how many cases operations wait otherwise, more often first."""
    found = [warning for cell in cells for warning in cell.warnings if isinstance(warning, Idles)]
    more, less = sum(one.more for one in found), sum(not one.more for one in found)
    if not found:
        return ""
    words = ((more, "more often"), (less, "less often"))
    told = " and ".join(f"{word} in {counted(count, 'case')}" for count, word in words if count)
    return f"Operations wait {told}: for how long, counts do not tell"


def _busy(cells: Sequence[CellResult]) -> str:
    found = sum(isinstance(warning, BusyWaits) for cell in cells for warning in cell.warnings)
    return f"In {counted(found, 'case')} part of the change is a loop that waits by the clock" if found else ""


def _delays(cells: Sequence[CellResult]) -> str:
    putting = [cell for cell in cells if any(isinstance(warning, PutsOff) for warning in cell.warnings)]
    found = [cell.verdict for cell in putting if cell.verdict != "regressed"]
    so = "part of the gain may be a delay" if "improved" in found else "it may cost more than is told"
    return f"In {counted(len(found), 'case')} more is left to be done later: {so}" if found else ""


def _grows(cells: Sequence[CellResult]) -> str:
    """In how many cases a patched kernel does more each time, where the baseline does not."""
    growing = [(cell, {k for k, _ in w.kernels}) for cell in cells for w in cell.warnings if isinstance(w, Grows)]
    found = sum(cell.patched_label in labels and cell.baseline_label not in labels for cell, labels in growing)
    return f"In {counted(found, 'case')} each repetition costs more than the one before" if found else ""
