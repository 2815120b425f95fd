# SPDX-License-Identifier: GPL-2.0-or-later
"""Identical kernels count the same under every seed: never a difference, never undecided."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kdelta.stats import exact


@given(st.lists(st.floats(1.0, 1e7), min_size=2, max_size=9), st.floats(0.0, 5.0))
def test_the_same_counts_on_both_sides_are_the_same_however_far_the_seeds_lie_apart(counts: list, floor: float) -> None:  # type: ignore[type-arg]
    values = np.array(counts)
    assert exact.look(values, values.copy(), max(1.0, floor), floor).call == "same"


def test_seeds_that_spread_widely_cannot_show_that_two_kernels_are_the_same() -> None:
    wide, other = np.array([100.0, 120.0, 110.0]), np.array([101.0, 119.0, 111.0])
    assert exact.look(wide, other, 1.0, 0.0).call == "undecided"
    narrow = np.array([100.0, 102.0, 101.0])
    assert exact.look(narrow, np.array([100.0, 102.0, 101.2]), 1.0, 0.0).call == "same"
