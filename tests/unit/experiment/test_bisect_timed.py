# SPDX-License-Identifier: GPL-2.0-or-later
"""A timed bisection in a real store and a real git tree, on simulated guests that are slow for a while."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kdelta.experiment import bisect, runner, templates
from kdelta.experiment.laboratory import Laboratory
from kdelta.model import BootResult, Case, Experiment, Kernel, PlannedBoot, Quiet, RunResult, Series, plans
from kdelta.store.store import Store
from unit.experiment.test_bisect import CULPRIT, World, tree

__all__ = ["tree"]  # the fixture
FAST, SLOW = 300.0, 200.0  # MB/s before the culprit and from it on


class TimedWorld(World):
    """Boots of commits ``fooled`` read slow in the search, as when the host is busy; comparisons read the truth."""

    fooled: range = range(0)
    searching = True
    ends = (0, -1)
    equal = False  # comparisons read no difference anywhere

    def __init__(self, tree: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(tree, store, monkeypatch)
        self.rng = np.random.default_rng(7)
        monkeypatch.setattr(runner, "boot", lambda job, plan: self.boot(plan, job.kernels[plan.kernel]))

    def execute(self, experiment: Experiment, store: Store, _voice: Any) -> None:
        self.searching = False
        super().execute(experiment, store, _voice)
        self.searching = True

    def boot(self, plan: PlannedBoot, kernel: Kernel) -> BootResult:
        number = int(kernel.image_sha256, 16)
        slow = (number >= CULPRIT and (self.searching or not self.equal)) or (self.searching and number in self.fooled)
        level = (SLOW if slow else FAST) * float(np.exp(self.rng.normal(0.0, 0.01)))
        series = (Series(metric="throughput", unit="MB/s", better="higher", values=(level,) * 20),)
        return BootResult(plan=plan, state="ok", runs=(RunResult(case=0, state="ok", series=series),))

    def start(self) -> str:
        good, bad = (self.line[end] for end in self.ends)
        plan = plans.Bisect(tree=str(self.tree), good=good, bad=bad, metric="throughput")
        asked = templates.Asked(cases=(Case(workload="pipe"),))
        experiment = templates.created(templates.bisect(asked, "timed", plan), None, self.clock)
        self.store.create(experiment)
        return experiment.id

    def go_on(self, name: str) -> bisect.Answer:
        return bisect.bisect(Laboratory(self.store, name, Quiet()), self.clock, 8, (8,))


@pytest.fixture
def world(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TimedWorld]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        yield TimedWorld(tree, store, monkeypatch)


def test_times_name_the_commit_and_a_comparison_confirms_it(world: TimedWorld) -> None:
    answer = world.go_on(world.start())
    assert [commit.hash for commit in answer.suspects] == [world.line[CULPRIT]]
    assert answer.probability >= 0.98 and answer.refuted == ()
    assert world.store.experiment(answer.confirmation).looks == (8,)


@pytest.mark.full
def test_a_commit_that_its_comparison_refutes_is_left_out_and_the_search_goes_on(world: TimedWorld) -> None:
    world.fooled = range(CULPRIT - 3, CULPRIT)
    name = world.start()
    answer = world.go_on(name)
    assert world.line[CULPRIT - 3] in answer.refuted
    assert [commit.hash for commit in answer.suspects] == [world.line[CULPRIT]]
    assert world.go_on(name) == answer, "a finished bisection is only read"


def test_a_comparison_that_shows_the_change_refutes_nothing(world: TimedWorld) -> None:
    name = world.start()
    lab = Laboratory(world.store, name, Quiet())
    assert not bisect._refutes(lab, world.go_on(name).confirmation)


def test_the_last_commit_that_is_left_is_named_unconfirmed(world: TimedWorld) -> None:
    world.ends, world.equal = (CULPRIT - 2, CULPRIT + 1), True
    name = world.start()
    answer = world.go_on(name)
    assert len(answer.refuted) == 2 and len(answer.suspects) == 1
    assert answer.suspects[0].hash not in answer.refuted
    assert world.go_on(name) == answer
