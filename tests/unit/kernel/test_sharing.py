# SPDX-License-Identifier: GPL-2.0-or-later
"""What changed lines have to do with memory that CPUs share: told apart from values, constants, types and comments."""

from __future__ import annotations

import time

import pytest

from kdelta.kernel import sharing


def names(*lines: str, heading: str = "", path: str = "fs/eventfd.c") -> tuple[str, ...]:
    return sharing.names([f"--- a/{path}", f"+++ b/{path}", f"@@ -1,3 +1,3 @@ {heading}", *lines])


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("+static atomic_long_t nr_opens = ATOMIC_LONG_INIT(0);",), ("nr_opens",)),
        (("+\tstatic atomic_t seen;",), ("seen",)),
        (("+static unsigned long reads, writes;",), ("reads",)),
        (("+static struct foo *spare[NR_CPUS] __aligned(64);",), ("spare",)),
        (("+static DEFINE_IDA(ids);", "+DEFINE_SPINLOCK(big);"), ("ids", "big")),
        (("-__cacheline_aligned DEFINE_RWLOCK(a);", "+DEFINE_RWLOCK(a);"), ("a", "__cacheline_aligned")),
        (("-static int most = 2;", "+static int most = 3;"), ()),  # another value
        (("+static const int most = 3;", "+static const char *const words[] = {};"), ()),
        (("+static bool checks __initdata = true;", "+static int once __ro_after_init;"), ()),
        (("+extern int most;", "+struct foo;", "+typedef int foo_t;"), ()),
        (("+static int f(void);", "+static inline int g(int a) { return a; }"), ()),
        (("+\tatomic_inc(&x->n);", "-\tthis_cpu_inc(n);"), ("atomic_inc", "this_cpu_inc")),
        (("-\tif (!READ_ONCE(x->seen))",), ("READ_ONCE",)),
        (("+\twhile (!try_cmpxchg(&x->n, &old, new))", "+\t\tset_bit(1, &x->flags);"), ("try_cmpxchg", "set_bit")),
        (("+\t__set_bit(1, map);", "+\tsmp_processor_id();", "+\txchg_mode = 1;"), ()),
        (("-\tspin_lock(&x->lock);", "+\tspin_lock(&x->lock);"), ("spin_lock",)),  # it moved: another scope
        (("+\trcu_read_lock();", "+\tlockdep_assert_held(&x->lock);"), ()),
        (("+\t/* atomic_inc() is dear */", "+\t * so is spin_lock()"), ()),
        (("+\tstruct percpu_counter *n;",), ()),
    ],
)  # fmt: skip
def test_what_a_changed_line_shares(lines: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert names(*lines) == found


def test_a_member_of_a_struct_moves_what_lies_beside_it() -> None:
    """Its lines call nothing: a lock put beside what all read was "as many instructions", and no more was said."""
    assert names("+\tspinlock_t lock;", heading="struct foo {") == ("struct foo",)
    assert names(" struct bar {", "-\tint a;", "+\tint a ____cacheline_aligned_in_smp;") == (
        "struct bar", "____cacheline_aligned_in_smp",
    )  # fmt: skip
    assert names(" };", "+static inline void f(void)", "+\tint a;", heading="struct foo {") == ()
    assert names("+\t.poll = foo_poll,", heading="static const struct file_operations foo = {") == ()
    assert names("+\tspinlock_t lock;", heading="struct foo {", path="Documentation/foo.rst") == ()


def test_code_of_locks_themselves_is_named_by_its_file() -> None:
    """``#if USE_CMPXCHG_LOCKREF`` to ``#if 0`` calls nothing, and has each lockref take its lock."""
    assert names("-#if USE_CMPXCHG_LOCKREF", "+#if 0", path="lib/lockref.c") == ("lib/lockref.c",)
    assert names("-\tint loops = 1;", "+\tint loops = 9;", path="kernel/locking/qspinlock.c") == (
        "kernel/locking/qspinlock.c",
    )
    assert names("+", "+ * a comment", path="lib/lockref.c") == ()


@pytest.mark.parametrize(
    "piece",
    [
        "b",
        "b ",
        "__a ",
        "static ",
        "a, ",
        "* ",
        "[",
        "_a(",
        "atomic_",
        "DEFINE_IDA(",
        "cmpxchg_",
        "(",
        " ",
        "__cacheline_",
    ],
)
def test_a_line_without_end_is_read_at_once(piece: str) -> None:
    """Words that may be one or several took 2.5 s of a name with twenty letters."""
    began = time.process_time()
    for line in (f"+static int a {piece * 4_000}(", f"+\t{piece * 4_000}", f"+{piece * 4_000} = 1"):
        names(line)
        names(line, heading="struct foo {")
    assert time.process_time() - began < 2
