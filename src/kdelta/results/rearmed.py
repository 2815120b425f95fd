# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether most of a change is that timers are started more often, which tasks that switch do by virtual time. Pure.

In Linux 7.3 a switch of tasks moves the scheduler's tick (hrtick, on by default) where its expiry changes by more than
5 us (kernel/sched/core.c, hrtick_needs_rearm). An exact guest's clock takes a ns an instruction, so two tasks that
switch after some 5000 instructions each are at that limit: a patch that adds 20 instructions to eventfd_write() was
+2.13 %, with 2 starts an operation where the baseline had 1.03. A real CPU executes several times as much in 5 us.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.attribution.profiles import median_profile
from kdelta.model import CellResult, Profile
from kdelta.results.idling import spent
from kdelta.results.warnings import Rearms
from kdelta.verdict.work import INSTRUCTIONS

_STARTS = ("hrtimer_start_range_ns", "__hrtimer_start_range_ns")
_SWITCHES = ("finish_task_switch", "__schedule")
_CHANGED = ("improved", "regressed")
_LEFT = 0.5  # of a change: with less beside it, the starts are most of it
_TIMES = 2.1  # at a limit every switch starts it or every second one; what is more is another way to switch
_ALIKE = 0.02  # by which the two functions may change otherwise: else their code differs, and not how often they run


def told(row: CellResult, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of one CPU; with a warning where less than half of its change is left without starts of timers.

    ``before`` and ``after`` are the profiles of all seeds of its two kernels.
    """
    if row.metric != INSTRUCTIONS or row.verdict not in _CHANGED or not row.baseline or not before or not after:
        return row
    change = row.baseline * (row.effect_percent or 0.0) / 100.0
    old, new = (median_profile(side) for side in (before, after))
    costs = [(spent(old, (name,)), spent(new, (name,))) for name in _STARTS]
    if not math.isfinite(change) or not change or not all(map(all, costs)) or not spent(old, _SWITCHES):
        return row
    starts = sum(more - less for less, more in costs)
    first, second = (more / less for less, more in costs)
    by_calls = abs(first / second - 1.0) <= _ALIKE and 1.0 / _TIMES <= first <= _TIMES
    if not by_calls or (change - starts) / change >= _LEFT:
        return row
    return replace(row, warnings=(*row.warnings, Rearms(first, 100.0 * (change - starts) / row.baseline)))
