# SPDX-License-Identifier: GPL-2.0-or-later
"""Building blocks of charts as inline SVG: scales, ticks, axes. Colours are CSS classes, so that a page can
switch between light and dark. Texts go through ElementTree, which escapes them.

Drawn here and not by plotly because its script alone (4.8 MB) is larger than a page may be, and a page without any
script prints, forwards and reads aloud.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from kdelta.report.text import ends

WIDTH = 500
SERIES = 6  # colours: CSS classes s0..s5
DASHES = 4  # CSS classes d0..d3
_SHAPES = 4  # of markers, one for each round of colours
_SWATCH = (26, 10)  # px


def add(parent: ET.Element, tag: str, text: str = "", **attributes: object) -> ET.Element:
    """Append an element; ``class_`` and ``text_anchor`` become ``class`` and ``text-anchor``; floats are shortened."""
    values = {
        name.rstrip("_").replace("_", "-"): f"{value:.5g}" if isinstance(value, float) else str(value)
        for name, value in attributes.items()
    }
    element = ET.SubElement(parent, tag, values)
    element.text = text or None
    return element


@dataclass(frozen=True)
class Scale:
    """Values to pixels, linear or logarithmic (positive values only)."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Round values inside the range."""
        return log_ticks(self.low, self.high) if self.log else linear_ticks(self.low, self.high, count)


def linear_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten within ``low..high``."""
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low]
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten within ``low..high``; powers only where that would crowd."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    ticks = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    return [tick for tick in ticks if low <= tick <= high]


def span(values: Sequence[float], zero: bool = False, margin: float = 0.06) -> tuple[float, float]:
    """Lowest and highest of ``values`` (and zero) with a margin; never an empty range."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = (high - low) * margin or abs(high) * margin or 1.0
    return low - (room if low else 0.0), high + (room if high else 0.0)


@dataclass(frozen=True)
class Canvas:
    """An SVG with a plot area inside margins; named for screen readers by its title and description."""

    root: ET.Element
    left: float
    right: float
    top: float
    bottom: float

    def markup(self) -> str:
        """The element as text for the page."""
        return ET.tostring(self.root, encoding="unicode")


def canvas(
    name: str, title: str, description: str, height: float, left: float = 78, right: float = 16, top: float = 24
) -> Canvas:
    """An empty chart. ``name`` must be unique in the page: it becomes the ids of title and description."""
    root = ET.Element("svg", viewBox=f"0 0 {WIDTH} {height:g}", role="img")
    root.set("class", "chart")
    root.set("aria-labelledby", f"{name}-t {name}-d")
    add(root, "title", title, id=f"{name}-t")
    add(root, "desc", description, id=f"{name}-d")
    return Canvas(root, left, WIDTH - right, top, height - 40)


def axis_y(area: Canvas, scale: Scale, label: str, texts: Sequence[tuple[float, str]]) -> None:
    """Horizontal grid lines with their values; ``label`` (the unit, where the values lack it) above them."""
    for value, text in texts:
        y = scale(value)
        add(area.root, "line", class_="grid", x1=area.left, x2=area.right, y1=y, y2=y)
        add(area.root, "text", text, class_="tick", x=area.left - 8, y=y + 4, text_anchor="end")
    if label:
        add(area.root, "text", label, class_="axis", x=2, y=area.top - 8)


def axis_x(area: Canvas, texts: Sequence[tuple[float, str]], label: str, grid: bool = False) -> None:
    """Labels at pixel positions beneath the plot area; long ones are clipped to the room they have."""
    room = (area.right - area.left) / max(1, len(texts))
    for x, text in texts:
        if grid:
            add(area.root, "line", class_="grid", x1=x, x2=x, y1=area.top, y2=area.bottom)
        short = ends(text, max(4, int(room / 6.5)))
        element = add(area.root, "text", short, class_="tick", x=x, y=area.bottom + 16, text_anchor="middle")
        if short != text:
            add(element, "title", text)
    add(area.root, "line", class_="base", x1=area.left, x2=area.right, y1=area.bottom, y2=area.bottom)
    middle = (area.left + area.right) / 2
    add(area.root, "text", label, class_="axis", x=middle, y=area.bottom + 33, text_anchor="middle")


def marks(series: int) -> tuple[str, str, int]:
    """(colour, dash, shape) of a series: CSS classes and a number; the first 24 are all different."""
    turn = series // SERIES
    return f"s{series % SERIES}", f"d{(series + turn) % DASHES}", turn % _SHAPES


def marker(parent: ET.Element, x: float, y: float, series: int) -> None:
    """A dot, square, triangle or diamond."""
    colour, _, shape = marks(series)
    if not shape:
        add(parent, "circle", class_=f"dot {colour}", cx=float(x), cy=float(y), r=3)
        return
    path = ("", "m-3-3h6v6h-6z", "m0-4l4 7h-8z", "m0-4.5l4.5 4.5l-4.5 4.5l-4.5-4.5z")[shape]
    add(parent, "path", class_=f"dot {colour}", d=f"M{x:.1f} {y:.1f}{path}")


def polyline(area: Canvas, points: Sequence[tuple[float, float]], series: int) -> None:
    """A line through pixel positions, told apart from others by colour, dash and marker."""
    colour, dash, _ = marks(series)
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    add(area.root, "path", class_=f"line {colour} {dash}", d=path)
    for x, y in points:
        marker(area.root, x, y, series)


def swatch(series: int) -> str:
    """What stands before its name in a legend."""
    width, height = _SWATCH
    root = ET.Element("svg", viewBox=f"0 0 {width} {height}", width=str(width), height=str(height))
    root.attrib |= {"class": "swatch", "aria-hidden": "true"}
    colour, dash, _ = marks(series)
    add(root, "path", class_=f"line {colour} {dash}", d=f"M0 {height / 2:g}H{width}")
    marker(root, width / 2, height / 2, series)
    return ET.tostring(root, encoding="unicode")
