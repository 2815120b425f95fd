# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the calls of two kernels part: what each function cost more or less where it is called as often, and what was
called otherwise, with all that is called from there. Pure.

Who is told that memset costs less asks for whom: a tree of calls knows. Each instruction of the difference stands in
one place, so the places add up to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution.stack_diff import Frame

_AS_OFTEN = 0.02  # of the calls: slabs are refilled and ticks come now and then
_EXPLAINED = 0.5  # of a difference by how often a function is called, where that is told of it


class Parting(Struct, frozen=True, kw_only=True):
    """A place in the tree of calls: instructions per operation and calls per operation, the baseline's first.

    ``whole``: it is called otherwise, and ``cost`` is with all that it called; else of the function alone. ``path``:
    its callers, the outermost first, and the function; where it parts in several ``places``, that of the largest.
    """

    path: tuple[str, ...]
    was: str  # its name on the baseline, where that is another
    whole: bool
    cost: tuple[float, float]
    calls: tuple[float, float]
    places: int = 1
    joined: tuple[str, ...] = ()  # of one kernel alone, whose code is counted with it

    @property
    def name(self) -> str:
        """The function."""
        return self.path[-1]

    @property
    def delta(self) -> float:
        """Instructions per operation more on the patched kernel."""
        return self.cost[1] - self.cost[0]


def partings(root: Frame) -> tuple[Parting, ...]:
    """All places that differ, the largest difference first; they add up to the root's."""
    found: dict[tuple[str, str, bool, bool], Parting] = {}
    for one in sorted(_places(root), key=lambda place: (-abs(place.delta), place.path)):
        # what is called no more at one place and more at another is no one thing
        kind = (one.name, one.was, one.whole, one.whole and one.delta > 0)
        found[kind] = _both(found[kind], one) if kind in found else one
    return tuple(sorted(found.values(), key=lambda place: (-abs(place.delta), place.path)))


def _places(root: Frame) -> Iterator[Parting]:
    waiting: list[tuple[tuple[str, ...], Frame]] = [((root.name,), root)]
    while waiting:
        path, frame = waiting.pop()
        otherwise = frame is not root and _otherwise(frame)
        cost, calls = frame.whole if otherwise else frame.own, frame.calls
        if cost[0] != cost[1]:
            yield Parting(
                path=path,
                was=frame.was,
                whole=otherwise,
                cost=(cost[0], cost[1]),
                calls=(calls[0], calls[1]),
                joined=tuple(sorted(frame.joined)),
            )
        if not otherwise:
            waiting += [((*path, name), child) for name, child in frame.children.items()]


def _otherwise(frame: Frame) -> bool:
    """Whether it is called more or less often, and differs by that: what a call costs is asked within it."""
    if not all(frame.whole):
        return True
    before, after = frame.calls
    # 0 of what was entered on the other side of the mark, as the system call that reads it
    if not (before and after) or abs(after - before) <= _AS_OFTEN * max(before, after):
        return False
    by_calls, delta = (after - before) * frame.whole[0] / before, frame.whole[1] - frame.whole[0]
    return by_calls * delta > 0 and abs(by_calls) >= _EXPLAINED * abs(delta)


def _both(largest: Parting, other: Parting) -> Parting:
    return replace(
        largest,
        cost=(largest.cost[0] + other.cost[0], largest.cost[1] + other.cost[1]),
        calls=(largest.calls[0] + other.calls[0], largest.calls[1] + other.calls[1]),
        places=largest.places + 1,
        joined=tuple(sorted({*largest.joined, *other.joined})),
    )
