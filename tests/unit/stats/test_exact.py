# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kdelta.stats import counts, exact, paired


def look(a: list[float], b: list[float], delta: float = 1.0) -> counts.CountLook:
    return counts.look(np.array(a), np.array(b), counts.LOOKS, delta)


def test_counts_that_repeat_under_five_seeds_are_a_fact_with_a_point_interval() -> None:
    result = look([100] * 5, [90] * 5)
    assert (result.call, result.fact, result.finished) == (paired.LOWER, True, True)
    assert result.low == result.high == result.effect and round(result.effect or 0, 9) == -10.0
    assert result.p == 2.0**-9 and look([100] * 5, [100] * 5).p == 1.0


def test_four_seeds_that_repeat_are_no_fact_yet() -> None:
    assert not look([100] * 4, [90] * 4).finished


def test_one_seed_that_differs_makes_it_noise() -> None:
    result = look([100] * 5, [90, 90, 90, 90, 97])
    assert not result.fact and not result.finished and result.call == paired.UNDECIDED
    plain = look([100] * 5, [90, 90, 90, 90, 91])
    assert not plain.fact and plain.finished and plain.call == paired.LOWER, "the gap is nine times as wide"
    later = look([100] * 8, [90, 90, 90, 90, 97, 90, 90, 90])
    assert later.finished and later.call == paired.LOWER and later.n == 8


def test_what_is_the_same_is_not_so_in_the_middle_alone() -> None:
    """10 or 1000 where the other kernel counts 100 was "as many instructions", with an interval from -90 to +900 %."""
    for at in (range(10), range(0, 20, 2), (0, 2, 3, 4, 5, 6, 7, 9, 13, 15)):
        either = [1000.0 if seed in at else 10.0 for seed in range(20)]
        for a, b in (([100.0] * 20, either), (either, [100.0] * 20)):
            result = look(a, b)
            assert result.finished and result.call == paired.UNDECIDED, result
    close = [10_025.0 if seed % 2 else 9_975.0 for seed in range(20)]
    assert look([10_000.0] * 20, close).call == paired.SAME


@given(st.lists(st.tuples(*[st.sampled_from([10.0, 99.0, 100.0, 101.0, 130.0, 1000.0])] * 2), min_size=8, max_size=20))
def test_the_interval_of_what_is_the_same_holds_nothing_far(pairs: list[tuple[float, float]]) -> None:
    a, b = ([side for side, _ in pairs], [side for _, side in pairs])
    result = look(a, b)
    if result.call == paired.SAME and result.low is not None and result.high is not None:
        assert -2.0 <= result.low <= result.high <= 2.0


def test_seeds_beyond_a_look_are_not_peeked_at() -> None:
    a, b = [100.0 + i % 3 for i in range(11)], [101.0 + i % 2 for i in range(11)]
    assert look(a, b) == look(a[:8], b[:8])


def test_zeros_have_a_direction_and_no_percentage() -> None:
    assert look([0] * 5, [0] * 5).call == paired.SAME
    appeared = look([0] * 5, [1] * 5)
    assert (appeared.call, appeared.effect) == (paired.HIGHER, None)


def test_the_spread_is_a_ratio() -> None:
    assert exact.spread_percent(np.array([100.0, 110.0])) == 100.0 * (1.1 - 1.0)
    assert exact.spread_percent(np.array([5.0, 5.0])) == 0.0
    assert math.isinf(exact.spread_percent(np.array([0.0, 5.0])))


@given(st.lists(st.floats(min_value=0, max_value=1e15), min_size=1, max_size=13))
def test_the_median_is_numpys_to_the_bit(values: list[float]) -> None:
    assert exact.median(np.array(values)) == float(np.median(values))
