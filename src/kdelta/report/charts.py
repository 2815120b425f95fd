# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of effects and boots for the HTML page; each with a sentence and with its data as a table. No statistics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kdelta.report import effects, svg
from kdelta.report.figures import absolute, drawable
from kdelta.report.view import Cell, View, cell_title
from kdelta.results.types import CellName, CellPoints, Point

# More rows than this are a table's business; the table shows all of them.
MAX_ROWS = 80
LEAST_SPAN = 0.05  # of a figure over versions or time: what changes by less looks flat
FLOOR_SPAN = 3  # a noise floor is drawn whole up to so many times the largest effect
LETTER = 8.2  # px of a digit in a tick's label
_VERSION = re.compile(r"(\d+\.\d+)\.\d+")


class Figure(Struct, frozen=True, kw_only=True):
    """One chart: ``markup`` is SVG, ``header`` and ``rows`` the same data for readers who do not see it."""

    name: str
    title: str
    caption: str
    markup: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    series: tuple[str, ...] = ()  # legend: kernels in the order of their marks
    blocks: tuple[int, int] | None = None  # legend: first and last block of the colour ramp
    style: str = ""  # rules of its own, for the page's head
    wide: bool = False  # than a phone's window

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """(swatch as SVG, name) of each series."""
        return tuple((svg.swatch(index), name) for index, name in enumerate(self.series))


def full_name(cell: CellName) -> str:
    """Case and metric."""
    return f"{cell_title(cell)}, {cell.metric}"


def _tick(value: float, unit: str) -> str:
    """A tick's text: no needless zeros; without its unit where that would be long."""
    text = re.sub(r"(\.\d*?)0+(?=\D|$)", r"\1", absolute(value, unit)).replace(". ", " ").removesuffix(".")
    return text if len(text) <= 11 else absolute(value, "")


def value_axis(
    area: svg.Canvas, values: Sequence[float], unit: str, zero: bool = False, least: float = 0.0
) -> svg.Scale:
    """Draw the vertical axis for ``values``; logarithmic where they span more than a factor of 20.

    It spans at least the fraction ``least`` of their middle, so that a change of 0.3 % does not look like a cliff.
    """
    log = not zero and min(values) > 0 and max(values) / min(values) > 20
    low, high = (min(values) / 1.1, max(values) * 1.1) if log else svg.span(values, zero=zero)
    middle = (low + high) / 2
    if not log and high - low < least * abs(middle):
        low, high = middle - least * abs(middle) / 2, middle + least * abs(middle) / 2
    scale = svg.Scale(low, high, area.bottom, area.top, log)
    texts = [(tick, _tick(tick, unit)) for tick in scale.ticks()]
    bare = bool(texts) and not any(" " in text for _, text in texts)
    svg.axis_y(area, scale, unit if bare else "", texts)
    return scale


def cut(scale: svg.Scale) -> str:
    """What a caption says of a scale on which twice as high is not twice as much, with the space before it."""
    return " The scale is logarithmic." if scale.log else " The scale does not begin at 0." if scale.low > 0 else ""


def fitting(labels: Sequence[str], column: float) -> list[str]:
    """Kernels' labels for columns of that many px: of ``6.12.117`` the series, where there is no room for all.

    Only of versions, and where they stay apart: a patched 6.12.117 is not 6.12.
    """
    found = [
        match[1] if len(label) * LETTER >= column and (match := _VERSION.fullmatch(label)) else label
        for label in labels
    ]
    return found if len(set(found)) == len(set(labels)) else list(labels)


