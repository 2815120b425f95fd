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
