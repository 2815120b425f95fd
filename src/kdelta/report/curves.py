# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of curves, sweeps and functions for the HTML page; each with its data as a table. No statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from kdelta.report import svg
from kdelta.report.charts import LEAST_SPAN, LETTER, Figure, cut, fitting, full_name, value_axis
from kdelta.report.figures import absolute, count, drawable, each
from kdelta.report.scrub import clip
from kdelta.report.view import SweepTable
from kdelta.results.types import Distribution, FunctionDiff, Scaling, Sweep

_PERCENTILES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999)
_MAX_FUNCTIONS = 20
_STEP_ROWS = 3  # of labels above a sweep
_ROW = 15
_LABEL = 70  # px behind the longest bar
_GAP = 60  # px that "no figure" needs


def distribution(item: Distribution, number: int) -> Figure | None:
    """Latency by percentile, each further nine as wide as the one before (as HdrHistogram's plots)."""
    curves = [
        (c.kernel, [(p, v) for p, v in c.points if drawable(v) is not None and 0 <= p <= 100]) for c in item.curves
    ]
    curves = [(kernel, points) for kernel, points in curves if points]
    if not curves:
        return None
    title = f"Distribution: {full_name(item.cell)}"
    worst = ", ".join(f"{kernel} at most {absolute(points[-1][1], item.unit)}" for kernel, points in curves)
    area = svg.canvas(f"dist{number}", title, f"Percentile curves: {worst}.", 280)
    scale = value_axis(area, [value for _, points in curves for _, value in points], item.unit)
    finest = max(p for _, points in curves for p, _ in points if p < 100) if _has_body(curves) else 99.0
    across = svg.Scale(0.0, _nines(finest) + 0.3, area.left, area.right)
    ticks = [(across(_nines(p)), f"{p:g} %") for p in _PERCENTILES if p <= finest]
    svg.axis_x(area, ticks, "operations at or below the value (percentile)", grid=True)
    for index, (_, points) in enumerate(curves):
        svg.polyline(area, [(across(min(_nines(p), across.high)), scale(v)) for p, v in points], index)
    percentiles = sorted({p for _, points in curves for p, _ in points})
    figures = [dict(points) for _, points in curves]
    rows = tuple((f"{p:g} %", *(absolute(k.get(p), item.unit) for k in figures)) for p in percentiles)
    labels = tuple(kernel for kernel, _ in curves)
    return Figure(
        name=f"dist{number}",
        title=title,
        caption="How slow the slower operations are: each step to the right is ten times rarer." + cut(scale),
        markup=area.markup(),
        header=("Percentile", *labels),
        rows=rows,
        series=labels,
    )


