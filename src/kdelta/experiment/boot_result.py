# SPDX-License-Identifier: GPL-2.0-or-later
"""A raw boot and the runs that were read from it -> the BootResult that is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdelta.guest import protocol
from kdelta.guest.complaints import complaints
from kdelta.guest.protocol import Done, Hello, Record
from kdelta.machine.boot import RawBoot
from kdelta.model import BootResult, PlannedBoot, RunResult


def _hello(records: Sequence[Record]) -> dict[str, str]:
    hello = next((r for r in records if isinstance(r, Hello)), None)
    if hello is None:
        return {}
    return {
        "release": hello.release,
        "machine": hello.machine,
        "nproc": str(hello.nproc),
        "mem_kib": str(hello.mem_kib),
        "cmdline": hello.cmdline,
        "clock": hello.clock,
        "clock_read_ns": f"{hello.clock_read_ns:g}",
        "clock_step_ns": "" if hello.clock_step_ns is None else f"{hello.clock_step_ns:g}",
        "port": hello.port,
        "boot_ns": str(hello.uptime_ns),
    } | ({"unknown": hello.unknown} if hello.unknown else {})


def _complaints(console: bytes) -> dict[str, str]:
    found = complaints(console)
    return {"complaints": "\n".join(found)} if found else {}


def boot_result(
    plan: PlannedBoot,
    raw: RawBoot,
    runs: tuple[RunResult, ...],
    *,
    machine: Mapping[str, str],
    facts: Mapping[str, float | str],
    started_at: str,
) -> BootResult:
    """Everything that is kept of one boot. A lost boot's finished runs count for nothing: its block is dropped."""
    return BootResult(
        plan=plan,
        state=raw.state,
        why=raw.why,
        started_at=started_at,
        elapsed_s=raw.elapsed_s,
        first_sample_s=raw.first_sample_s,
        argv=raw.argv,
        machine={**machine, **_hello(raw.records), **_complaints(raw.console)},
        facts=dict(facts),
        console=raw.console,
        stream=raw.stream,
        runs=runs,
    )


def comes_again(boot: BootResult, cases: int) -> bool:
    """Whether an exact boot would end so once more, and may stand for one; ``cases``: of its experiment.

    Emulation repeats a panic, and that a case itself says that it failed. What hung may have been a busy host (as
    machine/deaths.py has it), and what failed otherwise its disk or its QEMU.
    """
    failed = {run.case for run in boot.runs if run.state == "failed"}
    if any(run.state == "hung" for run in boot.runs):
        return False
    records = protocol.parse(boot.stream).records if failed else ()
    return failed <= {one.j % cases for one in records if isinstance(one, Done) and one.state == "failed"}
