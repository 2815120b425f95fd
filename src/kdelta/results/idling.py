# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether operations wait on one kernel where on the other they do not, which no count of instructions tells. Pure.

On one CPU the idle task runs in an interval only where every task waits: for a timer, a grace period of RCU, a device.
A patch that had pipe_release() wait for RCU was "+1.27 %" of a shell script. Where other tasks run meanwhile, as those
of RCU itself do, there is no idling: a grace period of one CPU is over once it has switched tasks, one of many CPUs
takes milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.model import CellResult, Profile
from kdelta.results.warnings import Idles
from kdelta.verdict.work import INSTRUCTIONS

_LOOP = ("do_idle", "cpu_startup_entry")  # the second holds the first where the compiler inlined it
# kernel/rcu/tree.c and tree_exp.h, update.c, srcutree.c, tasks.h: who waits for a grace period.
_GRACE = (
    "synchronize_rcu", "synchronize_rcu_normal", "synchronize_rcu_expedited", "__wait_rcu_gp", "synchronize_srcu",
    "__synchronize_srcu", "synchronize_rcu_tasks_generic", "rcu_barrier",
)  # fmt: skip
_LEAST = 10.0  # instructions of it an operation: a wait has some 40 in Linux 6.12, 80 where the idle CPU also ticks
_TIMES = 1.5  # both kernels wait; one of them so much more often


def spent(profile: Profile, names: Sequence[str]) -> float:
    """Instructions of functions, per operation."""
    return sum(profile.functions[name][0] for name in names if name in profile.functions) / profile.ops


def waits(profile: Profile) -> bool:
    """Whether all tasks slept at a time: for a timer, a grace period of RCU, a device."""
    return spent(profile, _LOOP) >= _LEAST


def told(row: CellResult, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of one CPU; with a warning where under all seeds its operations wait more often, or less.

    ``before`` and ``after`` are the profiles of all seeds of its two kernels.
    """
    if row.metric != INSTRUCTIONS or row.state != "ok" or not before or not after:
        return row
    for names, most in ((_LOOP, math.inf), (_GRACE, _LEAST)):  # for RCU, releases wait in other functions, or in more
        old, new = ([spent(one, names) for one in side] for side in (before, after))
        less, more = (old, new) if max(old) <= min(new) else (new, old)
        if min(more) - max(less) >= _LEAST and min(more) >= _TIMES * max(less) and max(less) < most:
            found = Idles(more=more is new, anew=max(less) < _LEAST, grace=names is _GRACE)
            return replace(row, warnings=(*row.warnings, found))
    return row
