# SPDX-License-Identifier: GPL-2.0-or-later
"""What is inconclusive says how many boots it needs, and these boots decide it: real guests, a known effect."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

WORKLOADS = Path(__file__).parents[1] / "data" / "workloads"
PLAIN = "plain=debian:6.12/cloud"
DEARER = 'dearer=debian:6.12/cloud,cmdline="uneven_extra"'
Program = Callable[..., subprocess.CompletedProcess[str]]


def row_of(said: str) -> dict:  # type: ignore[type-arg]
    return next(row for row in json.loads(said)["results"] if row["metric"] == "instructions")


def undecided(kdelta: Program) -> tuple[str, dict]:  # type: ignore[type-arg]
    """The first experiment of at most eight seeds that leaves the case open, and its row; which one, chance decides."""
    for seed in range(8):
        words = ("--exact", "--case", "uneven", "--workloads", str(WORKLOADS), "--seeds", "8", "--seed", str(seed))
        said = kdelta("compare", PLAIN, DEARER, *words, "--json", "-q").stdout
        if row_of(said)["verdict"] == "inconclusive":
            return json.loads(said)["experiment"]["id"], row_of(said)
    pytest.fail("eight experiments of eight seeds each were all decided")


@pytest.mark.full
def test_the_boots_that_an_undecided_case_asks_for_decide_it(kdelta: Program) -> None:
    asked, row = undecided(kdelta)
    assert row["boots_needed"] >= 8 and row["detectable_percent"] > 0
    said = kdelta("resume", asked, "--decide", "--json", timeout=1800)
    decided = row_of(said.stdout)
    assert json.loads(said.stdout)["experiment"]["id"] != asked
    assert decided["verdict"] == "regressed" and decided["boots"][1] <= row["boots_needed"]
    low, high = decided["interval_percent"]
    assert low < 100 * 3 * 113 / 8800 < high, "three files of 113 instructions each"
    kdelta("resume", "last", "--decide", check=1)
    assert row_of(kdelta("report", asked, "--json").stdout)["verdict"] == "inconclusive", "the first stands as it was"
