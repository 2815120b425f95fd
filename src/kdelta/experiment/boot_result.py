# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw boots -> BootResults: what a guest said, and in exact mode what the plugin counted, as runs with series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdelta.attribution import exact
from kdelta.attribution.profiles import Symbols
from kdelta.guest import metrics as guest_metrics
from kdelta.guest.protocol import Hello, Record
from kdelta.machine.boot import RawBoot
from kdelta.model import BootResult, Experiment, Metric, PlannedBoot, RunResult


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
        "clock_step_ns": f"{hello.clock_step_ns:g}",
        "port": hello.port,
        "boot_ns": str(hello.uptime_ns),
    } | ({"unknown": hello.unknown} if hello.unknown else {})


def _runs(
    experiment: Experiment,
    cases: Sequence[int],
    raw: RawBoot,
    metrics: Mapping[int, Sequence[Metric]],
    symbols: Symbols | None,
) -> tuple[RunResult, ...]:
    boot_state = (raw.state, raw.why)
    if experiment.mode == "exact":
        return exact.runs(raw.records, raw.counts, cases, metrics, symbols, boot_state)
    return guest_metrics.timed_runs(raw.records, cases, metrics, boot_state)


def boot_result(
    experiment: Experiment,
    plan: PlannedBoot,
    raw: RawBoot,
    *,
    metrics: Mapping[int, Sequence[Metric]],
    symbols: Symbols | None,
    machine: Mapping[str, str],
    facts: Mapping[str, float | str],
    started_at: str,
) -> BootResult:
    """Everything that is kept of one boot. A lost boot's finished runs count for nothing: its block is dropped."""
    cases = plan.cases or tuple(range(len(experiment.cases)))
    return BootResult(
        plan=plan,
        state=raw.state,
        why=raw.why,
        started_at=started_at,
        elapsed_s=raw.elapsed_s,
        first_sample_s=raw.first_sample_s,
        argv=raw.argv,
        machine={**machine, **_hello(raw.records)},
        facts=dict(facts),
        console=raw.console,
        stream=raw.stream,
        runs=_runs(experiment, cases, raw, metrics, symbols),
    )
