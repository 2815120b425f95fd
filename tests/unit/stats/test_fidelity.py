# SPDX-License-Identifier: GPL-2.0-or-later
"""Times against counts: known answers, scipy's ranks, and what is no figure."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from kdelta.stats.fidelity import fidelity

COUNTS = np.array([100.0, 250.0, 400.0, 1000.0, 5000.0, 20000.0, 90000.0])


def test_times_in_proportion_have_no_spread() -> None:
    found = fidelity(0.5 * COUNTS, COUNTS)
    assert (found.n, round(found.rank, 12), round(found.ns_per_count, 12)) == (7, 1.0, 0.5)
    assert found.spread == pytest.approx(1.0)
    assert found.rank_interval == pytest.approx((1.0, 1.0))


def test_the_spread_is_a_geometric_standard_deviation() -> None:
    factors = np.array([0.5, 2.0, 0.5, 2.0, 0.5, 2.0, 1.0])
    found = fidelity(COUNTS * factors, COUNTS)
    assert found.spread == pytest.approx(np.exp(np.log(factors).std(ddof=1)))
    assert found.ns_per_count == pytest.approx(scipy.stats.gmean(factors))


def test_ranks_are_spearmans_and_the_interval_holds_them() -> None:
    times = np.array([90.0, 700.0, 300.0, 2000.0, 1500.0, 40000.0, 30000.0])
    found = fidelity(times, COUNTS)
    assert found.rank == pytest.approx(scipy.stats.spearmanr(times, COUNTS).statistic)
    assert found.rank_interval[0] <= found.rank <= found.rank_interval[1]
    assert found == fidelity(times, COUNTS), "the same seed resamples the same"


def test_times_that_have_nothing_to_do_with_counts_are_seen() -> None:
    random = np.random.default_rng(3)
    found = fidelity(random.lognormal(5, 2, 60), random.lognormal(5, 2, 60))
    assert found.rank_interval[0] < 0.3 and abs(found.rank) < 0.4 and found.spread > 5


@pytest.mark.parametrize(
    ("times", "counts"),
    [(COUNTS[:4], COUNTS[:4]), (COUNTS, COUNTS[:-1]), (COUNTS * 0, COUNTS), (COUNTS, -COUNTS)],
)  # fmt: skip
def test_what_is_no_figure_is_refused(times: np.ndarray, counts: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"fidelity needs|not above 0"):
        fidelity(times, counts)
