# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a kernel hands more work to later, which an interval may end before. Pure.

A patch by which epoll_ctl(2) freed its items in a callback of RCU was "improved", -1.20 %: what the callback did, some
2,000 instructions an item, was in no interval. Where it is no gain the cost may be larger than it is told to be.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.model import CellResult, Profile
from kdelta.results.idling import spent
from kdelta.results.warnings import PutsOff
from kdelta.verdict.work import INSTRUCTIONS

# Who takes work for later: kernel/rcu/tree.c, srcutree.c and tasks.h, mm/slab_common.c and mm/slub.c (kfree_rcu()),
# kernel/workqueue.c, kthread.c, irq_work.c and softirq.c, kernel/time/timer.c.
_TAKERS = {
    "callbacks of RCU": (
        "call_rcu", "call_rcu_hurry", "__call_rcu_common", "call_srcu", "__call_srcu", "call_rcu_tasks_generic",
    ),
    "kfree_rcu()": ("kvfree_call_rcu", "kfree_call_rcu", "__kfree_rcu_sheaf"),
    "a work queue": (
        "queue_work_on", "__queue_work", "queue_delayed_work_on", "__queue_delayed_work", "mod_delayed_work_on",
        "queue_rcu_work", "kthread_queue_work",
    ),
    "a timer": ("mod_timer", "__mod_timer", "add_timer", "add_timer_on", "timer_reduce"),
    "an interrupt's work": ("irq_work_queue", "__irq_work_queue_local", "__tasklet_schedule_common"),
}  # fmt: skip
_JUDGED = ("improved", "regressed", "same")
_LEAST = 10.0  # instructions an operation: to hand one item over takes some 50 and more
_TIMES = 1.5


def told(row: CellResult, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of instructions; with a warning where it hands over more under all seeds.

    ``before`` and ``after`` are the profiles of all seeds of its two kernels.
    """
    if row.metric != INSTRUCTIONS or row.verdict not in _JUDGED or not before or not after:
        return row
    found = []
    for whom, takers in _TAKERS.items():
        old, new = max(spent(one, takers) for one in before), min(spent(one, takers) for one in after)
        if new - old >= _LEAST and new >= _TIMES * old:
            found.append(whom)
    told_of = PutsOff(tuple(found), gain=row.verdict == "improved")
    return replace(row, warnings=(*row.warnings, told_of)) if found else row
