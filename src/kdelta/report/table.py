# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict table as plain text. A row is one line where that fits; what does not fit goes beneath, never beyond."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from rich.cells import cell_len

from kdelta.report.text import PROSE, WIDTH, fit, note_numbers, pad, rule, wrap
from kdelta.report.view import Cell, Row, SweepTable, Table

_GAP = 2
_LABEL_MIN = 14
_NARROW = 60  # cells; in fewer a label may have a line of its own, so that the figures stay whole
_TOLD = 22  # "-29.54 %  (R) [3,4,5]"
_BASE_MAX = 22
_HEAD_MAX = 18


def _tail(cell: Cell) -> str:
    """Mark and references: ``(R) [1,2]``."""
    return " ".join(filter(None, [cell.mark, f"[{note_numbers(cell.notes)}]" if cell.notes else ""]))


def _widest(texts: Sequence[str], least: int = 0) -> int:
    return max([least, *map(cell_len, texts)])


def _label_least(width: int) -> int:
    return _LABEL_MIN if width >= _NARROW else 2


def _base(table: Table, rows: Sequence[Row], width: int) -> int:
    """How wide the baseline's column is: what it needs, but the effects beside it come first."""
    needed = _widest([fit(table.baseline, _HEAD_MAX), *(row.baseline for row in rows)], 8)
    return min(needed, _BASE_MAX, width - _label_least(width) - 2 * _GAP - _TOLD)


def _beneath(row: Row, kernels: Sequence[str], several: bool, width: int, ended: set[str]) -> list[str]:
    """What is said of each cell; how a kernel ended, where that takes lines, once: the texts are ``ended``."""
    lines = []
    for cell in row.cells:
        if cell.kernel in kernels and cell.sentence:
            text = f"{cell.kernel} {cell.sentence}" if several else cell.sentence
            wrapped = wrap(text, min(width, PROSE), first="      ", then="        ")
            if cell.source.state != "ok" and len(wrapped) > 1:
                again = f"{cell.kernel} {cell.source.state}" if several else cell.source.state
                wrapped = [f"      {again}, as above"] if text in ended else wrapped
                ended.add(text)
            lines += wrapped
    return lines


def _labelled(label: str, rest: str, label_width: int, width: int) -> list[str]:
    """``label`` and the columns on one line, or on two where the label is too long."""
    if cell_len(label) <= label_width:
        return [pad(label, label_width) + rest.rstrip()]
    indent = label[: len(label) - len(label.lstrip())]
    return [*wrap(label.lstrip(), width, first=indent, then=indent + "    "), (" " * label_width + rest).rstrip()]


def _line(label: str, base: str, columns: Sequence[str], widths: Sequence[int], width: int) -> list[str]:
    label_width, base_width, *column_widths = widths
    rest = " " * _GAP + pad(fit(base, base_width), base_width, right=True)
    for text, column_width in zip(columns, column_widths, strict=True):
        rest += " " * _GAP + pad(fit(text, column_width), column_width)
    return _labelled(label, rest, label_width, width)


def _told_of(table: Table, kernels: Sequence[str]) -> Table:
    """The ``table`` without the rows that say nothing of some kernels, as of a line that moves on another alone."""
    shown = set(kernels)
    groups = (
        replace(group, rows=tuple(row for row in group.rows if not shown.isdisjoint(c.kernel for c in row.cells)))
        for group in table.groups
    )
    return replace(table, groups=tuple(group for group in groups if group.rows))


