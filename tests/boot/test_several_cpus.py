# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of several CPUs: what crosses between them, the same each time, and whatever the length of their turns."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

RUN = (
    "run",
    "--kernel",
    "debian:6.12/cloud",
    "--exact",
    "--boots",
    "1",
    "--smp",
    "4",
    "--case",
    "thread_spawn:tasks=4",
)


@pytest.mark.full
def test_transfers_repeat_converge_and_are_those_of_the_lines_they_name(
    kdelta: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    found = []
    for turn in ("200", "200", "800"):
        done = kdelta(*RUN, "--turn", turn, "--json", "-q", check=None)
        if "its backport cannot be had" in done.stderr:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        rows = {row["metric"]: row["baseline"] for row in json.loads(done.stdout)["results"]}
        found.append((rows["transfers"], rows["instructions"]))
    assert found[0] == found[1], "restored from one snapshot, two runs are the same"
    assert abs(found[2][0] / found[0][0] - 1) < 0.15
    told = kdelta("why", "last", "thread_spawn:tasks=4", "--all").stdout
    assert "tasklist_lock" in told and "pidmap_lock" in told
    assert found[0][0] > 20, "on one CPU nothing moves"
