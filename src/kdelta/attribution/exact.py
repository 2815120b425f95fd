# SPDX-License-Identifier: GPL-2.0-or-later
"""Plugin intervals + the guest's repetition records -> exact runs: counts per operation, and one profile per run.

A run is only ok when every repetition that the guest marked was counted, and nothing else.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from kdelta.attribution import entries, profiles
from kdelta.attribution.entries import Entries
from kdelta.errors import GuestError
from kdelta.guest.metrics import repetitions
from kdelta.guest.protocol import Done, Record, Repetition, Value, guest_of, interval_of
from kdelta.model import EXACT_COUNTERS, Metric, RunResult, Series, State

_KERNEL_HALF = np.uint64(1 << 63)


def exact_metrics(part: str = "", parts_per_op: int = 1) -> tuple[Metric, ...]:
    """The metrics of every exact run: the kernel's cost vector and the user part's instructions.

    Per operation, or per ``part`` where an operation consists of ``parts_per_op`` (a sweep of 205 lookups).
    """
    per = part or "op"

    def metric(name: str, unit: str, help_text: str) -> Metric:
        return Metric(
            name=name,
            unit=f"{unit}/{per}",
            better="lower",
            source=f"exact:{name}/{parts_per_op}",
            primary=name == "instructions",
            help=help_text,
        )

    kernel = tuple(
        metric(name, "B" if name == "rep_bytes" else name.replace("_", " "), f"kernel {name.replace('_', ' ')}")
        for name in EXACT_COUNTERS
    )
    return (*kernel, metric("user_instructions", "instructions", "user-space instructions: the workload's and libc's"))


def parts_of(metrics: Sequence[Metric]) -> int:
    """Into how many parts the metrics divide one operation."""
    return int(metrics[0].source.rpartition("/")[2])


def _vectors(interval: profiles.Interval) -> tuple[np.ndarray, np.ndarray]:
    kernel = interval.pcs >= _KERNEL_HALF
    return interval.counts[kernel].sum(axis=0), interval.counts[~kernel].sum(axis=0)


def _series(found: Sequence[tuple[Repetition, profiles.Interval]], metrics: Sequence[Metric]) -> tuple[Series, ...]:
    columns: dict[str, list[float]] = {metric.name: [] for metric in metrics}
    parts = parts_of(metrics)
    for repetition, interval in found:
        kernel, user = _vectors(interval)
        for column, name in enumerate(EXACT_COUNTERS):
            columns[name].append(int(kernel[column]) / (repetition.ops * parts))
        columns["user_instructions"].append(int(user[0]) / (repetition.ops * parts))
    return tuple(Series(metric=m.name, unit=m.unit, better=m.better, values=tuple(columns[m.name])) for m in metrics)


def _pair(
    wanted: Sequence[Repetition], files: Sequence[Mapping[int, profiles.Interval] | str]
) -> list[tuple[Repetition, profiles.Interval]] | str:
    if not wanted:
        return "the guest marked no repetition"
    guests = {guest_of(r.id) for r in wanted}
    mine = [files[guest] for guest in guests if guest < len(files)]
    if damaged := next((file for file in mine if isinstance(file, str)), None):
        return damaged
    intervals = {nr: one for file in mine if not isinstance(file, str) for nr, one in file.items()}
    missing = [r.id for r in wanted if r.id not in intervals]
    if missing:
        return f"{len(missing)} of {len(wanted)} marked repetitions were not counted"
    if any(r.ops <= 0 for r in wanted):
        return "a repetition has no operations"
    return [(r, intervals[r.id]) for r in wanted]


def _run(
    case: int,
    records: Sequence[Record],
    files: Sequence[Mapping[int, profiles.Interval] | str],
    metrics: Sequence[Metric],
    symbols: profiles.Symbols | None,
    end: tuple[State, str],
    known: Entries | None,
) -> RunResult:
    done = next((r for r in records if isinstance(r, Done) and r.j == case), None)
    if done is None:
        state, why = end if end[0] != "ok" else ("lost", "the guest never finished this run")
        return RunResult(case=case, state=state, why=why)
    facts = {r.name: r.v for r in records if isinstance(r, Value) and r.j == case}
    if done.state != "ok":
        return RunResult(case=case, state=done.state, why=done.why, facts=facts)
    found = _pair(repetitions(records, case), files)
    if isinstance(found, str):
        return RunResult(case=case, state="failed", why=found, facts=facts)
    chosen = profiles.pick([int(_vectors(interval)[0][0]) for _, interval in found])
    repetition, interval = found[chosen]
    profile = profiles.fold(interval, symbols, ops=repetition.ops * parts_of(metrics))
    if known is not None and interval.system_calls is not None:
        total = profiles.kernel_vector(profile)[0]
        profile = replace(profile, system_calls=entries.counted(known, interval.system_calls, total))
    return RunResult(case=case, state="ok", series=_series(found, metrics), facts=facts, profile=profile)


def runs(
    records: Sequence[Record],
    counts: Sequence[bytes | mmap.mmap],
    cases: Sequence[int],
    metrics: Mapping[int, Sequence[Metric]],
    symbols: profiles.Symbols | None,
    end_of: Callable[[int], tuple[State, str]],
    known: Entries | None = None,
) -> tuple[RunResult, ...]:
    """One RunResult per case; ``counts`` are the plugin's files, one for each guest of the boot that ended well.

    Damaged plugin output makes every run of its guest failed, never a number. ``end_of``: how a case's guest ended;
    ``known``: the entries of the kernel that the plugin was given.
    """
    well = any(end_of(case)[0] == "ok" for case in cases)
    files = [_read(guest, file) for guest, file in enumerate(counts if well else ())]
    return tuple(_run(case, records, files, metrics[case], symbols, end_of(case), known) for case in cases)


def _read(guest: int, file: bytes | mmap.mmap) -> dict[int, profiles.Interval] | str:
    """The intervals of one guest by their ids among all guests of a boot, or what is wrong with them."""
    try:
        return {interval_of(guest, one.id): one for one in profiles.read(file)}
    except GuestError as error:
        return f"plugin output: {error}"
