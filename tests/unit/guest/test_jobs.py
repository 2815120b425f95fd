# SPDX-License-Identifier: GPL-2.0-or-later
"""The job list."""

import pytest

from kdelta.errors import UserError
from kdelta.guest.jobs import JobList, case_jobs
from kdelta.model import Case, Effort, Mode


def text(mode: Mode, pmu_windows: int = 0, params: dict[str, str] | None = None) -> str:
    case, effort = Case(workload="pidfd_open", params=params or {}), Effort(pmu_windows=pmu_windows)
    return case_jobs({3: case}, mode=mode, efforts={3: effort}, exact_ops={3: 16}, seed=5).text()


def test_a_timed_job_carries_its_effort_and_parameters() -> None:
    lines = text("timed", params={"target": "self"}).splitlines()
    assert lines[0] == "kdelta-jobs 1"
    assert lines[-1] == "end"
    job = lines[-2].split()
    assert job[:3] == ["job", "3", "pidfd_open"]
    assert {"windows=160", "cgroup=root", "target=self"} <= set(job)


def test_an_exact_job_carries_repetitions_and_operations() -> None:
    job = text("exact", params={"target": "self"}).splitlines()[-2].split()
    assert {"reps=7", "ops=16"} <= set(job)
    assert not any(word.startswith("window") for word in job)


def test_only_a_timed_job_that_asks_for_them_has_windows_under_the_cpus_counters() -> None:
    assert "pmu=8" in text("timed", pmu_windows=8).split()
    assert "pmu=" not in text("exact", pmu_windows=8) + text("timed")


@pytest.mark.parametrize("params", [{"a": "b c"}, {"a": "x\ny"}, {"reps": "9"}, {"a": ""}, {"a": "\x1b"}])
def test_a_parameter_that_could_break_the_list_is_refused(params: dict[str, str]) -> None:
    with pytest.raises(UserError, match="cannot be passed to a guest"):
        text("timed", params=params)


def test_only_a_guest_of_several_cpus_is_told_of_turns() -> None:
    jobs = JobList(mode="exact")
    assert "set turns_ms 1000" in jobs.text(turns_ms=1000).splitlines()
    assert "turns_ms" not in jobs.text()


def test_jobs_apart_keep_what_they_trace_and_know_nothing_of_each_other() -> None:
    traced = JobList(mode="exact", seed=7, lines=("job 3 pipe ops=2", "trace do a", "trace arm b", "job 12 pipe ops=2"))
    apart = traced.apart()
    assert list(apart) == [3, 12]
    assert apart[3].lines == ("job 0 pipe ops=2", "trace do a", "trace arm b")
    assert apart[12].lines == ("job 0 pipe ops=2",)
    assert {one.seed for one in apart.values()} == {7}
    assert JobList(mode="exact").apart() == {}
