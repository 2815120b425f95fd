# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPU's own counters: an emulated arm64 PMU counts what the plugin counts; where there is none, it is said."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from boot.marked_guest import kernel_instructions, marked
from kdelta.machine import plugin
from kdelta.machine.process import find_program
from kdelta.machine.qemu import ARM_CORE
from kdelta.store.store import Store

pytestmark = pytest.mark.full
# As exact guests boot: kernel addresses at random bring another path into the kernel (arm64: page-table isolation).
# What is freed by RCU is freed by a thread of the kernel (rcu_nocbs), not in the ticks of whoever runs just then: an
# exact interval ends before that.
ARM = 'debian:6.12/cloud,arch=arm64,cmdline="nokaslr norandmaps randomize_kstack_offset=off rcu_nocbs=0"'
CASES = ("--case", "getppid", "--case", "syscalls/poll-100", "--case", "syscalls/stat", "--case", "path_lookup")


PLAIN = 'debian:6.12/cloud,arch=arm64,cmdline="nokaslr norandmaps randomize_kstack_offset=off"'
SEVEN = (
    "getppid", "syscalls/poll-100", "syscalls/stat", "syscalls/read-1", "syscalls/getpid", "path_lookup", "pidfd_open",
)  # fmt: skip
PARTS = {"path_lookup": 205}  # of an operation: its figures are of one of them


def counting(folder: Path, *more: str) -> Path:
    """QEMU's arm64 with a PMU that counts instructions: it does under ``-icount`` alone (target/arm/helper.c)."""
    wrapper = folder / "qemu"
    real = find_program("qemu-system-aarch64", "qemu-system-arm")
    wrapper.write_text(f'#!/bin/sh\nexec {real} "$@" {shlex.join(["-icount", "shift=0,sleep=off", *more])}\n')
    wrapper.chmod(0o755)
    return wrapper


@pytest.fixture
def counting_qemu(tmp_path: Path) -> Path:
    """With the core of exact guests: what it does against speculation is 75 instructions of getppid's 379."""
    return counting(tmp_path, "-cpu", ARM_CORE)


def _instructions(found: dict[str, Any], metric: str) -> dict[str, float]:
    return {row["case"]: row["baseline"] for row in found["results"] if row["metric"] == metric}


def test_an_emulated_pmu_counts_what_the_plugin_counts(answer, counting_qemu: Path) -> None:  # type: ignore[no-untyped-def]
    counted = answer("run", ARM, *CASES, "--boots", "1", "--exact")
    timed = answer("run", ARM, *CASES, "--boots", "1", "--pmu", "--qemu", str(counting_qemu))
    by_plugin = _instructions(counted, "instructions")
    assert _instructions(timed, "pmu_kernel_instructions") == pytest.approx(by_plugin, rel=0.01)
    user = _instructions(counted, "user_instructions")
    for case, instructions in _instructions(timed, "pmu_user_instructions").items():
        assert 0.8 < instructions / user[case] <= 1  # an exact interval is short, and holds the call of its loop
    assert not [line for line in timed["warnings"] if line["code"] == "no-pmu"]
    assert not _instructions(timed, "pmu_kernel_cache_misses")  # which this PMU does not count


# Counters of tasks stand still while perf stops and starts them, at each task switch: pipe does little else. Those of
# the CPU also count what kernel threads do while they are read, which is after each operation of pidfd_open.
@pytest.mark.parametrize(("cases", "whole_cpu"), [(SEVEN, False), (("path_lookup", "pipe"), True)])
def test_both_count_the_same_of_the_same_operations(
    tmp_path: Path, cache: Path, cases: tuple[str, ...], whole_cpu: bool
) -> None:
    """One guest whose windows the plugin sees: what runs in them, in the case's tasks or at all, is counted by both."""
    source, counts = marked(tmp_path / "marked", whole_cpu), tmp_path / "counts"
    qemu = counting(tmp_path, "-plugin", f"{plugin.build(cache)},out={counts}")
    environment = {**os.environ, "PYTHONPATH": str(source), "KDELTA_STATE": str(tmp_path / "state")}
    words = [word for case in cases for word in ("--case", case)]
    asked = ["run", PLAIN, *words, "--boots", "1", "--pmu", "--qemu", str(qemu), "--json", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", "from kdelta.cli.main import main; main()", *asked],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=True,
    )  # fmt: skip
    with Store(f"sqlite:///{tmp_path / 'state' / 'kdelta.sqlite'}") as store:
        ops = [row.facts["pmu_ops"] for row in store.facts("last")]
    by_pmu = _instructions(json.loads(done.stdout), "pmu_kernel_instructions")
    by_plugin = {
        case: kernel_instructions(counts)[job] / ops[job] / PARTS.get(case, 1) for job, case in enumerate(cases)
    }
    assert by_pmu == pytest.approx(by_plugin, rel=0.01)


def test_where_there_is_none_it_is_said(answer) -> None:  # type: ignore[no-untyped-def]
    found = answer("run", "debian:6.12/cloud", "--case", "getppid", "--case", "pipe", "--boots", "1", "--pmu")
    assert {row["state"] for row in found["results"]} == {"ok"}
    (warning,) = [line for line in found["warnings"] if line["code"] == "no-pmu"]
    assert "getppid, pipe" in warning["text"]
    assert "has none" in warning["text"]
    assert not _instructions(found, "pmu_kernel_instructions")