def _has_body(curves: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> bool:
    return any(p < 100 for _, points in curves for p, _ in points)


def _nines(percentile: float) -> float:
    """0 at 0 %, 1 at 90 %, 2 at 99 % ...; 100 % lies beyond every axis."""
    return math.inf if percentile >= 100 else -math.log10(1 - percentile / 100)


def sweep(table: SweepTable, number: int) -> Figure | None:
    """A figure per version; steps are marked where they arrive, versions without a figure are gaps."""
    source = table.source
    values = [drawable(point.value) if point.state == "ok" else None for point in source.points]
    present = [value for value in values if value is not None]
    if not present:
        return None
    steps = [row for row in table.rows if row.change]
    levels = _levels(source)
    text = "; ".join(f"{row.kernel}: {row.change} {row.mark}" for row in steps) or "no steps"
    title = f"Sweep: {table.title}"
    rows = min(_STEP_ROWS, max(1, len(steps)))
    area = svg.canvas(f"sweep{number}", title, f"Steps: {text}.", 295 + _ROW * rows, top=36 + _ROW * rows)
    scale = value_axis(area, [*present, *(level for _, _, level in levels)], source.unit, least=LEAST_SPAN)
    column = (area.right - area.left) / len(values)
    x = [area.left + column * (index + 0.5) for index in range(len(values))]
    svg.axis_x(area, list(zip(x, fitting([row.kernel for row in table.rows], column), strict=True)), "kernel")
    for first, last, level in levels:
        left, right, y = x[first] - column / 2, x[last] + column / 2, scale(level)
        svg.add(area.root, "line", class_="level", x1=left, x2=right, y1=y, y2=y)
    runs: list[list[tuple[float, float]]] = [[]]
    drawn = 0
    for index, (row, value) in enumerate(zip(table.rows, values, strict=True)):
        if row.change:
            _step(area, x[index] - column / 2, row.change, row.mark, (drawn % rows, rows))
            drawn += 1
        if value is None:
            word = "no figure" if column > _GAP else "gap"
            gap = svg.add(area.root, "text", word, class_="tick gap", x=x[index], y=area.bottom - 6)
            gap.set("text-anchor", "middle")
            svg.add(gap, "title", f"{row.value}: {row.sentence}" if row.sentence else row.value)
            continue
        if row.change:
            runs.append([])
        runs[-1].append((x[index], scale(value)))
    for run in filter(None, runs):
        svg.polyline(area, run, 0)
    relative = "between the levels on either side, the grey lines" if levels else "relative to the version before it"
    return Figure(
        name=f"sweep{number}",
        title=title,
        caption=(f"A dashed line marks a step; its size is {relative}." if steps else "No step was found.")
        + cut(scale),
        markup=area.markup(),
        header=("Kernel", "Value", "Step", "Because"),
        rows=tuple((r.kernel, r.value, f"{r.change} {r.mark}".strip() or "-", r.sentence or "-") for r in table.rows),
    )


def _levels(source: Sweep) -> list[tuple[int, int, float]]:
    """(first version, last version, level) between the steps of a sweep in times; exact counts have no levels."""
    places = {point.kernel: place for place, point in enumerate(source.points)}
    steps = [step for step in source.steps if step.p_value is not None and step.first in places]
    if not steps or any(drawable(level) is None for step in steps for level in (step.baseline, step.patched)):
        return []
    edges = [0, *(places[step.first] for step in steps), len(source.points)]
    heights = [steps[0].baseline, *(step.patched for step in steps)]
    return [(first, after - 1, level) for (first, after), level in zip(pairwise(edges), heights, strict=True)]


def _step(area: svg.Canvas, x: float, change: str, mark: str, row: tuple[int, int]) -> None:
    """A dashed line with its size above; neighbours stand in different rows, so that they do not collide."""
    word = {"(I)": "improved", "(R)": "regressed"}.get(mark, "same")
    y = area.top - 6 - _ROW * (row[1] - 1 - row[0])
    svg.add(area.root, "line", class_=f"step v-{word}", x1=x, x2=x, y1=y + 3, y2=area.bottom)
    svg.add(area.root, "text", f"{change} {mark}", class_="label", x=x, y=y, text_anchor="middle")


def functions(item: FunctionDiff, number: int) -> Figure | None:
    """Which functions cost more (right) and less (left), in kernel instructions."""
    known = [f for f in item.functions if all(drawable(v) is not None for v in (f.baseline, f.patched, f.delta))]
    shown = known[:_MAX_FUNCTIONS]
    if not shown:
        return None
    title = f"Functions: {full_name(item.cell)}, {item.baseline_label} to {item.patched_label}"
    text = "; ".join(f"{f.function} {count(f.delta, signed=True)}" for f in shown)
    area = svg.canvas(f"func{number}", title, text, 24 * len(shown) + 72, left=196, right=_LABEL)
    scale = svg.Scale(*svg.span([f.delta for f in shown], zero=True), area.left, area.right)
    svg.axis_x(area, _ticks(scale), f"instructions per {each(item.unit)}, change", grid=True)
    for index, f in enumerate(shown):
        y = area.top + 24 * index + 5.0
        low, high = sorted((scale(0), scale(f.delta)))
        word = "regressed" if f.delta > 0 else "improved"
        svg.add(area.root, "rect", class_=f"fill v-{word}", x=low, y=y, width=max(1.0, high - low), height=14)
        name = svg.add(area.root, "text", clip(f.function, 24), class_="label", x=area.left - 8, y=y + 11)
        name.set("text-anchor", "end")
        svg.add(name, "title", f.function)
        figure = svg.add(area.root, "text", count(f.delta, signed=True), class_="tick", x=high + 5, y=y + 11)
        svg.add(figure, "title", f.note or f.function)
    svg.add(area.root, "line", class_="zero", x1=scale(0), x2=scale(0), y1=area.top, y2=area.bottom)
    left_out = len(known) - len(shown)
    return Figure(
        name=f"func{number}",
        title=title,
        caption="Kernel functions with the largest change."
        + (f" {left_out} smaller ones: see data." if left_out else ""),
        markup=area.markup(),
        header=("Function", item.baseline_label, item.patched_label, "Change", "Note"),
        rows=tuple(
            (f.function, count(f.baseline), count(f.patched), count(f.delta, signed=True), f.note or "-") for f in known
        ),
    )


def _ticks(scale: svg.Scale) -> list[tuple[float, str]]:
    """Ticks with signs; every second one from 0 on where long ones would touch."""
    found = scale.ticks(5)
    texts = [count(tick, signed=True) for tick in found]
    places = [scale(tick) for tick in found]
    near = min((right - left for left, right in pairwise(places)), default=math.inf)
    if near < (max(map(len, texts)) + 1) * LETTER:
        zero = min(range(len(found)), key=lambda index: abs(found[index]))
        kept = [index for index in range(len(found)) if (index - zero) % 2 == 0]
        return [(places[index], texts[index]) for index in kept]
    return list(zip(places, texts, strict=True))


def scaling(item: Scaling, number: int) -> Figure | None:
    """The metric against the number of tasks, a line per kernel."""
    lines = [(line.kernel, [(n, v) for n, v in line.points if drawable(v) is not None]) for line in item.lines]
    lines = [(kernel, points) for kernel, points in lines if points]
    if not lines:
        return None
    counts = sorted({n for _, points in lines for n, _ in points})
    title = f"Scaling: {full_name(item.cell)}"
    text = f"{counts[0]} to {counts[-1]} tasks for {', '.join(kernel for kernel, _ in lines)}."
    area = svg.canvas(f"scale{number}", title, text, 280)
    scale = value_axis(area, [value for _, points in lines for _, value in points], item.unit, zero=True)
    log = counts[0] > 0 and counts[-1] > 8 * counts[0]
    across = svg.Scale(
        counts[0], counts[-1] + (0 if counts[-1] > counts[0] else 1), area.left + 14, area.right - 14, log
    )
    svg.axis_x(area, [(across(n), str(n)) for n in counts], "tasks")
    for index, (_, points) in enumerate(lines):
        svg.polyline(area, [(across(n), scale(v)) for n, v in points], index)
    known = [dict(points) for _, points in lines]
    labels = tuple(kernel for kernel, _ in lines)
    return Figure(
        name=f"scale{number}",
        title=title,
        caption="Throughput of all tasks together." if item.unit.endswith("/s") else "",
        markup=area.markup(),
        header=("Tasks", *labels),
        rows=tuple((str(n), *(absolute(k.get(n), item.unit) for k in known)) for n in counts),
        series=labels,
    )