def intervals(view: View) -> Figure | None:
    """Effects with their intervals around zero, and the noise floor behind each."""
    rows = effects.rows(view)[:MAX_ROWS]
    if not rows:
        return None
    names = [name for name, _ in rows]
    title = "Effects with their intervals"
    text = "; ".join(f"{name}: {cell.figure}, {cell.verdict}" for name, (_, cell) in zip(names, rows, strict=True))
    area = svg.canvas("effects", title, text, 26 * len(rows) + 72, left=190, right=20)
    ends = [bound for _, cell in rows for bound in effects.bounds(cell)]
    floors = [floor for _, cell in rows if (floor := drawable(cell.source.floor_percent))]
    # the floor of a row that counts next to nothing is some hundred percent: it may not press all the others together
    most = max([FLOOR_SPAN * abs(end) for end in ends] + ([min(floors)] if floors else []))
    seen = [sign * floor for floor in floors if floor <= most for sign in (-1, 1)]
    scale = svg.Scale(*svg.span([*ends, *seen], zero=True), area.left, area.right)
    ticks = [(scale(tick), f"{tick:+g}" if tick else "0") for tick in scale.ticks(6)]
    svg.axis_x(area, ticks, "change relative to the baseline, %", grid=True)
    short = effects.short_names(names, effects.NAME)
    for index, (name, label_text, (_, cell)) in enumerate(zip(names, short, rows, strict=True)):
        y = area.top + 26 * index + 15.0
        _interval(area, scale, y, cell)
        label = svg.add(area.root, "text", label_text, class_="label", x=area.left - 10, y=y + 4, text_anchor="end")
        svg.add(label, "title", name)
    svg.add(area.root, "line", class_="zero", x1=scale(0), x2=scale(0), y1=area.top, y2=area.bottom)
    table = tuple(
        (name, cell.effect, cell.interval or "-", cell.verdict) for name, (_, cell) in zip(names, rows, strict=True)
    )
    return Figure(
        name="effects",
        title=title,
        caption="Each bar is the confidence interval, the dot the estimate."
        + (" The shaded band is the noise floor." if floors else "")
        + (" One from edge to edge is wider than the figure." if len(seen) < 2 * len(floors) else ""),
        markup=area.markup(),
        header=("Case", "Effect", "Interval", "Verdict"),
        rows=table,
    )


def _interval(area: svg.Canvas, scale: svg.Scale, y: float, cell: Cell) -> None:
    floor = drawable(cell.source.floor_percent)
    if floor:
        left, right = max(area.left, scale(-floor)), min(area.right, scale(floor))
        svg.add(area.root, "rect", class_="floor", x=left, y=y - 9, width=right - left, height=18)
    bounds = effects.bounds(cell)
    word = cell.verdict
    svg.add(area.root, "line", class_=f"bar v-{word}", x1=scale(min(bounds)), x2=scale(max(bounds)), y1=y, y2=y)
    dot = svg.add(area.root, "circle", class_=f"mark v-{word}", cx=scale(bounds[-1]), cy=y, r=4.5)
    svg.add(dot, "title", f"{cell.figure}, {word}")


def boots(item: CellPoints, labels: Sequence[str], number: int, budget: int) -> Figure | None:
    """One dot per boot, a column per kernel, blocks from left to right and coloured from first to last."""
    points = [point for point in item.points if drawable(point.value) is not None and point.kernel < len(labels)]
    if not points:
        return None
    blocks = sorted({point.block for point in points})
    stride = max(1, math.ceil(len(points) / max(1, budget)))
    kept = frozenset(blocks[::stride])
    points = [point for point in points if point.block in kept]
    kernels = sorted({point.kernel for point in points})
    title = f"Boots: {full_name(item.cell)}"
    thinned = f" Every {stride}th block is shown." if stride > 1 else ""
    text = f"{len(points)} boots in {len(kept)} blocks for {', '.join(labels[k] for k in kernels)}.{thinned}"
    area = svg.canvas(f"boots{number}", title, text, 280)
    scale = value_axis(area, [point.value for point in points], item.unit)
    column = (area.right - area.left) / len(kernels)
    names = fitting([labels[k] for k in kernels], column)
    svg.axis_x(area, [(area.left + column * (i + 0.5), name) for i, name in enumerate(names)], "kernel")
    place = {kernel: index for index, kernel in enumerate(kernels)}
    rank = {block: index for index, block in enumerate(sorted(kept))}
    paths: dict[int, list[str]] = {}
    for point in points:
        x = area.left + column * (place[point.kernel] + 0.15 + 0.7 * (rank[point.block] + 0.5) / len(rank))
        paths.setdefault(point.block, []).append(f"M{x:.1f} {scale(point.value):.1f}h0")
    for block, path in sorted(paths.items()):
        hue = 215 + 150 * rank[block] / max(1, len(rank) - 1)  # blue (first) over violet to red (last)
        svg.add(area.root, "path", class_="boot", d="".join(path), style=f"stroke:hsl({hue:.0f} 65% 55%)")
    return Figure(
        name=f"boots{number}",
        title=title,
        caption=f"One dot is one boot. Within a kernel, blocks run from left to right.{thinned}{cut(scale)}",
        markup=area.markup(),
        header=("Block", *(labels[k] for k in kernels)),
        rows=_block_rows(points, kernels, sorted(kept), item.unit),
        blocks=(min(kept), max(kept)),
    )


def _block_rows(
    points: Iterable[Point], kernels: Sequence[int], blocks: Sequence[int], unit: str
) -> tuple[tuple[str, ...], ...]:
    cells = {(point.block, point.kernel): absolute(point.value, unit) for point in points}
    return tuple((str(b), *(cells.get((b, k), "-") for k in kernels)) for b in blocks)
