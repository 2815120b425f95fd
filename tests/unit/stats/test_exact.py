# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import numpy as np
import pytest

from kdelta.stats import exact


def look(a: list[float], b: list[float], delta: float = 1.0, floor: float = 0.0) -> exact.ExactLook:
    return exact.look(np.array(a), np.array(b), delta, floor)


def test_counts_that_repeat_give_a_point_interval() -> None:
    result = look([100, 100], [90, 90])
    assert (result.call, result.repeats) == ("lower", True)
    assert result.low == result.high == result.effect == pytest.approx(-10.0)


def test_the_interval_spans_all_pairings_of_seeds() -> None:
    result = look([100, 110], [120, 121])
    assert result.low == pytest.approx(100 * (120 / 110 - 1)) and result.high == pytest.approx(21.0)


def test_an_effect_inside_the_spread_of_the_seeds_is_not_called() -> None:
    assert look([100, 101, 101], [102, 102, 104]).call == "undecided"  # excludes 0, but the seeds differ by 2 %
    assert look([1000, 1004], [1001, 1003]).call == "same"
    assert look([1000, 1001], [1003, 1004]).call == "higher"


@pytest.mark.parametrize(("a", "b"), [([1], [1, 2]), ([1, -1], [1, 1]), ([1, 1], [float("nan"), 1])])
def test_too_few_seeds_and_impossible_counts_are_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match="exact"):
        look(a, b)


def test_zeros_have_a_direction() -> None:
    assert look([0, 0], [0, 0]).effect == 0.0
    assert look([0, 0], [1, 1]).call == "higher" and look([0, 0], [1, 1]).effect is None
    assert look([0, 1], [0, 1]).call in ("same", "undecided")
