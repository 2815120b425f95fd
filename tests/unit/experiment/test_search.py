# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisection with simulated commits: wherever the culprit is, whatever cannot be tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.experiment import search
from kdelta.experiment.search import Found, Measure, Reading, Same, Step, Untestable


class FakeLab:
    """Commits whose figure is a function; ``broken`` ones cannot be measured."""

    def __init__(self, figure: Callable[[int], float], broken: frozenset[int] = frozenset(), seeds: int = 5) -> None:
        self.figure, self.broken, self.seeds = figure, broken, seeds
        self.found: list[Reading] = []
        self.lost: dict[int, str] = {}
        self.measured: list[int] = []

    def readings(self) -> Sequence[Reading]:
        return tuple(self.found)

    def skipped(self) -> Mapping[int, str]:
        return dict(self.lost)

    def measure(self, commit: int) -> None:
        self.measured.append(commit)
        if commit in self.broken:
            self.lost[commit] = "does not build"
        else:
            self.found += [Reading(commit, self.figure(commit)) for _ in range(self.seeds)]


def exact(commits: int, floor: float = 0.0) -> Callable[[Sequence[Reading], Mapping[int, str]], Step]:
    return partial(search.decide_exact, commits, floor_percent=floor)


def timed(commits: int, boots: int = 400) -> Callable[[Sequence[Reading], Mapping[int, str]], Step]:
    return partial(search.decide_timed, commits, max_boots=boots)


def step_at(culprit: int, good: float = 3000.0, bad: float = 3400.0) -> Callable[[int], float]:
    return lambda commit: bad if commit >= culprit else good


@given(st.data())
def test_an_exact_culprit_is_found_at_every_position_in_either_direction(data: st.DataObject) -> None:
    commits = data.draw(st.integers(2, 300))
    culprit = data.draw(st.integers(1, commits - 1))
    levels = data.draw(st.sampled_from([(100.0, 200.0), (200.0, 100.0), (0.0, 5.0), (1000.0, 1000.5)]))
    lab = FakeLab(step_at(culprit, *levels))
    assert search.search(lab, exact(commits)) == Found(culprit - 1, culprit, culprit)
    assert len(lab.measured) <= 2 + (commits - 1).bit_length(), "no more tests than halving needs"
    assert len(set(lab.measured)) == len(lab.measured)


@given(st.data())
def test_untestable_commits_widen_the_answer_to_exactly_what_they_hide(data: st.DataObject) -> None:
    commits = data.draw(st.integers(2, 80))
    culprit = data.draw(st.integers(1, commits - 1))
    broken = frozenset(data.draw(st.sets(st.integers(1, commits - 2)))) if commits > 2 else frozenset[int]()
    lab = FakeLab(step_at(culprit), broken)
    found = search.search(lab, exact(commits))
    assert isinstance(found, Found)
    good = max(c for c in range(culprit) if c not in broken)
    bad = min(c for c in range(culprit, commits) if c not in broken)
    assert (found.good, found.first, found.last) == (good, good + 1, bad)
    assert found.first <= culprit <= found.last


@given(st.data())
def test_a_killed_bisection_goes_on_to_the_same_answer(data: st.DataObject) -> None:
    commits = data.draw(st.integers(2, 100))
    culprit = data.draw(st.integers(1, commits - 1))
    broken = (
        frozenset(data.draw(st.sets(st.integers(1, commits - 2), max_size=20))) if commits > 2 else frozenset[int]()
    )
    whole = FakeLab(step_at(culprit), broken)
    answer = search.search(whole, exact(commits))
    resumed = FakeLab(step_at(culprit), broken)
    for commit in whole.measured[: data.draw(st.integers(0, len(whole.measured)))]:
        resumed.measure(commit)
    assert search.search(resumed, exact(commits)) == answer
    assert resumed.measured == whole.measured, "what was measured is not measured again"


@given(st.data())
def test_a_found_commit_differs_from_its_parent_even_where_figures_wander(data: st.DataObject) -> None:
    figures = data.draw(st.lists(st.integers(0, 50).map(float), min_size=2, max_size=60))
    lab = FakeLab(lambda commit: figures[commit])
    found = search.search(lab, exact(len(figures)))
    if figures[0] == figures[-1]:
        assert isinstance(found, Same)
        return
    assert isinstance(found, Found) and found.first == found.last
    rises = figures[-1] > figures[0]
    assert (figures[found.last] > figures[found.good]) == rises, "in the direction from GOOD to BAD"
    assert figures[found.last] != figures[found.good]


