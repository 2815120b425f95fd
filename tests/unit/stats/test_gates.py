# SPDX-License-Identifier: GPL-2.0-or-later
"""The gates that METHOD sets for the engine, simulated and seeded, with the negative controls that must fail."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from kdelta.stats import multiplicity, paired, sequential, signed_rank
from unit.stats.simulate import DELTA, MODELS, PLAN_20, PLAN_40, Floats, Outcome, band, boot_noise, boots

REPEATS = 6000
DIFFERENT = (paired.LOWER, paired.HIGHER)


def _outcome(model: str, effect: float, looks: tuple[int, ...], seed: int) -> Outcome:
    a, b = boots(np.random.default_rng(seed), model, REPEATS, looks[-1], effect)
    return Outcome(b - a, looks)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("looks", [PLAN_20, PLAN_40])
def test_identical_kernels_are_called_different_in_3_to_6_percent(model: str, looks: tuple[int, ...]) -> None:
    outcome = _outcome(model, 0.0, looks, seed=1)
    rate = outcome.rate(*DIFFERENT)
    assert 0.03 - band(0.03, REPEATS) <= rate <= 0.06 + band(0.06, REPEATS)
    covered = ((outcome.low <= 0) & (outcome.high >= 0)).mean()
    assert covered >= 0.945 - band(0.945, REPEATS)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("looks", [PLAN_20, PLAN_40])
def test_an_effect_of_half_a_percent_is_hardly_ever_called_the_wrong_way(model: str, looks: tuple[int, ...]) -> None:
    for effect, wrong in ((np.log(0.995), paired.HIGHER), (np.log(1.005), paired.LOWER)):
        outcome = _outcome(model, float(effect), looks, seed=2)
        assert outcome.rate(wrong) <= 0.003 + band(0.003, REPEATS)
        covered = ((outcome.low <= effect) & (outcome.high >= effect)).mean()
        assert covered >= 0.945 - band(0.945, REPEATS)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("looks", [PLAN_20, PLAN_40])
def test_an_effect_of_delta_is_called_same_in_at_most_5_percent(model: str, looks: tuple[int, ...]) -> None:
    for effect in (-DELTA, DELTA):
        assert _outcome(model, effect, looks, seed=3).rate(paired.SAME) <= 0.05 + band(0.05, REPEATS)


@pytest.mark.parametrize("model", MODELS)
def test_one_percent_is_found_by_20_pairs_in_72_and_by_40_in_94_percent(model: str) -> None:
    effect = float(np.log(0.99))
    for looks, power in ((PLAN_20, 0.72), (PLAN_40, 0.94)):
        outcome = _outcome(model, effect, looks, seed=4)
        assert outcome.rate(paired.LOWER) >= power - band(power, REPEATS)
        covered = ((outcome.low <= effect) & (outcome.high >= effect)).mean()
        assert covered >= 0.945 - band(0.945, REPEATS)


@pytest.mark.parametrize("model", MODELS)
def test_three_percent_is_found_with_ten_and_a_half_boots_a_side(model: str) -> None:
    outcome = _outcome(model, float(np.log(0.97)), PLAN_20, seed=5)
    assert outcome.rate(paired.LOWER) >= 0.99 - band(0.99, REPEATS)
    assert outcome.boots.mean() <= 10.5


def _grid(rng: np.random.Generator, effects: Floats) -> NDArray[np.bool_]:
    """Cells that one experiment calls different: those that the correction does not keep go on to the next look."""
    a, b = boots(rng, "normal", effects.size, PLAN_20[-1], 0.0)
    differences, plan = b - a + effects[:, None], sequential.plan(PLAN_20)
    p, call, alive = np.ones(effects.size), np.zeros(effects.size, dtype=int), np.arange(effects.size)
    kept = np.zeros(effects.size, dtype=bool)
    for index, n in enumerate(PLAN_20):
        look = paired.look(differences[alive, :n], plan.two_sided[index], plan.one_sided[index], DELTA)
        p[alive], call[alive] = sequential.sequential_p(look.p, PLAN_20, index), look.call
        kept = (multiplicity.benjamini_hochberg(p.tolist()) <= 0.05) & np.isin(call, DIFFERENT)
        alive = np.flatnonzero(~kept & (call != paired.SAME))
    return kept


def test_a_grid_of_sixty_cells_holds_five_percent_false_discoveries_and_finds_the_true_ones() -> None:
    rng, repeats, cells, real = np.random.default_rng(6), 400, 60, 12
    effects = np.zeros(cells)
    effects[:real] = np.log(0.97)
    grids = np.array([_grid(rng, effects) for _ in range(repeats)])
    shares = grids[:, real:].sum(axis=1) / np.maximum(1, grids.sum(axis=1))
    assert shares.mean() <= 0.05
    assert grids[:, :real].mean() >= 0.99
    alarms = np.array([_grid(rng, np.zeros(cells)).any() for _ in range(repeats)])
    assert alarms.mean() <= 0.05 + band(0.05, repeats)


def test_controls_pooled_samples_and_naive_peeking_fail_where_the_engine_holds() -> None:
    rng, repeats = np.random.default_rng(7), 400
    # pooled: ten boots a side, 100 samples a boot, within-boot sd 2 % and skewed
    level_a, level_b = boots(rng, "normal", repeats, 10, 0.0)
    skewed = rng.exponential(1.0, (2, repeats, 10, 100)) - 1.0
    pooled_a = (level_a[..., None] + 0.02 * skewed[0]).reshape(repeats, -1)
    pooled_b = (level_b[..., None] + 0.02 * skewed[1]).reshape(repeats, -1)
    pooled = (stats.mannwhitneyu(pooled_a, pooled_b, axis=1).pvalue < 0.05).mean()
    assert pooled > 0.50
    # peeking: a look at 5 % after each block from the sixth on
    a, b = boots(rng, "normal", 4000, 40, 0.0)
    peeked = np.zeros(4000, dtype=bool)
    for n in range(6, 41):
        peeked |= signed_rank.p_value(signed_rank.walsh((b - a)[:, :n]), n) <= 0.05
    assert peeked.mean() > 0.15
    assert Outcome(b - a, PLAN_40).rate(*DIFFERENT) <= 0.06


def test_data_collected_all_of_one_kernel_first_fools_a_boot_level_test() -> None:
    rng, repeats, n = np.random.default_rng(8), 4000, 10
    noise = boot_noise(rng, "normal", (repeats, 2 * n)) + rng.normal(0, 0.03, (repeats, 1)) * np.arange(2 * n) / (2 * n)
    p = stats.mannwhitneyu(noise[:, :n], noise[:, n:], axis=1, method="asymptotic").pvalue
    assert (p < 0.05).mean() > 0.08
