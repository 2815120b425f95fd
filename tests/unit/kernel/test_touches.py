# SPDX-License-Identifier: GPL-2.0-or-later
"""What changed lines call: lifetimes and locks, told apart from function heads and from names that only sound so."""

from __future__ import annotations

import pytest

from kdelta.kernel import touches


def diff(*lines: str) -> list[str]:
    return ["--- a/kernel/sched/core.c", "+++ b/kernel/sched/core.c", "@@ -1,3 +1,3 @@", *lines]


def test_the_head_of_a_function_calls_nothing() -> None:
    """`inline` made `__always_inline` in front of mmdrop() and finish_lock_switch() was told as lifetimes and locks."""
    heads = [f"{sign} void mmdrop(struct mm_struct *mm)" for sign in ("-static inline", "+static __always_inline")]
    assert touches.of(diff(*heads)) == touches.Touched()
    assert touches.of(diff("+\tmmdrop(mm);")).lifetimes == ("mmdrop",)
    assert touches.of(diff("+static void f(void) { kfree(p); }")).lifetimes == ("kfree",)
    assert touches.of(diff("+#define done(p) kfree(p)")).lifetimes == ("kfree",)


@pytest.mark.parametrize(
    ("call", "mutex"),
    [
        ("mutex_lock", True),
        ("mutex_lock_nested", True),
        ("device_lock", True),
        ("device_lock_interruptible", True),
        ("rtnl_unlock", True),
        ("guard", True),
        ("spin_lock", False),
        ("finish_lock_switch", False),
        ("finish_arch_post_lock_switch", False),
        ("rcu_read_lock", False),
        ("down_write", False),
    ],
)
def test_which_locks_may_be_mutexes(call: str, mutex: bool) -> None:
    found = touches.of(diff(f"+\t{call}(&x->lock);"))
    assert found.locks == (call,) and bool(found.mutexes) is mutex
