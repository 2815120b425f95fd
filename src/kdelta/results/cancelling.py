# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a figure that is the same hides system calls that cost less and others that cost more. Pure.

A case adds to an eventfd and reads it back. A patch that moved 200 instructions from the one call to the other, a third
of each, was "as many instructions". Functions would tell it too, but those also trade places where one is inlined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from kdelta.model import CellResult, Profile
from kdelta.results.warnings import CallMoved, CancelsOut
from kdelta.verdict.words import DELTA_PERCENT
from kdelta.verdict.work import INSTRUCTIONS

_AS_OFTEN = 0.005  # of the calls of a side: by so much their number may differ
_NAMED = 3


def told(row: CellResult, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of one CPU; with a warning where both what calls save and what they add is a change of its own.

    ``before`` and ``after`` are the profiles of all seeds of its two kernels.
    """
    if row.metric != INSTRUCTIONS or row.verdict != "same" or not row.baseline or not before or not after:
        return row
    least = DELTA_PERCENT / 100.0 * row.baseline
    moved = sorted(_moved(before, after), key=lambda one: -abs(one.delta))
    fewer, more = ([one for one in moved if one.delta * sign > 0] for sign in (-1, 1))
    if min(abs(math.fsum(one.delta for one in side)) for side in (fewer, more)) < least:
        return row
    found = CancelsOut(fewer=tuple(fewer[:_NAMED]), more=tuple(more[:_NAMED]))
    return replace(row, warnings=(*row.warnings, found))


def _moved(before: Sequence[Profile], after: Sequence[Profile]) -> list[CallMoved]:
    """The system calls that are made as often, and cost otherwise under all seeds."""
    names = set.intersection(*(set(one.system_calls) for one in (*before, *after)))
    found = []
    for name in sorted(name for name in names if not name.startswith("[")):
        (calls, was), (then, now) = (_per_op(side, name) for side in (before, after))
        apart = max(was) < min(now) or max(now) < min(was)
        if apart and abs(then - calls) <= _AS_OFTEN * calls and median(was) > 0:
            delta = median(now) - median(was)
            found.append(CallMoved(name, delta, 100.0 * delta / median(was)))
    return found


def _per_op(side: Sequence[Profile], name: str) -> tuple[float, list[float]]:
    """How often an operation makes a system call, and its instructions under each seed."""
    calls = median(one.system_calls[name].calls / one.ops for one in side)
    return calls, [one.system_calls[name].instructions / one.ops for one in side]
