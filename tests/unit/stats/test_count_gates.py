# SPDX-License-Identifier: GPL-2.0-or-later
"""The gates of exact verdicts: counts over seeds, simulated and seeded, with the negative control that must fail."""

from __future__ import annotations

import numpy as np
import pytest

from kdelta.stats import counts, paired
from unit.stats.simulate import band
from unit.stats.simulate_counts import DELTA, MODELS, CountOutcome, counts_of, experiment_of_five

REPEATS = 5000
DIFFERENT = (paired.LOWER, paired.HIGHER)


@pytest.mark.parametrize("model", MODELS)
def test_identical_kernels_alarm_in_at_most_5_percent_of_cells(model: str) -> None:
    outcome = CountOutcome(*counts_of(np.random.default_rng(1), model, REPEATS, 0.0))
    assert outcome.rate(*DIFFERENT) <= 0.05 + band(0.05, REPEATS)
    assert outcome.covered(0.0) >= 0.945 - band(0.945, REPEATS)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("effect", [-DELTA, DELTA])
def test_an_effect_of_delta_is_called_same_in_at_most_5_percent(model: str, effect: float) -> None:
    outcome = CountOutcome(*counts_of(np.random.default_rng(2), model, REPEATS, effect))
    assert outcome.rate(paired.SAME) <= 0.05 + band(0.05, REPEATS)
    assert outcome.covered(effect) >= 0.945 - band(0.945, REPEATS)


@pytest.mark.parametrize("model", MODELS)
def test_two_percent_between_counts_is_never_called_same_and_three_is_found(model: str) -> None:
    two = CountOutcome(*counts_of(np.random.default_rng(3), model, REPEATS, float(np.log(1.02))))
    assert two.rate(paired.SAME, paired.LOWER) <= 0.003 + band(0.003, REPEATS)
    three = CountOutcome(*counts_of(np.random.default_rng(4), model, REPEATS, float(np.log(0.97))))
    assert three.rate(paired.LOWER) >= 0.97
    assert three.covered(float(np.log(0.97))) >= 0.945 - band(0.945, REPEATS)


def test_a_fact_by_chance_is_as_rare_as_its_p_value_says() -> None:
    rng = np.random.default_rng(5)
    a, b = counts_of(rng, "two-valued-50", 40_000, 0.0)
    outcome = CountOutcome(a, b)
    false_facts = outcome.fact & np.isin(outcome.call, DIFFERENT)
    assert false_facts.mean() <= counts.chance(counts.FACT_SEEDS) + band(counts.chance(counts.FACT_SEEDS), 40_000)
    assert false_facts.any(), "the bound is met, not empty"


@pytest.mark.parametrize("model", MODELS)
def test_five_noisy_cells_close_a_gate_in_at_most_5_percent_of_experiments(model: str) -> None:
    repeats = 150
    rng = np.random.default_rng(6)
    closed = np.mean([experiment_of_five(rng, model) for _ in range(repeats)])
    assert closed <= 0.05 + band(0.05, repeats)


@pytest.mark.parametrize("model", MODELS)
def test_the_simulated_engine_is_the_engine(model: str) -> None:
    a, b = counts_of(np.random.default_rng(7), model, 40, 0.005)
    outcome = CountOutcome(a, b)
    for row in range(40):
        n = int(outcome.seeds[row])
        look = counts.look(a[row, :n], b[row, :n], counts.LOOKS, 1.0)
        assert look.call == outcome.call[row] and look.fact == outcome.fact[row] and look.finished
        low, high = look.low, look.high
        assert low is not None and high is not None
        assert np.log1p(low / 100) == pytest.approx(outcome.low[row], abs=1e-9)
        assert np.log1p(high / 100) == pytest.approx(outcome.high[row], abs=1e-9)


def test_control_three_seeds_and_the_interval_over_all_their_pairings_fail() -> None:
    rng = np.random.default_rng(8)
    alarms = covered = 0
    repeats = 4000
    for _ in range(repeats):
        a, b = rng.normal(0, 0.01, 3), rng.normal(0, 0.01, 3)
        low, high = b.min() - a.max(), b.max() - a.min()
        spread = max(np.ptp(a), np.ptp(b))
        alarms += bool((low > 0 or high < 0) and abs(np.median(b) - np.median(a)) > spread)
        covered += bool(low <= 0 <= high)
    assert covered / repeats < 0.945
    of_five = 1 - (1 - alarms / repeats) ** 5
    assert of_five > 0.15


@pytest.mark.parametrize(
    ("a", "b"), [([1.0], [1.0, 2.0]), ([1.0, -1.0], [1.0, 1.0]), ([float("nan")], [1.0]), ([], [])]
)
def test_impossible_counts_are_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match="exact count"):
        counts.look(np.array(a), np.array(b), counts.LOOKS, 1.0)


def test_averages_are_not_rounded_to_whole_counts() -> None:
    a, b = np.array([20.8, 20.7, 20.9, 20.8, 20.75]), np.array([20.85, 20.8, 20.7, 20.9, 20.8])
    assert counts.look(a, b, counts.LOOKS, 5.0, whole=False).call == paired.SAME
    assert not counts.look(a, b, counts.LOOKS, 5.0).finished, "one of 20.8 would be 4.8 % of the 5 %"
    assert counts.look(a, 1.2 * b, counts.LOOKS, 5.0, whole=False).call == paired.HIGHER


def test_a_bound_within_one_count_of_delta_is_not_inside_it() -> None:
    a = np.array([1000.0, 1001.0] * 10)
    assert counts.look(a, a + 9, counts.LOOKS, 1.0).call == paired.HIGHER
    b = np.where(np.arange(20) % 5 == 0, a + 10, a)
    assert counts.look(a, b, counts.LOOKS, 1.0).call in (paired.SAME, paired.UNDECIDED)
