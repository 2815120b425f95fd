# SPDX-License-Identifier: GPL-2.0-or-later
"""Who takes work that runs later, outside of what is counted: the kernel's functions by what they are.

kernel/rcu/tree.c, srcutree.c and tasks.h, mm/slab_common.c and mm/slub.c (kfree_rcu()), kernel/workqueue.c, kthread.c,
irq_work.c, softirq.c, kernel/time/timer.c.
"""

from __future__ import annotations

TO_RCU = (
    "call_rcu", "call_rcu_hurry", "__call_rcu_common", "call_srcu", "__call_srcu", "call_rcu_tasks",
    "call_rcu_tasks_generic",
)  # fmt: skip
TAKERS = {
    # kfree_rcu() with them: 7.3 frees so what 6.12 gave to call_rcu(), as nodes of maple trees
    "callbacks of RCU": (*TO_RCU, "kvfree_call_rcu", "kfree_call_rcu", "__kfree_rcu_sheaf"),
    "a work queue": (
        "queue_work_on", "__queue_work", "queue_delayed_work_on", "__queue_delayed_work", "mod_delayed_work_on",
        "queue_rcu_work", "kthread_queue_work",
    ),
    "an interrupt's work": ("irq_work_queue", "__irq_work_queue_local", "__tasklet_schedule_common"),
    # under each name of theirs: which one is inlined into another differs by compiler. Of hrtimers wakes come, as of
    # nanosleep(2): that an operation waits is told by results/idling.py.
    "a timer": (
        "mod_timer", "__mod_timer", "mod_timer_pending", "timer_reduce", "add_timer", "add_timer_local",
        "add_timer_global", "add_timer_on",
    ),
}  # fmt: skip
# Objects of slabs are made and given back by these: mm/slub.c of 6.1 to 7.3.
MAKERS = (
    "kmem_cache_alloc", "kmem_cache_alloc_lru", "kmem_cache_alloc_node", "kmem_cache_alloc_bulk", "__kmalloc",
    "__kmalloc_node", "__kmalloc_cache", "__kmalloc_cache_node", "__kmalloc_node_track_caller", "kmalloc_trace",
    "kmalloc_node_trace", "__kmem_cache_alloc_node",
)  # fmt: skip
FREERS = ("kmem_cache_free", "kmem_cache_free_bulk", "kfree", "__kmem_cache_free")
