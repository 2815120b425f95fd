# SPDX-License-Identifier: GPL-2.0-or-later
"""Times and counts of the same kernels in one comparison, measured."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

KERNEL = "debian:6.12/cloud"


@pytest.mark.full
def test_times_and_counts_stand_in_one_table_and_time_alone_decides(
    kdelta: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    words = ("compare", f"a={KERNEL}", f"b={KERNEL}", "--timed", "--exact", "--case", "pidfd_open", "--blocks", "1")
    done = kdelta(*words, "--seeds", "5", "--json", "-q")
    document = json.loads(done.stdout)
    assert document["experiment"]["mode"] == "timed"
    assert {row["metric"] for row in document["results"]} >= {"ns_per_op"}
    assert {row["metric"]: row["verdict"] for row in document["counts"]}["instructions"] == "same"
    told = kdelta("report", "last").stdout
    assert "instructions" in told and "with counts beside it" in " ".join(told.split())
    assert "pidfd_open" in kdelta("why", "last", "pidfd_open").stdout
    assert kdelta("resume", "last", "-q").returncode == 0, "nothing is left of either pass"
