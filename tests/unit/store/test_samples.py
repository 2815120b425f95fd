# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.model import Series
from kdelta.store.samples import COUNTED, number_of, spread_percent


def series(*values: float, metric: str = "ns_per_op", warm: tuple[bool, ...] = ()) -> Series:
    return Series(metric=metric, unit="ns", better="lower", values=values, warm=warm)


def test_a_timed_number_is_the_median_after_warm_up() -> None:
    assert number_of(series(900, 1, 2, 9, warm=(True, False, False, False)), "timed") == 2
    assert number_of(series(1, 2, 3, 10), "timed") == 2.5


def test_an_exact_count_is_the_mode_over_repetitions() -> None:
    assert number_of(series(100, 100, 100, 5000, 101, metric="instructions"), "exact") == 100
    assert number_of(series(9, 9, 1, metric="user_instructions"), "exact") == 9


def test_equally_frequent_counts_give_their_lower_median_never_a_value_in_between() -> None:
    assert number_of(series(1, 1, 5, 9, 9, metric="loads"), "exact") == 1
    assert number_of(series(103, 100, 102, 101, metric="loads"), "exact") == 101


def test_counts_are_not_taken_by_mode_in_timed_experiments_nor_times_in_exact_ones() -> None:
    assert number_of(series(1, 1, 5, 6, 7, metric="instructions"), "timed") == 5
    assert number_of(series(1, 1, 5, 6, 7, metric="ns_per_op"), "exact") == 5


@pytest.mark.parametrize("values", [(), (1.0, math.nan), (math.inf,)])
def test_nothing_measured_is_none_and_never_zero(values: tuple[float, ...]) -> None:
    assert number_of(series(*values), "timed") is None
    assert number_of(series(*values, metric="loads"), "exact") is None
    assert spread_percent(series(*values)) is None


def test_only_warm_up_samples_give_no_number() -> None:
    assert number_of(series(1, 2, warm=(True, True)), "timed") is None


def test_spread_is_the_interquartile_range_in_percent_of_the_median() -> None:
    assert spread_percent(series(90, 95, 100, 105, 110)) == pytest.approx(10.0)
    assert spread_percent(series(5, 5, 5)) == 0
    assert spread_percent(series(5)) is None
    assert spread_percent(series(-1, 0, 1)) is None


@given(st.lists(st.integers(0, 50), min_size=1), st.sampled_from(sorted(COUNTED)))
def test_an_exact_number_was_seen_and_none_was_seen_more_often(values: list[int], metric: str) -> None:
    number = number_of(series(*map(float, values), metric=metric), "exact")
    assert number in values
    assert values.count(int(number)) == max(map(values.count, values))
