# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions move a count that should repeat, and which of them are only an interrupt more or less."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.attribution import moved
from kdelta.model import EXACT_COUNTERS, Profile


def profile(ops: int = 1, **functions: int) -> Profile:
    vectors: dict[str, tuple[int, ...]] = {
        name: (count, count // 2, 0, 0, 0, 0, 0) for name, count in functions.items()
    }
    total = tuple(sum(column) for column in zip(*vectors.values(), strict=True)) if vectors else (0,) * 7
    return Profile(ops=ops, functions=vectors, total=total)


def names(*profiles: Profile) -> tuple[tuple[str, ...], int]:
    low, high = moved.extremes(profiles)
    return moved.names(moved.moved(low, high, among=profiles))


def test_the_functions_that_differ_between_seeds_are_named_and_the_rest_counted() -> None:
    quiet = profile(getname=100, slab=10, lru=5, a=10, b=10, same=7)
    other = profile(getname=100, slab=60, lru=25, a=11, b=11, same=7)
    assert names(quiet, other) == (("slab", "lru"), 2)
    assert names(quiet, quiet) == ((), 0)


def test_a_tick_more_is_one_word_whatever_functions_it_runs() -> None:
    work = {"getname": 1000, "update_load_avg": 90}
    tick = {"irq_enter_rcu": 8, "sysvec_apic_timer_interrupt": 26, "tick_nohz_handler": 40, "rcu_core": 70}
    none, one = profile(**work), profile(**{**work, "update_load_avg": 95}, **tick)
    assert names(none, one) == (("timer ticks", "update_load_avg"), 0)
    (group, _) = moved.moved(none, one)
    assert (group.functions, group.before, group.after) == (4, 0.0, 144.0)


def test_with_several_ticks_in_every_seed_only_what_follows_their_number_is_theirs() -> None:
    def ticks(n: int, schedule: int) -> Profile:
        return profile(irq_enter_rcu=8 * n, hrtimer_interrupt=70 * n + n // 2, __schedule=schedule, read=999)

    assert names(ticks(3, 500), ticks(4, 505)) == (("timer ticks", "__schedule"), 0)
    (first, second) = moved.moved(ticks(3, 500), ticks(4, 505))
    assert (first.name, first.functions, second.name) == ("timer ticks", 2, "__schedule")


def test_a_further_seed_clears_a_function_that_came_with_the_tick_by_chance() -> None:
    none, one = profile(read=9), profile(read=9, irq_enter_rcu=8, timer_tick=30, allocate_slab=24)
    also_without = profile(read=9, allocate_slab=20)
    assert names(none, one) == (("timer ticks",), 0)
    assert names(none, one, also_without) == (("timer ticks", "allocate_slab"), 0)


def test_interrupts_that_are_no_timer_are_called_so() -> None:
    assert names(profile(read=9), profile(read=9, irq_enter=8, handle_virtio=40)) == (("interrupts",), 0)


def test_user_space_is_no_kernel_function_and_other_counters_are_read_as_asked() -> None:
    a = Profile(ops=2, functions={"[user]": (9,) * 7, "f": (4, 2, 0, 0, 0, 0, 0)}, total=(13, 11, 9, 9, 9, 9, 9))
    b = Profile(ops=2, functions={"[user]": (5,) * 7, "f": (4, 6, 0, 0, 0, 0, 0)}, total=(9, 11, 5, 5, 5, 5, 5))
    assert moved.moved(a, b) == ()
    (item,) = moved.moved(a, b, counter=EXACT_COUNTERS.index("loads"))
    assert (item.name, item.delta) == ("f", 2.0)
    assert moved.counter_of("loads") == 1 and moved.counter_of("user_instructions") is None


def test_the_spread_over_seeds_is_a_ratio() -> None:
    assert moved.spread_percent([profile(f=100), profile(f=110)]) == pytest.approx(10.0)
    assert moved.spread_percent([profile(f=100), profile(f=100)]) == 0.0
    assert moved.spread_percent([profile(), profile(f=1)]) == math.inf


counts = st.dictionaries(st.sampled_from(["irq_enter_rcu", "tick", "timer", "slab", "read"]), st.integers(0, 99))


@given(counts, counts, st.lists(counts, max_size=3))
def test_the_deltas_add_up_to_the_difference(
    before: dict[str, int], after: dict[str, int], others: list[dict[str, int]]
) -> None:
    a, b = profile(3, **before), profile(3, **after)
    items = moved.moved(a, b, among=[profile(3, **other) for other in others])
    assert math.fsum(item.delta for item in items) == pytest.approx(moved.level(b) - moved.level(a), abs=1e-9)
    back = moved.moved(b, a, among=[profile(3, **other) for other in others])
    assert [(item.name, -item.delta) for item in back] == [(item.name, item.delta) for item in items]


@pytest.mark.parametrize(
    ("functions", "named"),
    [
        ({"[user]": 9, "getname": 1}, True),
        ({"[user]": 9}, True),
        ({"[user]": 9, "[unknown 0xff]": 1}, False),
        ({}, False),
    ],
)
def test_a_program_that_never_entered_the_kernel_lacks_no_names(functions: dict[str, int], named: bool) -> None:
    assert moved.has_names(profile(**functions)) is named
