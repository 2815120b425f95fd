# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kdelta.stats import signed_rank

GOLDEN = json.loads((Path(__file__).parent / "data" / "wilcox.json").read_text())


@pytest.mark.parametrize("row", GOLDEN, ids=[f"{row['name']}-{row['level']:.4f}" for row in GOLDEN])
def test_estimate_interval_and_p_equal_those_of_r(row: dict[str, Any]) -> None:
    d = np.array(row["differences"])
    averages = signed_rank.walsh(d)
    low, high = signed_rank.bounds(averages, d.size, float(row["level"]) / 2)
    assert float(signed_rank.estimate(averages)) == pytest.approx(row["estimate"], rel=1e-12)
    assert (float(low), float(high)) == pytest.approx(tuple(row["interval"]), rel=1e-12)
    assert float(signed_rank.p_value(averages, d.size)) == pytest.approx(row["p"], rel=1e-9)


@pytest.mark.parametrize("n", range(1, 26))
def test_p_equals_that_of_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        d = rng.normal(0.3, 1.0, n)
        ours = float(signed_rank.p_value(signed_rank.walsh(d), n))
        assert ours == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, rel=1e-9)
        for way in ("two-sided", "greater", "less"):
            expected = stats.wilcoxon(d, method="exact", alternative=way).pvalue
            assert signed_rank.permutation_p(d, way) == pytest.approx(expected, rel=1e-9)


def test_permutation_p_of_tied_data_equals_the_count_over_all_sign_changes() -> None:
    d = np.array([1.0, 1.0, -1.0, 2.0, 2.0, 3.0, 0.0, 3.0])
    kept = d[d != 0]
    ranks = stats.rankdata(np.abs(kept))
    sums = [ranks[np.array(signs) > 0].sum() for signs in itertools.product((-1, 1), repeat=kept.size)]
    observed = ranks[kept > 0].sum()
    above = float(np.mean([s >= observed - 1e-9 for s in sums]))
    assert signed_rank.permutation_p(d, "greater") == pytest.approx(above)
    assert signed_rank.permutation_p(np.zeros(4)) == 1.0


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=14), st.sampled_from([0.0127, 0.03, 0.05, 0.2]))
def test_interval_excludes_zero_exactly_when_p_is_at_most_the_level(values: list[int], level: float) -> None:
    d = np.array(values, dtype=float)
    averages = signed_rank.walsh(d)
    low, high = signed_rank.bounds(averages, d.size, level / 2)
    assert (low > 0 or high < 0) == (float(signed_rank.p_value(averages, d.size)) <= level)


def test_rounded_data_full_of_ties_keeps_its_false_alarms() -> None:
    rng = np.random.default_rng(3)
    d = np.rint(rng.normal(0, 1.5, (6000, 10)))
    assert (signed_rank.p_value(signed_rank.walsh(d), 10) <= 0.05).mean() <= 0.05


def test_too_few_pairs_give_an_endless_interval() -> None:
    low, high = signed_rank.bounds(signed_rank.walsh(np.array([1.0, 2.0, 3.0])), 3, 0.025)
    assert (float(low), float(high)) == (-np.inf, np.inf)


def test_rows_are_judged_alone() -> None:
    d = np.random.default_rng(0).normal(size=(5, 9))
    together = signed_rank.estimate(signed_rank.walsh(d))
    assert together.tolist() == [float(signed_rank.estimate(signed_rank.walsh(row))) for row in d]