def test_equal_ends_are_said_before_anything_else_is_measured() -> None:
    lab = FakeLab(lambda _commit: 3000.0)
    found = search.search(lab, exact(1000))
    assert isinstance(found, Same) and found.good == found.bad == 3000.0
    assert lab.measured == [0, 999]


def test_a_difference_within_the_floor_is_no_difference() -> None:
    assert isinstance(search.search(FakeLab(step_at(5, 1000.0, 1004.0)), exact(10, floor=0.7)), Same)
    assert isinstance(search.search(FakeLab(step_at(5, 1000.0, 1010.0)), exact(10, floor=0.7)), Found)


@pytest.mark.parametrize("end", [0, 9])
def test_an_end_that_cannot_be_measured_is_refused(end: int) -> None:
    with pytest.raises(Untestable) as caught:
        search.search(FakeLab(step_at(5), frozenset({end})), exact(10))
    assert caught.value.commit == end


def test_a_figure_in_the_middle_counts_as_good() -> None:
    assert not search.side(150.0, 100.0, 200.0)
    assert not search.side(150.0, 200.0, 100.0)
    assert search.side(150.5, 100.0, 200.0) and search.side(149.5, 200.0, 100.0)


def noisy(culprit: int, seed: int, effect: float = 0.03) -> Callable[[int], float]:
    rng = np.random.default_rng(seed)

    def figure(commit: int) -> float:
        level = effect if commit >= culprit else 0.0
        return float(1000.0 * np.exp(level + 0.01 * rng.standard_t(3)))

    return figure


def test_times_find_a_step_of_three_percent_in_noise() -> None:
    right = 0
    for seed in range(12):
        culprit = 1 + 5 * seed
        found = search.search(FakeLab(noisy(culprit, seed), seeds=1), timed(64))
        right += isinstance(found, Found) and found.first <= culprit <= found.last
    assert right >= 11


def test_times_begin_with_pairs_of_the_ends_in_changing_order() -> None:
    lab = FakeLab(noisy(5, 1), seeds=1)
    search.search(lab, timed(16))
    assert lab.measured[:8] == [0, 15, 15, 0, 0, 15, 15, 0]


def test_times_of_equal_ends_stop_after_the_pairs() -> None:
    lab = FakeLab(noisy(1000, 3), seeds=1)
    found = search.search(lab, timed(64))
    assert isinstance(found, Same)
    assert len(lab.measured) == 2 * search.END_PAIRS


def test_times_skip_what_cannot_be_booted() -> None:
    lab = FakeLab(noisy(20, 5, effect=0.08), frozenset(range(16, 20)), seeds=1)
    found = search.search(lab, timed(40))
    assert isinstance(found, Found)
    assert (found.good, found.first, found.last) == (15, 16, 20)


def test_times_name_the_likely_commits_when_the_boots_are_spent() -> None:
    lab = FakeLab(noisy(30, 2, effect=0.015), seeds=1)
    found = search.search(lab, timed(200, boots=24))
    assert isinstance(found, Found | Same)
    assert len(lab.measured) <= 24
    if isinstance(found, Found):
        assert found.last > found.first and found.probability >= 0.95


def test_figures_of_one_commit_tell_its_side_or_nothing() -> None:
    tell = search.side_of_all
    assert tell([200.0, 201.0], 100.0, 200.0, noisy=False) is True
    assert tell([100.0, 90.0], 100.0, 200.0, noisy=False) is False
    assert tell([149.0, 151.0], 100.0, 200.0, noisy=False) is None
    slow = [190.0, 205.0, 198.0, 202.0, 197.0, 201.0, 199.0, 196.0]
    assert tell(slow, 100.0, 200.0, noisy=True) is True
    assert tell(slow, 300.0, 210.0, noisy=True) is True
    assert tell([140.0, 160.0, 145.0, 156.0, 151.0, 149.0, 152.0, 147.0], 100.0, 200.0, noisy=True) is None


@settings(max_examples=50)
@given(st.lists(st.booleans(), min_size=0, max_size=30))
def test_halving_always_pursues_a_change_from_good_to_bad(answers: list[bool]) -> None:
    bad = dict(enumerate([False, *answers, True]))
    kept = list(range(len(bad)))
    low, high, between = search.halving(kept, bad)
    assert not bad[low] and bad[high] and high == low + 1 and between is None


def test_the_first_step_measures_the_good_end() -> None:
    assert search.decide_exact(5, (), {}) == Measure(0)
    assert search.decide_timed(5, (), {}, 100) == Measure(0)
