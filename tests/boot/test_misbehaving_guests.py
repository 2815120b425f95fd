# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that go wrong are reported as what they are, each with its console saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

WORKLOADS = Path(__file__).parents[1] / "data" / "workloads"
KERNEL = "debian:6.1/cloud"


@pytest.mark.parametrize(
    ("how", "state", "why"),
    [
        ("panic", "panicked", "Kernel panic"),
        ("garbage", "failed", "garbage in the record stream"),
        ("half", "failed", "a process ended the guest (sysrq: Resetting)"),
    ],
)
def test_a_guest_that_goes_wrong_has_its_own_state_and_console(kdelta, answer, how: str, state: str, why: str) -> None:  # type: ignore[no-untyped-def]
    got = answer(
        "run", "--kernel", KERNEL, "--timed", "--boots", "1", "--workloads", str(WORKLOADS),
        "--case", f"misbehave:how={how}", check=None,
    )  # fmt: skip
    (row,) = [r for r in got["results"] if r["metric"] == "ns_per_op"]
    assert (row["state"], row["verdict"], row["baseline"]) == (state, None, None)
    assert why in row["why"]
    console = kdelta("report", "last", "--console", "0.0").stdout
    assert console.strip()


def test_a_panic_in_one_exact_case_costs_that_case_alone(kdelta, answer) -> None:  # type: ignore[no-untyped-def]
    got = answer(
        "run", "--kernel", KERNEL, "--boots", "1", "--workloads", str(WORKLOADS), "--exact",
        "--case", "misbehave:how=panic", "--case", "getppid",
    )  # fmt: skip
    rows = {row["case"]: row for row in got["results"] if row["primary"]}
    assert rows["misbehave:how=panic"]["state"] == "panicked" and "Kernel panic" in rows["misbehave:how=panic"]["why"]
    assert rows["getppid"]["state"] == "ok" and rows["getppid"]["baseline"] > 0
    (faulty,) = got["experiment"]["boots_faulty"]
    assert "block 0, slot 0, misbehave:how=panic: panicked: Kernel panic" in faulty
    console = kdelta("report", "last", "--console", "0.0").stdout
    stamped = [line for line in console.splitlines() if line.startswith("[ ")]
    early = stamped[: next(number for number, line in enumerate(stamped) if "Kernel panic" in line)]
    assert early and len(early) == len(set(early))  # of the boot that both guests came of, once


CASES = """#include "case.h"
CASE(aborts, "ends by a signal of its own") { abort(); }
CASE(exits, "ends") { _exit(3); }
CASE(undone, "what TEARDOWN looks at is not so") { OK(getppid()); }
TEARDOWN(undone) { EXPECT(access("never made", F_OK) == 0); }
CASE(asks, "reads what nobody types") { char c; EXPECT(read(0, &c, 1) == 0); }
CASE(ends_all, "a child of it ends all others") { if (!fork()) { kill(-1, SIGKILL); _exit(0); } pause(); }
"""


def test_counted_cases_end_with_their_own_reason(answer, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Each was "killed by SIGKILL (out of memory?)": that of the process beside it, which init kills in the end.

    What TEARDOWN finds was never looked at: a restored guest took nothing down. Who read hung: standard input was the
    console.
    """
    (tmp_path / "ends.c").write_text(CASES, encoding="ascii")
    got = answer("run", "--kernel", KERNEL, "--boots", "1", "--exact", "--workloads", str(tmp_path), check=None)
    why = {row["case"]: (row["state"], row["why"].rpartition(": failed: ")[2]) for row in got["results"]}
    assert why["aborts"] == ("failed", "the case was killed by SIGABRT")
    assert why["exits"] == ("failed", "the case exited with status 3 and without a result")
    assert why["asks"][0] == "ok"
    assert why["ends_all"][0] == "failed" and "memory did not run out" in why["ends_all"][1]
    assert why["undone"][0] == "failed" and 'access("never made", F_OK) == 0' in why["undone"][1]


@pytest.mark.parametrize("cpus", ["1", "4"])
def test_a_kernel_that_panics_as_it_boots_is_so_on_one_cpu_and_on_several(kdelta, cpus: str) -> None:  # type: ignore[no-untyped-def]
    broken = f'{KERNEL},cmdline="mem=24M"'
    words = ("compare", KERNEL, broken, "--seeds", "1", "--smp", cpus, "--case", "getppid", "--json", "-q")
    done = kdelta(*words, check=None)
    if "its backport cannot be had" in done.stderr:
        pytest.skip(done.stderr.strip())
    rows = [row for row in json.loads(done.stdout)["results"] if row["primary"]]
    assert {row["state"] for row in rows} == {"panicked"}
    assert all("Kernel panic" in row["why"] and row["baseline"] > 0 for row in rows)


def test_a_run_that_hangs_is_hung_and_the_boot_goes_on(answer) -> None:  # type: ignore[no-untyped-def]
    got = answer(
        "run", "--kernel", KERNEL, "--timed", "--boots", "1", "--workloads", str(WORKLOADS), "--limit", "8s",
        "--case", "misbehave:how=hang", "--case", "getppid",
    )  # fmt: skip
    states = {row["case"]: row["state"] for row in got["results"]}
    assert states["misbehave:how=hang"] == "hung"
    assert states["getppid"] == "ok"


@pytest.mark.full
def test_a_kernel_that_cannot_be_paused_counts_as_itself_that_can(answer) -> None:  # type: ignore[no-untyped-def]
    """Under lockdown no process has access to ports; booted cold beside a restored guest it was 1.3 % off."""
    locked = f'locked={KERNEL},cmdline="lockdown=integrity"'
    got = answer("compare", KERNEL, locked, "--case", "pidfd_open")
    (row,) = [row for row in got["results"] if row["primary"]]
    assert row["verdict"] == "same"
