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
    assert touches.of(diff("-\tchar *page = __getname();", "+\t__putname(page);")).lifetimes == (
        "__getname",
        "__putname",
    )
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


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("-	m = kmalloc(n, GFP_KERNEL_ACCOUNT);\n+	m = kmalloc(n, GFP_KERNEL);", ("GFP_KERNEL_ACCOUNT",)),
        ("-	m = kmalloc(n, GFP_KERNEL_ACCOUNT);\n+	m = kzalloc(n, GFP_KERNEL_ACCOUNT);", ()),
        ("+	gfp |= __GFP_ACCOUNT;\n+	flags |= SLAB_ACCOUNT;", ("SLAB_ACCOUNT", "__GFP_ACCOUNT")),
        ("+	 * __GFP_ACCOUNT is refused here\n 	gfp |= __GFP_ACCOUNT;", ()),
        ("--- a/GFP_KERNEL_ACCOUNT\n+++ b/x.c", ()),
    ],
)
def test_flags_that_charge_are_told_where_there_are_more_or_fewer(lines: str, names: tuple[str, ...]) -> None:
    assert touches.charges(lines.split("\n")) == names


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (("-\twake_up(&x->wait);", "+\twake_up_all(&x->wait);"), ("wake_up_all",)),
        (
            ("-\tif (wait_event_interruptible_exclusive(w, c) < 0)", "+\tif (wait_event_interruptible(w, c) < 0)"),
            ("wait_event_interruptible_exclusive",),
        ),
        (("-\t\twake_up_all(&x->wait);", "+\twake_up_all(&x->wait);"), ()),  # it moved
        (("+\twake_up(&x->wait);",), ()),
        (("+\tentry.flags |= WQ_FLAG_EXCLUSIVE;", "+\t/* wake_up_all() would do */"), ("WQ_FLAG_EXCLUSIVE",)),
    ],
)
def test_what_wakes_more_or_fewer_is_named(lines: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert touches.woken(diff(*lines)) == names


@pytest.mark.parametrize(
    ("call", "lifetime"),
    [
        ("call_rcu", True),
        ("call_srcu", True),
        ("call_rcu_hurry", True),
        ("kfree_rcu", True),
        ("synchronize_rcu", False),
        ("rcu_dereference_protected", False),
        ("rcu_assign_pointer", False),
        ("list_add_tail_rcu", False),
        ("get_max_files", False),
        ("get_nr_dirty_inodes", False),
        ("hrtimer_get_expires", False),
        ("get_file", True),
    ],
)
def test_what_publishes_or_reads_takes_no_lock_and_no_object(call: str, lifetime: bool) -> None:
    """`call_rcu()` was told as a lock, and `get_max_files()`, which reads a limit, as a lifetime."""
    found = touches.of(diff(f"+\t{call}(&x->y);"))
    assert found == touches.Touched(lifetimes=(call,) if lifetime else ())


def test_what_fetches_memory_ahead_is_named_and_nothing_that_only_sounds_so() -> None:
    """Two prefetches an event were "regressed", +3.16 %, because of the two instructions."""
    lines = (
        "+\tprefetch(tmp);",
        "+\tprefetchw(&page->flags);",
        "-\tnet_prefetch(skb->data);",
        "+\tprefetch_sectors(bio);",
    )
    assert touches.prefetches(diff(*lines)) == ("prefetch", "prefetchw", "net_prefetch")
    assert touches.prefetches(diff(*lines), diff(*lines[:2])) == ("net_prefetch",)
    assert not touches.prefetches(diff("+\t * prefetch() does not help", " \tprefetch(x);"))
