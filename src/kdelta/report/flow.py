# SPDX-License-Identifier: GPL-2.0-or-later
"""The picture of lines that move between CPUs: a band from each function to each line, as wide as it moves it often.

Of two kernels the one on which it does so more often gives the width: what moves no longer is seen, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from kdelta.report import svg
from kdelta.report.charts import Figure, full_name
from kdelta.report.figures import drawable
from kdelta.report.scrub import clip
from kdelta.results.types import MovedDiff, MovedRow

_LINES = 10  # drawn; the table has all
_FUNCTIONS = 12
_LEAST = 0.002  # of all that is drawn: a thinner band is not seen
_HEIGHT, _GAP, _NAME = 300.0, 14.0, 22  # px; a gap as high as a name, so that those of thin nodes do not collide
_CHANGED = 0.05  # of the larger side: less is drawn as the same
_OTHERS = "others"


class Band(Struct, frozen=True):
    """How often one function moves one line, before and after."""

    function: str
    line: str
    before: float
    after: float

    @property
    def size(self) -> float:
        """How wide it is."""
        return max(self.before, self.after)

    @property
    def word(self) -> str:
        """Whether it does so more often than before, as a verdict's word."""
        most = max(self.before, self.after)
        if abs(self.after - self.before) <= _CHANGED * most:
            return "same"
        return "regressed" if self.after > self.before else "improved"


def bands(rows: Sequence[MovedRow]) -> list[Band]:
    """The bands of the hottest lines; functions beyond the first that move most are one."""
    there = [row for row in rows if drawable(row.patched) is not None and not row.line.startswith("[")]
    shown = sorted(there, key=lambda row: -max(row.baseline, row.patched))[:_LINES]
    totals: dict[str, float] = {}
    for row in shown:
        for name, pair in row.by.items():
            totals[name] = totals.get(name, 0.0) + max(pair)
    ranked = sorted((name for name in totals if not name.startswith("[")), key=lambda name: (-totals[name], name))
    kept = set(ranked[:_FUNCTIONS])
    sums: dict[tuple[str, str], tuple[float, float]] = {}
    for row in shown:
        for name, (before, after) in row.by.items():
            key = (name if name in kept else _OTHERS, row.line)
            old = sums.get(key, (0.0, 0.0))
            sums[key] = (old[0] + before, old[1] + after)
    found = [Band(*key, *pair) for key, pair in sums.items()]
    least = _LEAST * sum(band.size for band in found)
    return [band for band in found if band.size > least]


class _Column:
    """Where the nodes of one side stand: as high as their bands, largest first, and where their next band begins."""

    def __init__(self, totals: dict[str, float], scale: float, top: float) -> None:
        self.places: dict[str, tuple[float, float]] = {}
        for name in sorted(totals, key=lambda name: (name == _OTHERS, -totals[name], name)):
            height = totals[name] * scale
            self.places[name] = (top, height)
            top += height + _GAP
        self.bottom = top
        self._next = {name: place[0] for name, place in self.places.items()}

    def take(self, name: str, height: float) -> float:
        """The upper edge of the next band at ``name``."""
        at = self._next[name]
        self._next[name] = at + height
        return at


def _short(name: str) -> str:
    """Without the function that acted for it: ``copy_process`` of ``copy_process (_raw_write_lock_irq)``."""
    return name.partition(" (")[0]


def _totals(found: Sequence[Band], by: str) -> dict[str, float]:
    sums: dict[str, float] = {}
    for band in found:
        name = str(getattr(band, by))
        sums[name] = sums.get(name, 0.0) + band.size
    return sums


def _draw(area: svg.Canvas, found: Sequence[Band], scale: float) -> None:
    left, right = _Column(_totals(found, "function"), scale, area.top), _Column(_totals(found, "line"), scale, area.top)
    middle = (area.left + area.right) / 2
    for band in sorted(found, key=lambda band: (right.places[band.line][0], left.places[band.function][0])):
        height = band.size * scale
        y0, y1 = left.take(band.function, height), right.take(band.line, height)
        path = (
            f"M{area.left:.4g},{y0:.4g} C{middle:.4g},{y0:.4g} {middle:.4g},{y1:.4g} {area.right:.4g},{y1:.4g} "
            f"L{area.right:.4g},{y1 + height:.4g} C{middle:.4g},{y1 + height:.4g} {middle:.4g},{y0 + height:.4g} "
            f"{area.left:.4g},{y0 + height:.4g} Z"
        )
        drawn = svg.add(area.root, "path", class_=f"fill v-{band.word}", d=path, fill_opacity=0.5)
        svg.add(drawn, "title", f"{band.function} moves {band.line}: {band.before:.2f} -> {band.after:.2f}")
    for column, x, anchor in ((left, area.left - 6, "end"), (right, area.right + 6, "start")):
        short = Counter(map(_short, column.places))
        for name, (top, height) in column.places.items():
            text = clip(name if short[_short(name)] > 1 else _short(name), _NAME)
            label = svg.add(area.root, "text", text, class_="label", x=x, y=top + height / 2 + 4)
            label.set("text-anchor", anchor)
            svg.add(label, "title", name)


def _who(row: MovedRow) -> str:
    ranked = sorted(row.by, key=lambda name: (-max(row.by[name]), name))
    return ", ".join(f"{name} {row.by[name][0]:.2f} -> {row.by[name][1]:.2f}" for name in ranked[:3]) or "-"


def figure(item: MovedDiff, number: int) -> Figure | None:
    """Functions on the left, lines on the right; None where nothing moves."""
    found = bands(item.rows)
    if not found:
        return None
    title = f"Cache lines that move between CPUs: {full_name(item.cell)}"
    title += f", {item.baseline_label} to {item.patched_label}" if item.patched_label else f", {item.baseline_label}"
    total = sum(band.size for band in found)
    nodes = max(len(_totals(found, by)) for by in ("function", "line"))
    text = "; ".join(f"{row.line} {row.baseline:.2f} to {row.patched:.2f}" for row in item.rows[:_LINES])
    scale = _HEIGHT / total
    area = svg.canvas(f"flow{number}", title, text, _HEIGHT + _GAP * nodes + 70, left=172, right=172)
    _draw(area, found, scale)
    colours = "red: more often than before, green: less often; as wide as it is on the kernel with more"
    compared = colours if item.patched_label else "the wider, the more often"
    return Figure(
        name=f"flow{number}",
        title=title,
        caption=f"Which function (left) moves which line (right), transfers per operation; {compared}. A model of "
        "coherence alone.",
        markup=area.markup(),
        header=("Line", item.baseline_label, item.patched_label or "-", "False sharing", "Who"),
        rows=tuple(
            (row.line, f"{row.baseline:.3f}", f"{row.patched:.3f}", f"{row.false_sharing:.0%}", _who(row))
            for row in item.rows
        ),
    )
