# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPU's own counters, on this machine: a figure, or why there is none; times are taken as without."""

from __future__ import annotations

import errno
import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.guest import binary, metrics, protocol
from kdelta.model import RunResult
from kdelta.results.definitions import pmu_metrics
from kdelta.spec import workloads

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")
TIMED = "limit_ms=20000 warmup=0 windows=2 window_ms=2 latency_ops=10 pmu=2"


@pytest.mark.parametrize("params", ["tasks=1 mode=threads", "tasks=2 mode=threads", "tasks=2 mode=processes"])
def test_instructions_are_counted_or_it_is_said_why_not(guest_cache: Path, tmp_path: Path, params: str) -> None:
    program = binary.build("x86_64", cache=guest_cache)
    (tmp_path / "jobs").write_text(f"kdelta-jobs 1\nset mode timed\njob 0 getppid {TIMED} {params}\nend\n")
    with (tmp_path / "stream").open("wb") as file:
        words = ["--native", "--jobs", str(tmp_path / "jobs"), "--data", str(tmp_path), "--fd", str(file.fileno())]
        subprocess.run([str(program), *words], pass_fds=[file.fileno()], check=True, timeout=120)
    stream = protocol.parse((tmp_path / "stream").read_bytes())
    known = (*workloads.catalogue()["getppid"].metrics, *pmu_metrics())
    (found,) = metrics.timed_runs(stream.records, (0,), {0: known}, (stream.state, stream.why))
    assert found.state == "ok", found.why
    assert _counted(found) != _refused(found), found.facts
    if _counted(found):
        assert 20 < found.facts["pmu_kernel_instructions"] < 20_000
    else:
        assert int(found.facts["pmu_errno"]) in errno.errorcode


def _counted(run: RunResult) -> bool:
    return any(series.metric == "pmu_kernel_instructions" for series in run.series)


def _refused(run: RunResult) -> bool:
    return "pmu_errno" in run.facts


def test_counts_are_of_a_part_where_an_operation_has_several() -> None:
    records = (
        protocol.Window(j=0, i=0, ops=1, ns=1000),
        protocol.Value(j=0, name="pmu_user_cycles", v=4100.0),
        protocol.Done(j=0, state="ok"),
    )
    known = (*workloads.catalogue()["path_lookup"].metrics, *pmu_metrics("lookup", 205))
    (found,) = metrics.timed_runs(records, (0,), {0: known}, ("ok", ""))
    (series,) = [one for one in found.series if one.metric == "pmu_user_cycles"]
    assert (series.unit, series.values) == ("cycles/lookup", (20.0,))
