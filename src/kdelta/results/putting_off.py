# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a kernel hands more work to later, which an interval may end before. Pure.

A patch by which epoll_ctl(2) freed its items in a callback of RCU was "improved", -1.20 %: what the callback did, some
2,000 instructions an item, was in no interval. Where it is no gain the cost may be larger than it is told to be.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.attribution.later import TAKERS
from kdelta.model import CellResult, Profile
from kdelta.results.idling import spent
from kdelta.results.warnings import PutsOff
from kdelta.verdict.work import INSTRUCTIONS

_JUDGED = ("improved", "regressed", "same")
_LEAST = 10.0  # instructions an operation: to hand one item over takes some 50 and more
_LEAST_SHARE = 1e-5  # of all that an operation executes: long ones have ticks, which arm timers
_TIMES = 1.5


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
    told_of = PutsOff(tuple(found), gain=row.verdict == "improved")
    return replace(row, warnings=(*row.warnings, told_of)) if found else row
