# SPDX-License-Identifier: GPL-2.0-or-later
"""The history of a case and metric as a chart: over time, or by kernel. Pure; no statistics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from kdelta.report import svg
from kdelta.report.charts import LEAST_SPAN, Figure, cut, value_axis
from kdelta.report.figures import absolute, drawable
from kdelta.report.scrub import clean
from kdelta.store.rows import HistoryRow

Axis = Literal["time", "kernel"]
MAX_COLUMNS = 120  # of the chart; the table has the rest
_MAX_TICKS = 8


def axis(rows: Sequence[HistoryRow], asked: str) -> Axis:
    """As asked; else over time, which one experiment on several kernels knows nothing of."""
    if asked in ("time", "kernel"):
        return "kernel" if asked == "kernel" else "time"
    alone = len({row.experiment for row in rows}) == 1 and len({row.kernel for row in rows}) > 1
    return "kernel" if alone else "time"


def series_name(row: HistoryRow) -> str:
    """The kernel with its guests and mitigations, where they are not the usual ones."""
    return clean(row.kernel, 64) + row.guests + (" mitigations=off" if row.mitigations == "off" else "")


def _column(row: HistoryRow, axis: Axis) -> tuple[str, str]:
    """(key, tick): what shares a column, and what stands beneath it."""
    return (row.experiment, row.created_at) if axis == "time" else (row.kernel, clean(row.kernel, 64))


def _dated(columns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Times as days; as times of the day where all are of one."""
    part = slice(11, 16) if len({when[:10] for _, when in columns}) == 1 else slice(10)
    return [(key, clean(when[part], 10)) for key, when in columns]


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Sorts 6.2 before 6.12."""
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in re.split(r"(\d{1,18})", text) if p]


def _ticks(columns: Sequence[tuple[str, str]], x: Sequence[float]) -> list[tuple[float, str]]:
    """Some columns' ticks, evenly spread; a text that repeats the one before says nothing."""
    stride = max(1, -(-len(columns) // _MAX_TICKS))
    found: list[tuple[float, str]] = []
    for index in range(0, len(columns), stride):
        if not found or found[-1][1] != columns[index][1]:
            found.append((x[index], columns[index][1]))
    return found


def _columns(rows: Sequence[HistoryRow], axis: Axis) -> tuple[list[tuple[str, str]], str]:
    """The columns that fit, from left to right, and a sentence about those that do not."""
    columns = list(dict.fromkeys(_column(row, axis) for row in rows))
    if axis == "kernel":
        columns.sort(key=lambda column: _natural(column[0]))
    left_out = max(0, len(columns) - MAX_COLUMNS)
    which = "oldest" if axis == "time" else "first"
    text = f" The {left_out} {which} are left out; the table has them." if left_out else ""
    kept = columns[left_out:]
    return (_dated(kept) if axis == "time" else kept), text


def chart(
    rows: Sequence[HistoryRow], axis: Axis, title: str, steps: Mapping[str, str] = MappingProxyType({})
) -> Figure | None:
    """One dot per kernel and experiment, its boots' range as a bar behind it; ``rows`` are of one case and metric.

    ``steps`` are announced ones, {first kernel behind it: what it was}: a line stands where each is, between kernels.
    Returns None where no figure can be drawn. More columns than fit leave the oldest out; the caption says so.
    """
    drawn = [row for row in rows if all(drawable(v) is not None for v in (row.value, *row.values))]
    columns, left_out = _columns(drawn, axis)
    place = {key: index for index, (key, _) in enumerate(columns)}
    drawn = [row for row in drawn if _column(row, axis)[0] in place]
    if not drawn:
        return None
    text = f"{len(drawn)} figures of {len(columns)} {'experiments' if axis == 'time' else 'kernels'}."
    area = svg.canvas("trend", title, text, 320)
    values = [v for row in drawn for v in (row.value, *row.values)]
    scale = value_axis(area, values, clean(drawn[0].unit, 24), least=LEAST_SPAN)
    width = (area.right - area.left) / len(columns)
    x = [area.left + width * (index + 0.5) for index in range(len(columns))]
    svg.axis_x(area, _ticks(columns, x), "experiment, oldest first" if axis == "time" else "kernel")
    for key, text in steps.items() if axis == "kernel" else ():
        if key in place:
            _mark(area, x[place[key]] - width / 2, text)
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in drawn:
        name = series_name(row) if axis == "time" else _by_mitigations(row)
        at = x[place[_column(row, axis)[0]]]
        lines.setdefault(name, []).append((at, scale(row.value)))
        _range(area, scale, at, row, list(lines).index(name))
    for index, points in enumerate(lines.values()):
        _dots(area, points, index) if axis == "kernel" else svg.polyline(area, points, index)
    return Figure(
        name="trend",
        title=title,
        caption="Each dot is the median over the boots of one experiment, the bar behind it their range."
        + cut(scale)
        + left_out,
        markup=area.markup(),
        header=(),
        rows=(),
        series=tuple(lines),
    )


def _by_mitigations(row: HistoryRow) -> str:
    return f"{row.mode}, mitigations {row.mitigations}{row.guests}"


def _dots(area: svg.Canvas, points: Sequence[tuple[float, float]], series: int) -> None:
    for x, y in points:
        svg.marker(area.root, x, y, series)


def _mark(area: svg.Canvas, x: float, text: str) -> None:
    group = svg.add(area.root, "g", class_="step")
    svg.add(group, "title", clean(text, 200))
    svg.add(group, "line", x1=x, x2=x, y1=area.top, y2=area.bottom)


def _range(area: svg.Canvas, scale: svg.Scale, x: float, row: HistoryRow, series: int) -> None:
    group = svg.add(area.root, "g", class_=svg.marks(series)[0])
    when = clean(row.created_at[:16].replace("T", " "), 16)
    svg.add(group, "title", f"{series_name(row)}, {when}: {absolute(row.value, row.unit, row.metric)}")
    low, high = scale(min(row.values)), scale(max(row.values))
    svg.add(group, "line", class_="range", x1=x, x2=x, y1=low + 1.0, y2=high - 1.0)


def of_case(rows: Sequence[HistoryRow], axis: Axis, steps: Mapping[str, str] = MappingProxyType({})) -> Figure | None:
    """``chart`` of the rows of one case and metric, with its title."""
    title = f"{clean(rows[0].case, 120)}, {clean(rows[0].metric, 64)}, {'over time' if axis == 'time' else 'by kernel'}"
    return chart(rows, axis, title, steps)