def _panel(table: Table, kernels: Sequence[str], first: bool, width: int, causes: bool) -> list[str]:
    """The table for some of its kernels; lines about the row itself only in the ``first`` panel.

    A case with one row is one line; with ``causes`` that and what is behind its verdict beneath.
    """
    several = len(table.kernels) > 1
    table = _told_of(table, kernels) if several else table
    rows = [(g.title, row) for g in table.groups for row in g.rows]
    base_width = _base(table, [row for _, row in rows], width)
    cells = [c for _, row in rows for c in row.cells if c.kernel in kernels]
    longest = width - _label_least(width) - base_width - 2 * _GAP
    whole = _whole(cells)
    split = any(c.interval for c in cells) and (  # the interval on a line of its own
        whole > longest or (several and (width <= WIDTH or len(table.kernels) * (whole + _GAP) - _GAP > longest))
    )
    figures = {k: _widest([c.effect if split else c.figure for c in cells if c.kernel == k]) for k in kernels}
    texts = {id(c): f"{pad(c.effect if split else c.figure, figures[c.kernel])}  {_tail(c)}".rstrip() for c in cells}
    column = {
        k: min(
            longest,
            _widest(
                [fit(k, _HEAD_MAX)]
                + [texts[id(c)] for c in cells if c.kernel == k]
                + [c.interval for c in cells if c.kernel == k and split]
            ),
        )
        for k in kernels
    }
    used = base_width + _GAP + sum(column[k] + _GAP for k in kernels)
    widths = [width - used, base_width, *(column[k] for k in kernels)]
    metrics = {row.metric for _, row in rows}
    flat = all(len(group.rows) == 1 for group in table.groups)
    shared = metrics.pop() if flat and len(metrics) == 1 else ""
    flat = bool(shared) or (flat and all(cell_len(f"{title}, {row.metric}") <= width - used for title, row in rows))
    heads = [fit(k, column[k]) for k in kernels]
    labels = [_label(title, row, flat, shared) for title, row in rows]
    widths[0] = min(widths[0], max(WIDTH - used, _widest([shared, *labels])))
    title = fit(shared, widths[0]) if widths[0] >= _LABEL_MIN else shared
    header = _line(title, fit(table.baseline, base_width), heads, widths, width)
    lines, ended = [*header, rule(widths[0] + used, width)], set[str]()
    for group in table.groups:
        lines += [] if flat else wrap(group.title, width, then="  ")
        for row in group.rows:
            label = _label(group.title, row, flat, shared)
            by_kernel = {c.kernel: c for c in row.cells}
            present = [by_kernel.get(k) for k in kernels]
            columns = [texts[id(c)] if c else "" for c in present]
            lines += _line(label, row.baseline, columns, widths, width)
            if split and any(c and c.interval for c in present):
                lines += _line("", "", [c.interval if c else "" for c in present], widths, width)
            if causes and first:
                for text in row.aside:
                    lines += wrap(text, min(width, PROSE), first="      ", then="        ")
            lines += _beneath(row, kernels, several, width, ended) if causes or not table.kernels[0] else []
    return lines


def _label(title: str, row: Row, flat: bool, shared: str) -> str:
    return (title if shared else f"{title}, {row.metric}") if flat else f"  {row.metric}"


def _whole(cells: Sequence[Cell]) -> int:
    """The width of a column with effect, interval, mark and references in one line."""
    return _widest([c.figure for c in cells]) + _GAP + _widest([_tail(c) for c in cells])


def _panels(table: Table, width: int) -> list[Sequence[str]]:
    """Kernels that share a panel: as many as leave room for the labels."""
    if len(table.kernels) <= 1:
        return [table.kernels]
    cells = [c for g in table.groups for row in g.rows for c in row.cells]
    rows = [row for g in table.groups for row in g.rows]
    base = _base(table, rows, width)
    label = min(24, _widest([f"  {r.metric}" for r in rows], _LABEL_MIN))
    column = _widest([*(fit(k, _HEAD_MAX) for k in table.kernels), *(c.interval for c in cells)])
    column = max(column, _widest([c.effect for c in cells]) + 2 + _widest([_tail(c) for c in cells]))
    each = max(1, (width - label - base - _GAP) // (column + _GAP))
    return [table.kernels[start : start + each] for start in range(0, len(table.kernels), each)]


def table_lines(table: Table, width: int = WIDTH, causes: bool = False) -> list[str]:
    """One table of the view, at most ``width`` cells wide; many kernels wrap into panels."""
    lines: list[str] = []
    for index, kernels in enumerate(_panels(table, width)):
        lines += [""] if index else []
        lines += _panel(table, kernels, index == 0, width, causes)
    return lines


def sweep_lines(sweep: SweepTable, width: int = WIDTH, causes: bool = False) -> list[str]:
    """One sweep: a version a line, the step's size where one arrives, with ``causes`` its reason; what is missing."""
    width = min(width, PROSE)
    lines = [*wrap(sweep.title, width, then="  "), rule(0, width)]
    value = min(_BASE_MAX, _widest([row.value for row in sweep.rows]))
    change = min(14, _widest([row.change for row in sweep.rows]))
    label = width - value - change - 4 - 3 * _GAP
    label = min(label, _widest([f"  {row.kernel}" for row in sweep.rows], _LABEL_MIN))
    levels = any(step.p_value is not None for step in sweep.source.steps)  # of times: no cause, what the step is
    for row in sweep.rows:
        rest = " " * _GAP + pad(fit(row.value, value), value, right=True)
        rest += " " * _GAP + pad(fit(row.change, change), change, right=True) + " " * _GAP + row.mark
        lines += _labelled(f"  {row.kernel}", rest, label, width)
        if row.sentence and (causes or levels or not row.measured or row.unseen):
            lines += wrap(row.sentence, width, first="      ", then="        ")
    return lines
