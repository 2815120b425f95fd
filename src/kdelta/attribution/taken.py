# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a change is code that moved: a function holds what it called, calls what it held, or calls another for it.

7.0 has the exit of system calls in do_syscall_64() itself: that grew by 27 instructions a call, and three functions of
53 vanished below it. Told alone, what fell by 26 was the cause of a rise. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property

from msgspec.structs import replace

from kdelta.attribution.inlining import Side
from kdelta.model import Because


class _Below:
    """What runs on one kernel alone, below functions that run on both."""

    def __init__(self, side: Side, other: Side) -> None:
        self._side = side
        self.apart = side.counts.keys() - other.counts.keys()

    @cached_property
    def _callers(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for caller in sorted(self._side.counts.keys() & self._side.calls.keys()):
            for called in self._side.calls[caller] & self.apart:
                found.setdefault(called, []).append(caller)
        return found

    def of(self, name: str) -> Mapping[str, float]:
        """Instructions per operation of each that ``name`` calls, through nothing but each other.

        What others call as well counts by the part of ``name`` in its callers, by their own instructions.
        """
        share = {name: 1.0}
        ahead = [name]
        while ahead:
            for called in sorted(self._side.calls.get(ahead.pop(0), frozenset()) & self.apart - share.keys()):
                callers = [(one, self._side.counts[one]) for one in self._callers.get(called, ())]
                whole = math.fsum(count for _, count in callers)
                mine = math.fsum(count * share.get(one, 0.0) for one, count in callers)
                share[called] = mine / whole if whole else 0.0
                ahead.append(called)
        del share[name]
        return {called: self._side.counts[called] * part for called, part in share.items()}

    def above(self, names: Iterable[str]) -> Set[str]:
        """The functions of both kernels below which ``names`` run."""
        seen, ahead = set[str](), list(names)
        while ahead:
            name = ahead.pop()
            if name not in seen:
                seen.add(name)
                ahead += self._callers.get(name, ()) if name in self.apart else ()
        return seen - self.apart


def _kept(names: Sequence[str], mine: _Below, others: _Below, against: Mapping[str, float]) -> float:
    """What of ``names`` stands for something else below the same functions, or was, or is, in these themselves.

    ``against``: by how much functions of both kernels changed the other way.
    """
    kept = []
    for caller in sorted(mine.above(names)):
        below = mine.of(caller)
        whole = math.fsum(below.values())
        made_up = math.fsum(others.of(caller).values()) + against.get(caller, 0.0)
        named = math.fsum(part for called, part in below.items() if called in names)
        kept.append(named * min(1.0, made_up / whole) if whole else 0.0)
    return math.fsum(kept)


def taken(told: Because, old: Side, new: Side) -> Because:
    """``told`` of two kernels, with what of it is code that moved.

    As it is where the calls of a side are not known.
    """
    if not old.calls or not new.calls:
        return told
    vanished, appeared = _Below(old, new), _Below(new, old)
    over = []
    for name, delta in told.changed:
        below = math.fsum(appeared.of(name).values()) - math.fsum(vanished.of(name).values())
        over += [(name, below)] if below * delta < 0 else []
    changes = {name: new.counts[name] - old.counts[name] for name in old.counts.keys() & new.counts.keys()}
    grown = {name: change for name, change in changes.items() if change > 0}
    fallen = {name: -change for name, change in changes.items() if change < 0}
    return replace(
        told,
        taken=tuple(over),
        gone_kept=_kept(told.gone, vanished, appeared, grown),
        new_kept=_kept(told.new, appeared, vanished, fallen),
    )
