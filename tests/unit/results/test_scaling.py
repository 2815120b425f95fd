# SPDX-License-Identifier: GPL-2.0-or-later
"""Grids over tasks, and efficiency from what each task did."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.model import BootResult, Experiment, Kernel, PlannedBoot, RunResult, Series, plans
from kdelta.results import scaling
from kdelta.spec.workloads import Workload, catalogue
from kdelta.store.store import Store


@pytest.fixture(scope="module")
def known() -> dict[str, Workload]:
    return catalogue()


@pytest.mark.parametrize(
    ("text", "tasks"), [("1..4", (1, 2, 3, 4)), ("8,1,2", (1, 2, 8)), ("1..2,4", (1, 2, 4)), ("3", (3,))]
)
def test_ranges_and_lists_of_tasks_are_taken(text: str, tasks: tuple[int, ...]) -> None:
    assert scaling.task_counts(text) == tasks


@pytest.mark.parametrize("text", ["", "0", "4..1", "1..999999999999", "a", "-1", "1..", "1025", "²"])
def test_other_numbers_of_tasks_are_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"--tasks"):
        scaling.task_counts(text)


def test_the_grid_is_over_the_knob_that_counts_tasks(known: dict[str, Workload]) -> None:
    assert [c.params["tasks"] for c in scaling.grid("thread_spawn", (1, 2), known)] == ["1", "2"]
    assert [c.params["writers"] for c in scaling.grid("pipe:message=4K", (1, 3), known)] == ["1", "3"]


def test_a_case_of_one_task_does_not_scale(known: dict[str, Workload]) -> None:
    with pytest.raises(UserError, match="one task"):
        scaling.grid("pidfd_open", (1, 2), known)
    with pytest.raises(UserError, match="leave it out"):
        scaling.grid("thread_spawn:tasks=2", (1, 2), known)


def test_efficiency_is_throughput_per_task_relative_to_the_fewest(known: dict[str, Workload], tmp_path: Path) -> None:
    kernel = Kernel(label="k", spec="k", release="6.12", image_path="/x", image_sha256="a" * 64)
    cases = tuple(scaling.grid("thread_spawn:mode=threads", (2, 1, 4), known))
    experiment = Experiment(
        id="20260101-000000-abcd",
        mode="timed",
        plan=plans.Scale(tasks=(1, 2, 4)),
        kernels=(kernel,),
        cases=cases,
        blocks=1,
    )
    rates = {0: (80.0, 120.0), 1: (125.0,)}
    windows = {0: (310.0, 320.0, 12.0), 1: (198.0, 200.0, 202.0)}  # in the last the host was busy elsewhere
    name = next(metric.name for metric in known["thread_spawn"].metrics if metric.source == "window:ops_per_s")
    runs = [
        RunResult(
            case=c,
            state="ok",
            series=(Series(metric=name, unit="ops/s", better="higher", values=windows[c]),),
            facts={f"task{i}_ops_per_s": v for i, v in enumerate(values)},
        )
        for c, values in rates.items()
    ]
    runs.append(RunResult(case=2, state="failed", why="too many"))
    with Store(f"sqlite:///{tmp_path / 'k.sqlite'}") as store:
        store.create(experiment)
        store.save_boot(
            experiment.id, BootResult(plan=PlannedBoot(block=0, slot=0, kernel=0), state="ok", runs=tuple(runs))
        )
        first, second, third = scaling.points(experiment, store)
    assert {p.case for p in (first, second, third)} == {"thread_spawn:mode=threads"}
    assert (first.tasks, first.ops_per_s, first.efficiency) == (1, 200.0, 1.0)
    assert (second.tasks, second.ops_per_s, second.efficiency) == (2, 310.0, 0.775)
    assert (second.least, second.most) == (0.8, 1.2)
    assert (third.tasks, third.ops_per_s, third.why) == (4, None, "failed: too many")
