# SPDX-License-Identifier: GPL-2.0-or-later
"""Plugin intervals + the guest's repetition records -> exact runs: counts per operation, and one profile per run.

A run is only ok when every repetition that the guest marked was counted, and nothing else.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import lines, profiles
from kdelta.errors import GuestError
from kdelta.guest.metrics import repetitions
from kdelta.guest.protocol import Done, Record, Repetition, Value, interval_of
from kdelta.model import EXACT_COUNTERS, Metric, RunResult, Series, State

_KERNEL_HALF = np.uint64(1 << 63)


TRANSFERS = "transfers"


def exact_metrics(part: str = "", parts_per_op: int = 1, cpus: int = 1) -> tuple[Metric, ...]:
    """The metrics of every exact run: the kernel's cost vector and the user part's instructions.

    On several CPUs also the transfers of cache lines between them (``lines``), as primary as instructions.

    Per operation, or per ``part`` where an operation consists of ``parts_per_op`` (a sweep of 205 lookups).
    """
    per = part or "op"

    def metric(name: str, unit: str, help_text: str) -> Metric:
        return Metric(
            name=name,
            unit=f"{unit}/{per}",
            better="lower",
            source=f"exact:{name}/{parts_per_op}",
            primary=name in ("instructions", TRANSFERS),
            help=help_text,
        )

    kernel = tuple(
        metric(name, "B" if name == "rep_bytes" else name.replace("_", " "), f"kernel {name.replace('_', ' ')}")
        for name in EXACT_COUNTERS
    )
    user = metric("user_instructions", "instructions", "user-space instructions: the workload's and libc's")
    moved = metric(TRANSFERS, TRANSFERS, "kernel cache lines that moved between CPUs")
    return (kernel[0], moved, *kernel[1:], user) if cpus > 1 else (*kernel, user)


def parts_of(metrics: Sequence[Metric]) -> int:
    """Into how many parts the metrics divide one operation."""
    return int(metrics[0].source.rpartition("/")[2])


def _vectors(interval: profiles.Interval) -> tuple[np.ndarray, np.ndarray]:
    kernel = interval.pcs >= _KERNEL_HALF
    return interval.counts[kernel].sum(axis=0), interval.counts[~kernel].sum(axis=0)


def _series(
    found: Sequence[tuple[Repetition, profiles.Interval]], moves: Mapping[int, lines.Moves], metrics: Sequence[Metric]
) -> tuple[Series, ...]:
    columns: dict[str, list[float]] = {metric.name: [] for metric in metrics}
    parts = parts_of(metrics)
    for repetition, interval in found:
        if TRANSFERS in columns:
            columns[TRANSFERS].append(moves[repetition.id].total / (repetition.ops * parts))
        kernel, user = _vectors(interval)
        for column, name in enumerate(EXACT_COUNTERS):
            columns[name].append(int(kernel[column]) / (repetition.ops * parts))
        columns["user_instructions"].append(int(user[0]) / (repetition.ops * parts))
    return tuple(Series(metric=m.name, unit=m.unit, better=m.better, values=tuple(columns[m.name])) for m in metrics)


def _pair(
    wanted: Sequence[Repetition], intervals: Mapping[int, profiles.Interval]
) -> list[tuple[Repetition, profiles.Interval]] | str:
    missing = [r.id for r in wanted if r.id not in intervals]
    if not wanted:
        return "the guest marked no repetition"
    if missing:
        return f"{len(missing)} of {len(wanted)} marked repetitions were not counted"
    if any(r.ops <= 0 for r in wanted):
        return "a repetition has no operations"
    return [(r, intervals[r.id]) for r in wanted]


def _run(
    case: int,
    records: Sequence[Record],
    intervals: Mapping[int, profiles.Interval],
    moves: Mapping[int, lines.Moves],
    metrics: Sequence[Metric],
    names: Names,
    boot: tuple[State, str],
) -> RunResult:
    done = next((r for r in records if isinstance(r, Done) and r.j == case), None)
    if done is None:
        state, why = boot if boot[0] != "ok" else ("lost", "the guest never finished this run")
        return RunResult(case=case, state=state, why=why)
    facts = {r.name: r.v for r in records if isinstance(r, Value) and r.j == case}
    if done.state != "ok":
        return RunResult(case=case, state=done.state, why=done.why, facts=facts)
    found = _pair(repetitions(records, case), intervals)
    if isinstance(found, str):
        return RunResult(case=case, state="failed", why=found, facts=facts)
    if moves and any(repetition.id not in moves for repetition, _ in found):
        return RunResult(case=case, state="failed", why="a repetition has no file of lines", facts=facts)
    chosen = profiles.pick([int(_vectors(interval)[0][0]) for _, interval in found])
    repetition, interval = found[chosen]
    profile = profiles.fold(interval, names.functions, ops=repetition.ops * parts_of(metrics))
    if moves:
        profile = replace(profile, moved=lines.table(moves[repetition.id], names.functions, names.variables))
    return RunResult(case=case, state="ok", series=_series(found, moves, metrics), facts=facts, profile=profile)


class Files(Struct, frozen=True):
    """What the plugin wrote, one file for each guest of a boot: counts, and on several CPUs the lines that moved."""

    counts: Sequence[bytes | mmap.mmap]
    lines: Sequence[bytes | mmap.mmap] = ()


class Names(Struct, frozen=True):
    """What is known of a kernel's functions and of its data."""

    functions: profiles.Symbols | None = None
    variables: lines.Variables | None = None


def runs(
    records: Sequence[Record],
    files: Files,
    cases: Sequence[int],
    metrics: Mapping[int, Sequence[Metric]],
    names: Names,
    boot: tuple[State, str],
) -> tuple[RunResult, ...]:
    """One RunResult per case; ``files`` are the plugin's, one of each kind for each guest of the boot.

    Damaged plugin output makes every run of the boot failed, never a number.
    """
    try:
        counts, moved = (files.counts, files.lines) if boot[0] == "ok" else ((), ())
        intervals = {interval_of(guest, i.id): i for guest, file in enumerate(counts) for i in profiles.read(file)}
        several = any(metric.name == TRANSFERS for some in metrics.values() for metric in some)
        moves = {
            interval_of(guest, i.id): i
            for guest, file in enumerate(moved if several else ())
            for i in lines.read(file).intervals
        }
    except GuestError as error:
        return tuple(RunResult(case=case, state="failed", why=f"plugin output: {error}") for case in cases)
    return tuple(_run(case, records, intervals, moves, metrics[case], names, boot) for case in cases)
