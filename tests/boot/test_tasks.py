# SPDX-License-Identifier: GPL-2.0-or-later
"""Several tasks, exactly: the same operations count the same, whoever does them and however many do."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.store.store import Store

WIS = Path(__file__).parents[1] / "data" / "wis"
WAYS = ("getppid", "getppid:mode=processes", "getppid:tasks=2", "getppid:tasks=2,mode=processes", "getppid:tasks=8")


def _rows(answer, *kernels: str) -> dict[str, dict]:  # type: ignore[no-untyped-def, type-arg]
    cases = [word for way in WAYS for word in ("--case", way)]
    got = answer("compare", *kernels, *cases, "--seeds", "2")
    return {row["case"]: row for row in got["results"] if row["metric"] == "instructions"}


def test_a_call_costs_the_same_in_one_task_in_processes_and_in_many(answer) -> None:  # type: ignore[no-untyped-def]
    rows = _rows(answer, "debian:6.12/cloud", "debian:7.0/cloud")
    assert len(rows) == len(WAYS)
    assert len({(row["baseline"], row["patched"], row["verdict"]) for row in rows.values()}) == 1, rows


def test_arm64_counts_what_its_guest_marks(answer) -> None:  # type: ignore[no-untyped-def]
    got = answer("run", "--kernel", "debian:6.12/cloud,arch=arm64", "--exact", "--boots", "1", "--case", "getppid")
    (row,) = (row for row in got["results"] if row["metric"] == "instructions")
    assert row["state"] == "ok" and 100 < row["baseline"] < 1000, row


@pytest.mark.full
def test_tasks_are_told_apart_on_arm64_too(answer) -> None:  # type: ignore[no-untyped-def]
    rows = _rows(answer, "debian:6.12/cloud,arch=arm64", "debian:6.12/cloud,arch=arm64")
    assert len({row["baseline"] for row in rows.values()}) == 1, rows


def test_a_loop_that_never_returns_costs_what_its_operation_costs(answer, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    cases = ["--case", "wis/tick:tasks=1|2,mode=processes|threads", "--case", "getppid"]
    once = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--workloads", str(WIS))
    rows = {row["case"]: row["baseline"] for row in answer(*once, *cases)["results"] if row["metric"] == "instructions"}
    assert len(rows) == 5
    assert all(abs(count / rows["getppid"] - 1) < 0.01 for count in rows.values()), rows
    with Store(f"sqlite:///{tmp_path}/state/kdelta.sqlite") as store:
        runs = store.boot(store.experiment("last").id, 0, 0).runs
    made = [len(series.values) for run in runs for series in run.series if series.metric == "instructions"]
    assert set(made[:2]) <= {1, 2}, "of one task an interval that agrees with the uncounted one before it is enough"
    assert made[2:4] == [3, 3], "of several tasks no two are quite alike"


def test_what_a_pipe_carries_is_counted_to_the_last_byte_and_seeds_agree(answer) -> None:  # type: ignore[no-untyped-def]
    got = answer("compare", "debian:6.12/cloud", "debian:7.0/cloud", "--case", "pipe")
    rows = {row["metric"]: row for row in got["results"]}
    assert min(rows["rep_bytes"]["baseline"], rows["rep_bytes"]["patched"]) > 2 * 65536  # 64 KiB in and out again
    low, high = rows["instructions"]["interval_percent"]
    assert high - low < 0.8, "which task runs on after a wake-up is the seed's chance"
    assert got["experiment"]["boots_done"] == 10, "five seeds a kernel decide it"
