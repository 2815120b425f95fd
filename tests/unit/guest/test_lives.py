# SPDX-License-Identifier: GPL-2.0-or-later
"""Lives of cases on this machine: each path runs or names what is missing, and counts arrive for each batch."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.guest import binary
from kdelta.guest.jobs import case_jobs
from kdelta.guest.metrics import timed_runs
from kdelta.guest.protocol import parse
from kdelta.model import Effort, Metric, RunResult
from kdelta.paths import shipped
from kdelta.results import definitions, leaks
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import Workload, catalogue

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")

LIVES = Effort(batches=2, batch_ops=20, limit_ms=30_000)
SHORT = Effort(warmup_windows=1, windows=2, window_ms=5, latency_ops=20, limit_ms=30_000)
Run = Callable[..., dict[str, RunResult]]


@pytest.fixture(scope="module")
def program(guest_cache: Path) -> Path:
    return binary.build("x86_64", cache=guest_cache)


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Run:
    known: dict[str, Workload] = catalogue()

    def call(*texts: str, effort: Effort = LIVES) -> dict[str, RunResult]:
        cases = [case for text in texts for case in parse_case(text, known)]
        indexes = range(len(cases))
        text = case_jobs(
            dict(enumerate(cases)),
            mode="timed",
            efforts=dict.fromkeys(indexes, effort),
            exact_ops=dict.fromkeys(indexes, 1),
        ).text()
        (tmp_path / "jobs").write_text(text)
        with (tmp_path / "stream").open("wb") as file:
            argv: list[str | Path] = [program, "--native", "--jobs", tmp_path / "jobs"]
            argv += ["--data", shipped("guest") / "data"]
            subprocess.run([*argv, "--fd", str(file.fileno())], pass_fds=[file.fileno()], check=True, timeout=300)
        stream = parse((tmp_path / "stream").read_bytes())
        assert (stream.state, stream.noise) == ("ok", ())
        metrics: dict[int, tuple[Metric, ...]] = {i: known[cases[i].workload].metrics for i in indexes}
        if effort.batches:
            metrics = dict.fromkeys(indexes, definitions.LEAK_METRICS)
        runs = timed_runs(stream.records, list(indexes), metrics, ("ok", ""))
        return {case.name: result for case, result in zip(cases, runs, strict=True)}

    return call


def test_every_path_lives_and_dies_or_names_what_is_missing(run: Run) -> None:
    runs = run(leaks.CASES[0])
    assert len(runs) == 13
    assert {name: r.why for name, r in runs.items() if r.state not in ("ok", "unsupported")} == {}
    for result in (r for r in runs.values() if r.state == "ok"):
        assert (result.facts["leak_batches"], result.facts["leak_ops"]) == (2, 20)
        dentries = leaks.counts(result.facts)["dentries"]
        assert len(dentries) == 3


def test_cases_with_several_tasks_live_too(run: Run) -> None:
    runs = run("pipe:writers=2,readers=2,mode=threads|processes", "thread_spawn:tasks=2")
    assert {r.state for r in runs.values()} == {"ok"}


@pytest.mark.full
def test_every_object_has_a_cost_or_names_what_is_missing(run: Run) -> None:
    runs = run("object_cost:object=process|process_pidfd|pidfd|had_pidfd|vma|named_vma|pipe,batch=16", effort=SHORT)
    assert len(runs) == 7
    for name, result in runs.items():
        assert result.state in ("ok", "unsupported", "failed"), name
        # Without root there is no slabinfo, and so no slope: said, never a number.
        assert result.state != "failed" or "without a sample" in result.why, result.why


def test_pressure_is_for_guests(run: Run, program: Path, tmp_path: Path) -> None:
    (tmp_path / "j").write_text("kdelta-jobs 1\nset mode timed\njob 0 getppid pressure=2x60%\nend\n")
    with (tmp_path / "s").open("wb") as file:
        argv: list[str | Path] = [
            program,
            "--native",
            "--jobs",
            tmp_path / "j",
            "--data",
            tmp_path,
            "--fd",
            str(file.fileno()),
        ]
        subprocess.run(argv, pass_fds=[file.fileno()], check=True, timeout=60)
    assert b"memory pressure is for timed runs in a guest" in (tmp_path / "s").read_bytes()
