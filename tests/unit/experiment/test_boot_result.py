# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of one boot."""

from __future__ import annotations

from typing import Any

from kdelta.experiment.boot_result import boot_result
from kdelta.guest.protocol import Hello, Record
from kdelta.machine.boot import RawBoot
from kdelta.model import BootResult, PlannedBoot, RunResult

HELLO = Hello(proto=1, release="7.0", machine="x86_64", nproc=1, mem_kib=9, cmdline="quiet x", clock="tsc", port="uart")


def kept(*records: Record, **more: Any) -> BootResult:
    fields: dict[str, Any] = {
        "argv": ("qemu",), "state": "ok", "why": "", "records": records, "console": b"\xff", "stream": b"kd1",
        "counts": b"", "elapsed_s": 3.5, "first_sample_s": 1.0, "qemu_log": "",
    }  # fmt: skip
    raw = RawBoot(**{**fields, **more})
    plan = PlannedBoot(block=2, slot=1, kernel=1)
    runs = (RunResult(case=0, state="ok"),)
    return boot_result(plan, raw, runs, machine={"accel": "tcg"}, facts={"steal_percent": 0.5}, started_at="2026")


def test_the_guest_s_own_words_stand_beside_those_of_the_host() -> None:
    boot = kept(HELLO)
    assert (boot.machine["accel"], boot.machine["release"], boot.machine["cmdline"]) == ("tcg", "7.0", "quiet x")
    assert "unknown" not in boot.machine
    assert (boot.plan.block, boot.console, boot.stream, boot.facts) == (2, b"\xff", b"kd1", {"steal_percent": 0.5})


def test_a_guest_that_never_spoke_is_kept_with_its_state() -> None:
    boot = kept(state="panicked", why="Kernel panic", first_sample_s=None)
    assert (boot.state, boot.why, boot.machine) == ("panicked", "Kernel panic", {"accel": "tcg"})


def test_parameters_that_the_kernel_does_not_know_are_kept() -> None:
    assert kept(Hello(proto=1, release="7.0", machine="x86_64", unknown="nosuch=1")).machine["unknown"] == "nosuch=1"
