# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a kernel hands more work to later, which an interval may end before. Pure.

A patch by which epoll_ctl(2) freed its items in a callback of RCU was "improved", -1.20 %: what the callback did, some
2,000 instructions an item, was in no interval. Where it is no gain the cost may be larger than it is told to be.

Who hands items over as a list has a work queued once for dozens of them: close(2) of pipes by a worker was "improved",
-39 %, and next to nothing was spent to queue works. That shows where as many objects are made, and far fewer freed.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.attribution.later import FREERS, MAKERS, TAKERS
from kdelta.model import CellResult, Profile
from kdelta.results.idling import spent
from kdelta.results.warnings import PutsOff
from kdelta.verdict.work import INSTRUCTIONS

_JUDGED = ("improved", "regressed", "same")
_LEAST = 10.0  # instructions an operation: to hand one item over takes some 50 and more
_LEAST_SHARE = 1e-5  # of all that an operation executes: long ones have ticks, which arm timers
_TIMES = 1.5
_FREED = 0.5  # of what was spent to free objects; less is left where half of them are freed later
_MADE = 0.9  # of what was spent to make them: their allocator's refills move it


def told(row: CellResult, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of instructions; with a warning where it hands over more under all seeds.

    ``before`` and ``after`` are the profiles of all seeds of its two kernels.
    """
    if row.metric != INSTRUCTIONS or row.verdict not in _JUDGED or not before or not after:
        return row
    found, least = [], max(_LEAST, _LEAST_SHARE * max(one.total[0] / one.ops for one in after))
    for whom, takers in TAKERS.items():
        old, new = max(spent(one, takers) for one in before), min(spent(one, takers) for one in after)
        if new - old >= least and new >= _TIMES * old:
            found.append(whom)
    if not found and not _unfreed(before, after):
        return row
    return replace(row, warnings=(*row.warnings, PutsOff(tuple(found), gain=row.verdict == "improved")))


def _unfreed(before: Sequence[Profile], after: Sequence[Profile]) -> bool:
    """Whether under all seeds objects are made as before, and what frees them is not executed."""
    freed, left = min(spent(one, FREERS) for one in before), max(spent(one, FREERS) for one in after)
    made, making = max(spent(one, MAKERS) for one in before), min(spent(one, MAKERS) for one in after)
    return made > 0 and making >= _MADE * made and freed - left >= _LEAST and left <= _FREED * freed
