# SPDX-License-Identifier: GPL-2.0-or-later
"""A patch that breaks a selftest is stopped by the gate, whatever its speed; a series goes in steps. Builds kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"
TREE = "src:debian:6.12"
LONG_S = 5400.0  # a first build on two busy cores

pytestmark = pytest.mark.full


def test_a_patch_that_breaks_a_pidfd_selftest_is_stopped(kdelta) -> None:  # type: ignore[no-untyped-def]
    done = kdelta(
        "compare", TREE, f"bad={TREE}+{DATA / 'patches' / 'pidfd-flags.patch'}", "--exact",
        "--case", "pidfd_open", "--selftests", "pidfd", "--fail-on", "regressed", "--json", "-q",
        timeout=LONG_S, check=4,
    )  # fmt: skip
    got = json.loads(done.stdout)
    assert got["gate"].startswith("failed the gate")
    assert "pidfd:pidfd_open_test" in got["gate"]
    ktap = kdelta("report", "last", "--ktap", "bad").stdout
    assert "not ok" in ktap and ktap.startswith("KTAP version 1")


def test_the_step_of_a_series_that_made_the_difference_is_named(answer) -> None:  # type: ignore[no-untyped-def]
    got = answer(
        "compare", TREE, f"{TREE}+{DATA / 'mail' / 'pipe-series.mbox'}", "--each", "--exact",
        "--case", "pipe:message=64", timeout=LONG_S,
    )  # fmt: skip
    assert [kernel["label"] for kernel in got["kernels"]][2] == "2/3 pipe: step 2"
    (step,) = got["steps"]
    assert (step["last"], step["first"]) == ("1/3 pipe: step 1", "2/3 pipe: step 2")
    # The function's own count is the patch's; the total also holds what a slower writer does to the scheduler.
    deltas = {item["function"]: item["delta"] for item in step["because"]}
    assert deltas["pipe_write"] == pytest.approx(100, abs=2)
    assert step["patched"] - step["baseline"] >= 98
    code = [warning["text"] for warning in got["warnings"] if warning["code"] == "machine-code"]
    assert ["identical" in line for line in code] == [True, False, True]


def test_a_patch_that_boots_into_a_panic_has_that_state_and_a_console(kdelta) -> None:  # type: ignore[no-untyped-def]
    done = kdelta(
        "compare", TREE, f"{TREE}+{DATA / 'mail' / 'pipe-panic.patch'}", "--exact",
        "--case", "pipe", "--json", "-q", timeout=LONG_S, check=None,
    )  # fmt: skip
    got = json.loads(done.stdout)
    assert {row["state"] for row in got["results"] if row["primary"]} == {"panicked"}
    assert "Kernel panic" in kdelta("report", "last", "--console", "0.1").stdout
