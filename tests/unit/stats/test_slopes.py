# SPDX-License-Identifier: GPL-2.0-or-later
"""Growth over batches: what counts as a leak, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.stats import slopes


def test_a_planted_leak_of_one_per_operation_has_slope_one() -> None:
    counts = [1000, 1500, 2000, 2500]
    assert slopes.slope(counts, 500) == pytest.approx(1.0)
    assert slopes.increments(counts, 500) == (1.0, 1.0, 1.0)
    assert slopes.grows(counts, 500)


def test_a_cache_that_fills_up_is_no_leak() -> None:
    assert not slopes.grows([0, 5000, 5000, 5000], 500)
    assert not slopes.grows([0, 500, 1000, 1000], 500)


def test_noise_below_half_an_object_per_operation_is_no_leak() -> None:
    assert not slopes.grows([0, 249, 498, 747], 500)
    assert slopes.grows([0, 250, 500, 750], 500)


def test_one_batch_alone_accuses_nobody() -> None:
    assert not slopes.grows([0, 5000], 500)
    assert slopes.grows([0, 5000], 500, batches=1)


@pytest.mark.parametrize(("counts", "ops"), [([1.0], 5), ([], 5), ([1.0, 2.0], 0)])
def test_what_has_no_slope_is_refused(counts: list[float], ops: float) -> None:
    with pytest.raises(ValueError, match="slope"):
        slopes.slope(counts, ops)


@given(
    st.integers(0, 10**9),
    st.integers(1, 10_000),
    st.integers(2, 8),
    st.integers(0, 5),
)
def test_a_constant_rate_is_found_whatever_was_there_before(start: int, ops: int, batches: int, rate: int) -> None:
    counts = [start + i * ops * rate for i in range(batches + 1)]
    assert slopes.slope(counts, ops) == pytest.approx(rate, abs=1e-4)
    assert slopes.grows(counts, ops) == (rate >= 1)
