# SPDX-License-Identifier: GPL-2.0-or-later
"""A differential flame graph as SVG, callers above: one colour for what costs more, one for what costs less.

A frame is as wide as what its stacks cost on the dearer kernel, so that what vanished is seen as well. Its colour is
that of its own change with all that it called, the stronger the larger the part that changed. Zooms by links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.etree import ElementTree as ET

from kdelta.attribution.stack_diff import Frame
from kdelta.report.scrub import clean
from kdelta.report.svg import add
from kdelta.report.text import fit

WIDTH, ROW, _LETTER, _LEAST = 1140, 19, 6.6, 0.7
Link = Callable[[Sequence[str]], str]


def tells(frame: Frame) -> str:
    """A frame in words."""
    (before, after), own, calls = frame.whole, frame.own, frame.calls
    change = f"{after - before:+.5g}" + (f" ({(after / before - 1) * 100:+.1f} %)" if before and after else "")
    was = f" (before: {clean(frame.was)})" if frame.was else ""
    state = was or (" (new)" if not before and after else " (gone)" if before and not after else "")
    return (
        f"{clean(frame.name)}{state}: {before:.5g} to {after:.5g} instructions per operation, {change}; "
        f"itself {own[0]:.5g} to {own[1]:.5g}; entered {calls[0]:.4g} to {calls[1]:.4g} times"
    )


def _draw(into: ET.Element, frame: Frame, x: float, y: int, wide: float, found: bool, link: str) -> None:
    before, after = frame.whole
    changed = abs(after - before) / max(before, after, 1e-9)
    way = "up" if after > before else "down" if after < before else "even"
    parent = add(into, "a", href=link) if link else add(into, "g")
    box = add(parent, "rect", x=x, y=y, width=wide, height=ROW - 1, class_=f"frame {way}{' found' if found else ''}")
    box.set("fill-opacity", f"{0.25 + 0.75 * min(changed * 2, 1):.2f}" if way != "even" else "1")
    add(parent, "title", tells(frame))
    if (letters := int((wide - 6) / _LETTER)) >= 3:
        add(parent, "text", fit(clean(frame.name), letters), x=x + 3, y=y + ROW - 6)


def markup(above: Sequence[Frame], link: Link | None, search: str = "") -> tuple[str, int]:
    """(the SVG of the last frame of ``above`` with all below it under its callers, how many frames were too narrow)."""
    top, narrow, depth = above[-1], 0, 0
    image = ET.Element("svg", {"class": "flame", "role": "img", "aria-label": "differential flame graph"})
    names = [frame.name for frame in above[1:]]
    for row, frame in enumerate(above[:-1]):
        _draw(image, frame, 0, row * ROW, WIDTH, False, link(names[:row]) if link else "")
    scale = WIDTH / (top.width or 1)
    waiting = [(top, 0.0, len(above) - 1, names)]
    while waiting:
        frame, x, row, path = waiting.pop()
        wide = frame.width * scale
        if wide < _LEAST:
            narrow += 1
            continue
        depth = max(depth, row + 1)
        hit = bool(search) and search.lower() in frame.name.lower()
        _draw(image, frame, x, row * ROW, wide, hit, link(path) if link else "")
        for child in sorted(frame.children.values(), key=lambda one: one.name):
            waiting.append((child, x, row + 1, [*path, child.name]))
            x += child.width * scale
    image.set("viewBox", f"0 0 {WIDTH} {depth * ROW}")
    return ET.tostring(image, encoding="unicode"), narrow
