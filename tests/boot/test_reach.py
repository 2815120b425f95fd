# SPDX-License-Identifier: GPL-2.0-or-later
"""Which cases execute a function, counted in real guests; and a patch's cases, chosen by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"
CASES = ("--case", "pidfd_open", "--case", "syscalls/write_null", "--case", "syscalls/fifo_pingpong")


def test_reach_lists_the_cases_of_a_function_and_the_nearest_callers_of_others(kdelta) -> None:  # type: ignore[no-untyped-def]
    asked = ("debian:6.12/cloud", "pidfd_prepare", "pipe_write", "ext4_sync_file", *CASES)
    got = json.loads(kdelta("reach", *asked, "--json", "-q").stdout)
    by_name = {item["function"]: item for item in got["functions"]}
    (one,) = by_name["pidfd_prepare"]["cases"]
    assert (one["case"], one["calls_per_op"]) == ("pidfd_open", 1.0)
    assert [(item["case"], item["calls_per_op"]) for item in by_name["pipe_write"]["cases"]] == [
        ("syscalls/fifo_pingpong", 2.0)
    ]
    assert by_name["ext4_sync_file"]["cases"] == []
    again = kdelta("reach", *asked)
    assert "no case executes it" in again.stdout and "mapping" not in again.stderr


@pytest.mark.full
def test_a_patch_is_measured_by_the_cases_that_execute_it(kdelta) -> None:  # type: ignore[no-untyped-def]
    tree = "src:debian:6.12"
    change = ("compare", tree, f"{tree}+{DATA / 'mail' / 'pipe-loop.patch'}", "--exact", "--time-budget", "10m")
    got = json.loads(kdelta(*change, "--json", "-q", timeout=5400.0).stdout)
    assert got["looked"]["measured"] == ["pipe_write"] and got["looked"]["unreached"] == []
    rows = [row for row in got["results"] if row["primary"] and row["verdict"] != "same"]
    assert len(rows) > 4 and {row["verdict"] for row in rows} == {"regressed"}
    assert all("pipe_write" in {item["function"] for item in row["because"]} for row in rows)
    same = kdelta("compare", tree, f"{tree}+{DATA / 'mail' / 'pipe-comment.patch'}", timeout=5400.0)
    said = " ".join(same.stdout.split())
    assert "there is nothing to measure" in said and "nothing was booted" in said
