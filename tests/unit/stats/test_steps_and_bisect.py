# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kdelta.stats import bisect, steps
from kdelta.stats import drift as drift_of


def sweep(rng: np.random.Generator, effect: float, blocks: int = 10, versions: int = 8, at: int = 5) -> np.ndarray:
    levels = rng.normal(0, 0.01, (blocks, versions)) + rng.normal(0, 0.03, (blocks, 1))
    levels[:, at:] += effect
    return levels


def test_steps_are_rarely_seen_where_there_are_none() -> None:
    found = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        found += bool(steps.find_steps(sweep(rng, 0.0), rng, permutations=199))
    assert found / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_a_step_of_three_percent_is_found_always_and_one_of_one_percent_mostly() -> None:
    exact, present, runs = 0, 0, 150
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        exact += 5 in [s.index for s in steps.find_steps(sweep(rng, 0.01), rng, permutations=199)]
        present += 5 in [s.index for s in steps.find_steps(sweep(rng, 0.03), rng, permutations=199)]
    assert exact / runs >= 0.70 and present == runs


def test_boots_of_a_busy_host_hide_no_step_and_make_none() -> None:
    found, alarms, runs = 0, 0, 100
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        for effect in (0.05, 0.0):
            levels = sweep(rng, effect, blocks=8, versions=3, at=1)
            slow = rng.random(levels.shape) < 0.08
            levels[slow] += rng.uniform(0.3, 0.7, int(slow.sum()))
            steps_found = [s.index for s in steps.find_steps(levels, rng, permutations=199)]
            found += effect > 0 and 1 in steps_found
            alarms += effect == 0 and bool(steps_found)
    assert found / runs >= 0.8, "by means of the figures themselves it would be about 0.4"
    assert alarms / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


def test_several_steps_come_with_their_sizes_and_missing_boots_do_no_harm() -> None:
    rng = np.random.default_rng(1)
    levels = sweep(rng, 0.10, versions=9, at=6)
    levels[:, 2:] -= 0.05
    levels[3, 4] = levels[0, 0] = np.nan
    found = steps.find_steps(levels, rng)
    assert [s.index for s in found] == [2, 6]
    assert [s.effect for s in found] == pytest.approx([-0.05, 0.10], abs=0.01)


def test_a_sweep_without_numbers_has_no_steps() -> None:
    rng = np.random.default_rng(0)
    assert steps.find_steps(np.full((4, 5), np.nan), rng) == ()
    assert steps.find_steps(np.ones((4, 5)), rng) == ()
    with pytest.raises(ValueError, match="blocks by versions"):
        steps.find_steps(np.ones(5), rng)


Drift = Callable[[np.random.Generator, int], np.ndarray]
DRIFTS: dict[str, Drift] = {
    "steady": lambda rng, boots: np.zeros(boots),
    "slower and slower": lambda rng, boots: 0.0006 * np.arange(boots),
    "5 % slower at once": lambda rng, boots: np.where(np.arange(boots) > rng.integers(15, 50), 0.05, 0.0),
    "a random walk": lambda rng, boots: np.cumsum(rng.normal(0, 0.003, boots)),
}


def search(seed: int, commits: int, step: float, bad_boots: float = 0.0, drift: str = "steady") -> tuple[bool, int]:
    rng = np.random.default_rng(seed)
    culprit = int(rng.integers(1, commits))
    machine = DRIFTS[drift](rng, 301)
    tested: list[int] = []
    values: list[float] = []

    def boot(commit: int) -> None:
        slow = 0.08 if rng.random() < bad_boots else 0.0
        values.append(rng.normal(0, 0.01) + (step if commit >= culprit else 0.0) + slow + machine[len(values)])
        tested.append(commit)

    for pair in range(10):
        for commit in (0, commits - 1) if pair % 2 else (commits - 1, 0):
            boot(commit)
    while len(tested) < 300:
        state = bisect.posterior(commits, tested, values)
        if state.next_test is None:
            return state.found == culprit, len(tested)
        boot(state.next_test)
    return False, len(tested)


@pytest.mark.parametrize(
    "drift", [pytest.param(one, marks=pytest.mark.full) if one != "a random walk" else one for one in DRIFTS]
)
def test_bisection_names_the_commit_in_spite_of_bad_boots_and_drift(drift: str) -> None:
    runs = [search(seed, 64, 0.02, bad_boots=0.05, drift=drift) for seed in range(20)]
    assert np.mean([right for right, _ in runs]) >= 0.90
    assert np.mean([boots for _, boots in runs]) <= 90


def test_without_boots_of_the_ends_in_between_a_drift_would_mislead() -> None:
    """The negative control: the same boots, every one read as if the machine stood still."""
    rng = np.random.default_rng(0)
    good = np.arange(40) % 2 == 0
    values = np.where(good, 0.0, 0.02) + np.where(np.arange(40) < 20, 0.0, 0.05)
    assert np.mean((values > 0.01) == ~good) < 0.8
    flat = drift_of.without_drift(values + rng.normal(0, 0.001, 40), good, ~good)
    assert np.mean((flat > np.median(flat)) == ~good) > 0.9


def test_a_refuted_commit_is_not_named_again() -> None:
    boots = [0, 3] * 10 + [1] * 4 + [2] * 4
    values = [0.0, 1.0] * 10 + [0.0] * 4 + [1.0] * 4
    noise = np.random.default_rng(1).normal(0, 0.05, len(values))
    readings = [float(value) for value in np.array(values) + noise]
    assert bisect.posterior(4, boots, readings).found == 2
    after = bisect.posterior(4, boots, readings, refuted=[2])
    assert after.found != 2 and after.probability[1] == 0.0
    with pytest.raises(ValueError, match="refuted"):
        bisect.posterior(4, boots, readings, refuted=[1, 2, 3])


def test_bisection_of_neighbours_is_over_at_once() -> None:
    state = bisect.posterior(2, [0, 1] * 3, [0.0, 1.0, 0.1, 1.1, 0.05, 1.05])
    assert (state.found, state.most_likely, state.next_test) == (1, 1, None)


@pytest.mark.parametrize(
    ("commits", "tested", "values"),
    [(1, [0], [1.0]), (4, [0, 3], [1.0, 2.0]), (4, [0, 9] * 3, [1.0] * 6), (4, [0, 3] * 3, [1.0] * 6)],
)
def test_bisection_refuses_what_it_cannot_search(commits: int, tested: list[int], values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"bisect|commit"):
        bisect.posterior(commits, tested, values)
