# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel instructions by system call as a table of texts, which every format lays out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from kdelta.model import CellResult
from kdelta.report.text import WIDTH, fit, pad, rule, wrap
from kdelta.results.types import CallFigures, CallRow, Detail, SystemCalls
from kdelta.spec.program import WORKLOAD

SHOWN = 15
_NAME_LEAST = 12  # columns of a name beside its figures; else these stand below it


class CallTable(Struct, frozen=True, kw_only=True):
    """One case on one pair of kernels, or on one kernel. The first column is the name, the others are figures."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def _count(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


def _bytes(value: float) -> str:
    for factor, prefix in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if value >= 10 * factor:
            return f"{value / factor:.0f}{prefix}"
    return _count(value)


def _pair(row: CallRow, figure: Callable[[CallFigures], str]) -> str:
    """``1000``, or ``1000->1001`` where the sides differ."""
    sides = [figure(side) if side else "-" for side in (row.baseline, row.patched)]
    return sides[0] if sides[0] == sides[1] else "->".join(sides)


def _cells(row: CallRow, several: bool) -> tuple[str, ...]:
    if not several:
        one = row.baseline or CallFigures(calls=0, instructions=0, rep_bytes=0)
        return row.name, _count(one.calls), _count(one.instructions), _bytes(one.rep_bytes)
    delta = f"{row.delta:+.0f}" if float(row.delta).is_integer() else f"{row.delta:+.1f}"
    delta = delta if row.delta else "0"
    sides = [_count(side.instructions) if side else "-" for side in (row.baseline, row.patched)]
    return row.name, _pair(row, lambda s: _count(s.calls)), *sides, delta, _pair(row, lambda s: _bytes(s.rep_bytes))


def _merged(rows: Iterable[CallRow]) -> CallRow:
    """The rows that are not shown, as one."""

    def total(sides: list[CallFigures]) -> CallFigures:
        return CallFigures(
            calls=sum(s.calls for s in sides),
            instructions=sum(s.instructions for s in sides),
            rep_bytes=sum(s.rep_bytes for s in sides),
        )

    every = list(rows)
    before, after = [r.baseline for r in every if r.baseline], [r.patched for r in every if r.patched]
    return CallRow(name=f"{len(every)} others", baseline=total(before), patched=total(after))


def table(found: SystemCalls, shown: int | None = SHOWN) -> CallTable:
    """``found`` in words, its rows after the first ``shown`` as one."""
    several = bool(found.patched_label)
    rows = list(found.rows)
    if shown is not None and len(rows) > shown + 1:
        rows = [*rows[:shown], _merged(rows[shown:])]
    middle = (found.baseline_label, found.patched_label, "difference") if several else ("instructions",)
    kernels = f"{found.baseline_label} -> {found.patched_label}" if several else found.baseline_label
    return CallTable(
        title=f"Kernel instructions by system call: {found.cell.case}, {kernels} (median seed)",
        header=("system call", "calls", *middle, "REP bytes"),
        rows=tuple(_cells(row, several) for row in rows),
    )


def tables(found: Iterable[SystemCalls]) -> tuple[CallTable, ...]:
    """Those that a report shows: of programs, which are made of system calls."""
    return tuple(table(one) for one in found if one.workload == WORKLOAD and one.rows)


def lines(shown: CallTable, width: int = WIDTH) -> list[str]:
    """The table as plain text, at most ``width`` cells wide."""
    every = [shown.header, *shown.rows]
    least = [max(len(row[column]) for row in every[1:]) for column in range(1, len(shown.header))]
    widths = [max(size, min(len(head), 12)) for size, head in zip(least, shown.header[1:], strict=True)]
    room = width - sum(widths) - 2 * len(widths)
    beneath = room < _NAME_LEAST
    name = max(0, room) if beneath else min(room, max(len(row[0]) for row in every))
    found = [*wrap(shown.title, width, then="  "), rule(0, width)]
    for row in every:
        columns = zip(row[1:], widths, strict=True)
        figures = "".join("  " + pad(fit(cell, size), size, right=True) for cell, size in columns)
        apart = beneath or fit(row[0], name) != row[0]  # no name is cut
        found += [row[0], pad("", name) + figures] if apart else [pad(row[0], name) + figures]
    return found


def below(row: CellResult, detail: Detail, everything: bool, width: int = WIDTH) -> str:
    """The system calls of ``row``, to stand below its functions; "" where the kernels' entries are not known."""
    cell = (row.case, row.cgroup, row.mitigations, row.patched_label)
    for found in detail.system_calls:
        if (found.cell.case, found.cell.cgroup, found.cell.mitigations, found.patched_label) == cell:
            return "\n" + "\n".join(lines(table(found, None if everything else SHOWN), width)) + "\n"
    return ""
