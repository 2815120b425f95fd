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
