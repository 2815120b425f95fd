# SPDX-License-Identifier: GPL-2.0-or-later
"""What a headline tells of what crosses between CPUs beside all transfers: single lines, locks, reads in vain."""

from __future__ import annotations

from collections.abc import Sequence

from kdelta.attribution.exact import RETRIES, TRANSFERS, WAITS
from kdelta.attribution.line_table import NAMELESS
from kdelta.model import CellResult
from kdelta.report.figures import absolute
from kdelta.results.line_verdicts import line_of

_CROSSES = {
    TRANSFERS: "Of single lines {} moves",
    WAITS: "Locks are found taken",
    RETRIES: "Reads under sequence counters are in vain",
}
_AS_MUCH = 0.5  # of what the one line moves: the other may have been it
_HARDLY = 0.05  # of the one side


def crossed(beside: Sequence[tuple[str, CellResult]], rows: Sequence[CellResult], only: str) -> str:
    """Of what crosses between CPUs, all transfers apart, what changed by most: of each kind a sentence.

    Single cache lines are told where nothing was called of all. ``only``: the only case, which is not named.
    """
    called = {_place(cell): cell.verdict for cell in rows if cell.metric == TRANSFERS}
    several = len({cell.patched_label for cell in rows}) > 1
    found: dict[str, list[tuple[str, CellResult]]] = {word: [] for word in _CROSSES}
    for title, cell in beside:
        kind = TRANSFERS if line_of(cell.metric) else cell.metric
        silent = kind != TRANSFERS or called.get(_place(cell)) in ("same", "inconclusive")
        if kind in found and silent and cell.state == "ok" and cell.verdict in ("improved", "regressed"):
            found[kind].append((title, cell))
    return ". ".join(_most(kind, cells, only, several) for kind, cells in found.items() if cells)


def _most(kind: str, cells: Sequence[tuple[str, CellResult]], only: str, several: bool) -> str:
    title, cell = max(cells, key=lambda one: abs(_difference(one[1])))
    told = _CROSSES[kind].format(_line(cell)) + f" {_often(cell)}"
    told += ("" if title == only else f" in {title}") + (f" on {cell.patched_label}" if several else "")
    told += f": {_from_to(cell)} an operation"
    shown = 1
    if (other := _instead(cell, [one for name, one in cells if name == title])) is not None:
        told += f", and {_line(other)} {_often(other)}: {_from_to(other)}"
        shown = 2
    return told + (f"; {len(cells) - shown} more changed" if len(cells) > shown else "")


def _instead(cell: CellResult, cells: Sequence[CellResult]) -> CellResult | None:
    """The line for which another may stand: one moves now and one no longer, as where it is allocated elsewhere.

    From 6.16 on a process has futexes of its own: memory of 2 KiB moved 12,706 times a run, and a global one 10,040
    times no longer.
    """
    found = [
        other
        for other in cells
        if line_of(other.metric)
        and other.patched_label == cell.patched_label
        and ((_begins(cell) and _ends(other)) or (_ends(cell) and _begins(other)))
        and abs(_difference(other)) >= _AS_MUCH * abs(_difference(cell))
    ]
    return max(found, key=lambda one: abs(_difference(one)), default=None)


def _begins(cell: CellResult) -> bool:
    return (cell.baseline or 0.0) < _HARDLY * (cell.patched or 0.0)


def _ends(cell: CellResult) -> bool:
    return (cell.patched or 0.0) < _HARDLY * (cell.baseline or 0.0)


def _difference(cell: CellResult) -> float:
    return (cell.patched or 0.0) - (cell.baseline or 0.0)


def _often(cell: CellResult) -> str:
    return f"{'less' if cell.verdict == 'improved' else 'more'} often"


def _from_to(cell: CellResult) -> str:
    """In words: a page would end a line within an arrow."""
    return f"from {absolute(cell.baseline, '')} to {absolute(cell.patched, '')}"


def _line(cell: CellResult) -> str:
    line = line_of(cell.metric)
    if line.startswith(NAMELESS):
        return "the memory of " + line.removeprefix(NAMELESS).replace(", ", " and ")
    return line


def _place(cell: CellResult) -> tuple[str, str, str, str]:
    return cell.case, cell.cgroup, cell.mitigations, cell.patched_label
