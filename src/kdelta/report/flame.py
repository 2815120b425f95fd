# SPDX-License-Identifier: GPL-2.0-or-later
"""A differential flame graph, callers above: one colour for what costs more, one for what costs less.

Each call stack is as wide as on the kernel where it is dearer, so that what vanished is seen as well; a frame is as
wide as all its stacks, which may be more than it costs on either. Its colour is that of its own change with all that
it called, the stronger the larger the part that changed. As SVG it zooms by links; flame_page.py has the form that
needs no server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from xml.etree import ElementTree as ET

from msgspec import Struct
from rich.cells import cell_len

from kdelta.attribution.stack_diff import Frame
from kdelta.attribution.stacks import ROOT
from kdelta.report.figures import count
from kdelta.report.scrub import clean
from kdelta.report.svg import add
from kdelta.report.text import fit
from kdelta.units import counted

WIDTH, ROW, _LETTER, _LEAST = 1140, 19, 6.6, 0.7
BY_KEYS = 0.02  # of the width: narrower frames are no stops of the tabulator key, their callers enlarge them
Link = Callable[[Sequence[str]], str]


class Place(Struct, frozen=True):
    """Where a frame stands: ``left`` and ``wide`` as parts of the whole graph's width, ``row`` from above."""

    frame: Frame
    left: float
    wide: float
    row: int
    path: tuple[str, ...]  # the names of its callers and its own, the root left out


def places(top: Frame, row: int = 0, path: Sequence[str] = ()) -> Iterator[Place]:
    """``top`` with all below it, a caller before those it called, those from the left, as the tabulator key goes."""
    scale = 1 / (top.width or 1)
    waiting = [Place(top, 0.0, top.width * scale, row, tuple(path))]
    while waiting:
        place = waiting.pop()
        yield place
        left, below = place.left, []
        for child in sorted(place.frame.children.values(), key=lambda one: one.name):
            wide = child.width * scale
            below.append(Place(child, left, wide, place.row + 1, (*place.path, child.name)))
            left += wide
        waiting += reversed(below)


def way(frame: Frame) -> str:
    """Whether it costs more (``up``), less (``down``) or the same (``even``)."""
    before, after = frame.whole
    return "up" if after > before else "down" if after < before else "even"


def strength(frame: Frame) -> float:
    """How strongly it is coloured, 0.25 to 1: the larger the part of it that changed, the stronger."""
    before, after = frame.whole
    return 0.25 + 0.75 * min(2 * abs(after - before) / max(before, after, 1e-9), 1)


def tells(frame: Frame, each: str = "operation") -> str:
    """A frame in words; its counts are for ``each`` operation, or each part of one."""
    (before, after), own, calls = frame.whole, frame.own, frame.calls
    delta = count(after - before, signed=True) + (f" ({(after / before - 1) * 100:+.1f} %)" if before and after else "")
    was = f" (before: {clean(frame.was)})" if frame.was else ""
    state = was or (" (new)" if not before and after else " (gone)" if before and not after else "")
    text = f"{clean(frame.name)}{state}: {count(before)} to {count(after)} instructions per {each}, {delta}"
    if frame.name == ROOT:  # which is no function
        return text
    return f"{text}; itself {count(own[0])} to {count(own[1])}; entered {count(calls[0])} to {count(calls[1])} times"


def change(frame: Frame) -> str:
    """By how many instructions it differs with all that it called; "" where by less than half of one."""
    before, after = frame.whole
    return f"{after - before:+.0f}" if abs(after - before) >= 0.5 else ""


def left_out(narrow: int) -> str:
    """How many frames are not drawn; "" where all are."""
    return f"{counted(narrow, 'frame')} {'is' if narrow == 1 else 'are'} too narrow to be drawn." if narrow else ""


def lost(root: Frame, labels: Sequence[str], each: str = "operation") -> str:
    """How many calls the plugin could not follow, which is what the root's ``calls`` are, on each kernel."""
    told = [f"{count(calls)} on {label}" for calls, label in zip(root.calls, labels, strict=True) if calls]
    if not told:
        return "Every call was followed."
    return (
        f"Calls per {each} that could not be followed: {', '.join(told)}; what they cost is in the nearest caller "
        "that was."
    )


def _named(frame: Frame, search: str) -> bool:
    """Whether ``search`` is in its name, or in the one that it had on the baseline."""
    return any(search.lower() in name.lower() for name in (frame.name, frame.was))


def searched(top: Frame, search: str, each: str = "operation") -> str:
    """How many frames a search finds, and what they cost together; "" where nothing is searched for."""
    if not search:
        return ""
    hits = [place for place in places(top) if _named(place.frame, search)]
    if not hits:
        return f"No frame here has {clean(search)} in its name."
    narrow = sum(place.wide < _LEAST / WIDTH for place in hits)
    before, after = _together(top, search)
    return (
        f"{counted(len(hits), 'frame')} with {clean(search)} in the name"
        + (f", {narrow} of them too narrow to be drawn" if narrow else "")
        + f": with all that was called there {count(before)} to {count(after)} instructions per {each}"
        + f", {count(after - before, signed=True)}."
    )


def _together(top: Frame, search: str) -> tuple[float, float]:
    """What the frames that a search finds cost on both kernels, one within another counted once."""
    waiting, before, after = [top], 0.0, 0.0
    while waiting:
        frame = waiting.pop()
        if _named(frame, search):
            before, after = before + frame.whole[0], after + frame.whole[1]
        else:
            waiting += frame.children.values()
    return before, after


def _draw(into: ET.Element, frame: Frame, x: float, y: int, wide: float, found: bool, link: str, each: str) -> None:
    parent = add(into, "a", href=link) if link else add(into, "g")
    if link and wide < BY_KEYS * WIDTH:
        parent.set("tabindex", "-1")
    box = add(
        parent, "rect", x=x, y=y, width=wide, height=ROW - 1, class_=f"frame {way(frame)}{' found' if found else ''}"
    )
    box.set("fill-opacity", "1" if way(frame) == "even" else f"{strength(frame):.2f}")
    add(parent, "title", tells(frame, each))
    if (letters := int((wide - 6) / _LETTER)) >= 3:
        name, figure = fit(clean(frame.name), letters), change(frame)
        text = add(parent, "text", name, x=x + 3, y=y + ROW - 6)
        if figure and cell_len(name) + 2 + len(figure) <= letters:
            add(text, "tspan", figure, dx=2 * _LETTER, class_="change")


def markup(above: Sequence[Frame], link: Link | None, search: str = "", each: str = "operation") -> tuple[str, int]:
    """(the SVG of the last frame of ``above`` with all below it under its callers, how many frames were too narrow)."""
    narrow, depth = 0, 0
    role = "group" if link else "img"  # the links of an image would be out of reach
    image = ET.Element("svg", {"class": "flame", "role": role, "aria-label": "differential flame graph"})
    names = [frame.name for frame in above[1:]]
    for row, frame in enumerate(above[:-1]):
        _draw(image, frame, 0, row * ROW, WIDTH, False, link(names[:row]) if link else "", each)
    for place in places(above[-1], len(above) - 1, names):
        if place.wide < _LEAST / WIDTH:
            narrow += 1
            continue
        depth = max(depth, place.row + 1)
        hit = bool(search) and _named(place.frame, search)
        x, y = place.left * WIDTH, place.row * ROW
        _draw(image, place.frame, x, y, place.wide * WIDTH, hit, link(place.path) if link else "", each)
    image.set("viewBox", f"0 0 {WIDTH} {depth * ROW}")
    return ET.tostring(image, encoding="unicode"), narrow
