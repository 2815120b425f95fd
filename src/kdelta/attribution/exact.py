# SPDX-License-Identifier: GPL-2.0-or-later
"""Plugin intervals + the guest's repetition records -> exact runs: counts per operation, and one profile per run.

A run is only ok when every repetition that the guest marked was counted, and nothing else.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import entries, line_names, line_table, lines, profiles, stacks
from kdelta.attribution.entries import Entries
from kdelta.errors import GuestError
from kdelta.guest.metrics import repetitions
from kdelta.guest.protocol import Done, Record, Repetition, Value, guest_of, interval_of
from kdelta.model import EXACT_COUNTERS, Metric, RunResult, Series, State

_KERNEL_HALF = np.uint64(1 << 63)


TRANSFERS = "transfers"
WAITS = "waits"
RETRIES = "retries"
GROWS = "grows_percent"  # a fact of a run: see growth_percent
_FASTER_CLOCK = "faster_clock_cpu"  # and another, of guest/workloads/program.c
_STEPS, _GROWS_PERCENT, _ALIKE = 2, 0.5, 2.0
CROSSING = (TRANSFERS, WAITS, RETRIES)  # what there is of several CPUs alone
TOUCHED = (("data_lines", "the kernel's data touched"), ("code_lines", "the kernel's code executed"))

MOVED_LEAST = 0.05  # transfers, or waits, per operation: what a control that shares nothing has is a third of that
# Of a loop that never returns an interval holds its two edges: an operation that does not enter the kernel has 0.08 to
# 0.3 of their instructions (will-it-scale's pthread_mutex, posix_semaphore1, malloc2), +7 % between two releases.
ENDLESS_LEAST = 0.5

# Lines hang on how memory is laid out: of 163 system calls of one image a longer command line moved 31 by lines of data
# or code, 30 of them by no more than 0.2 an operation (13 lines in 64).
LINES_LEAST = 0.25
# What happens once an interval, or does not, under all seeds of a boot: of one with few operations it is more of each
# (select-1000, whose interval is one: 2 lines of 151 for 3 instructions of 115,949; fallocate, 4: 7 lines).
_LINES_ONCE = 8


def exact_metrics(
    part: str = "", parts_per_op: int = 1, cpus: int = 1, *, endless: bool = False, ops: int = 0
) -> tuple[Metric, ...]:
    """The metrics of every exact run: the kernel's cost vector and the user part's instructions.

    On one CPU also the distinct cache lines of an interval (as its share of each operation); on several the transfers
    of lines between them (``lines``), as primary as instructions, how often a lock was found taken, and a sequence
    counter written by its reader.

    Per operation, or per ``part`` where an operation consists of ``parts_per_op`` (a sweep of 205 lookups).
    ``endless``: of a loop that is stopped, whose intervals have edges. ``ops``: operations of an interval.
    """
    per = part or "op"
    least = ENDLESS_LEAST if endless else 0.0
    lines_least = max(least, LINES_LEAST, _LINES_ONCE / (ops * parts_per_op) if ops else 0.0)

    def metric(name: str, unit: str, help_text: str, least: float = least) -> Metric:
        return Metric(
            name=name,
            unit=f"{unit}/{per}",
            better="lower",
            source=f"exact:{name}/{parts_per_op}",
            primary=name in ("instructions", TRANSFERS),
            help=help_text,
            least=MOVED_LEAST if name in CROSSING else least,
        )

    kernel = tuple(
        metric(name, "B" if name == "rep_bytes" else name.replace("_", " "), f"kernel {name.replace('_', ' ')}")
        for name in EXACT_COUNTERS
    )
    user = metric("user_instructions", "instructions", "user-space instructions: the workload's and libc's")
    moved = metric(TRANSFERS, TRANSFERS, "kernel cache lines that moved between CPUs")
    touched = tuple(
        metric(name, name.replace("_", " "), f"distinct cache lines of {what}", lines_least) for name, what in TOUCHED
    )
    if cpus == 1:
        return (*kernel, *touched, user)
    taken = metric(WAITS, WAITS, "times that a lock was found taken")
    retried = metric(RETRIES, RETRIES, "times that a sequence counter was found written by who read under it")
    return (kernel[0], moved, taken, retried, *kernel[1:], user)


def parts_of(metrics: Sequence[Metric]) -> int:
    """Into how many parts the metrics divide one operation."""
    return int(metrics[0].source.rpartition("/")[2])


def _vectors(interval: profiles.Interval) -> tuple[np.ndarray, np.ndarray]:
    kernel = interval.pcs >= _KERNEL_HALF
    return interval.counts[kernel].sum(axis=0), interval.counts[~kernel].sum(axis=0)


def _touched(interval: profiles.Interval) -> dict[str, int]:
    """Distinct cache lines by metric; {} where they were not counted."""
    if interval.touched is None:
        return {}
    code = profiles.code_lines(interval, [""] * len(interval.pcs))
    return {"data_lines": int(interval.touched[:, 1].sum()), "code_lines": sum(code.values())}


class Files(Struct, frozen=True):
    """What the plugin wrote, one file for each guest of a boot: counts, and on several CPUs the lines that moved."""

    counts: Sequence[bytes | mmap.mmap]
    lines: Sequence[bytes | mmap.mmap] = ()


class Names(Struct, frozen=True, kw_only=True):
    """What is known of a kernel's functions, of its data and its types, and of where it is entered.

    ``facts``: what the plugin is told of it where it follows lines (attribution/callers.py).
    """

    functions: profiles.Symbols | None = None
    variables: line_names.Variables | None = None
    types: line_names.Types | None = None
    facts: bytes | None = None
    entries: Entries | None = None
    watched: tuple[tuple[str, int, int], ...] = ()  # (symbol, start, end) of the functions whose instructions are told


class _Guest(Struct, frozen=True):
    """What was counted in one guest, by the ids of its intervals among all guests of the boot."""

    intervals: Mapping[int, profiles.Interval]
    moves: Mapping[int, lines.Moves] | None  # None: it has one CPU


class _Counted(Struct, frozen=True, eq=False):
    """One repetition that was counted."""

    repetition: Repetition
    interval: profiles.Interval
    moves: lines.Moves | None

    @property
    def ops(self) -> int:
        return self.repetition.ops


def _series(found: Sequence[_Counted], metrics: Sequence[Metric], names: Names) -> tuple[Series, ...]:
    columns: dict[str, list[float]] = {metric.name: [] for metric in metrics}
    parts = parts_of(metrics)
    for one in found:
        kernel, user = _vectors(one.interval)
        for column, name in enumerate(EXACT_COUNTERS):
            columns[name].append(int(kernel[column]) / (one.ops * parts))
        columns["user_instructions"].append(int(user[0]) / (one.ops * parts))
        for name, number in _touched(one.interval).items():
            columns.setdefault(name, []).append(number / (one.ops * parts))
        if one.moves is not None:
            columns[TRANSFERS].append(one.moves.total / (one.ops * parts))
            if names.facts is not None and WAITS in columns:
                columns[WAITS].append(line_table.waited(one.moves, names.functions) / (one.ops * parts))
            if RETRIES in columns and one.moves.sequences is not None:
                retries = line_table.read_in_vain(one.moves, names.variables, names.types)
                columns[RETRIES].append(retries / (one.ops * parts))
    known = (metric for metric in metrics if columns[metric.name])
    return tuple(Series(metric=m.name, unit=m.unit, better=m.better, values=tuple(columns[m.name])) for m in known)


def _pair(wanted: Sequence[Repetition], guests: Sequence[_Guest | str]) -> list[_Counted] | str:
    if not wanted:
        return "the guest marked no repetition"
    numbers = {guest_of(r.id) for r in wanted}
    mine = [guests[number] for number in numbers if number < len(guests)]
    if damaged := next((guest for guest in mine if isinstance(guest, str)), None):
        return damaged
    whole = [guest for guest in mine if not isinstance(guest, str)]
    intervals = {nr: one for guest in whole for nr, one in guest.intervals.items()}
    moves = {nr: one for guest in whole for nr, one in (guest.moves or {}).items()}
    several = any(guest.moves is not None for guest in whole)
    missing = [r.id for r in wanted if r.id not in intervals or (several and r.id not in moves)]
    if missing:
        return f"{len(missing)} of {len(wanted)} marked repetitions were not counted"
    if any(r.ops <= 0 for r in wanted):
        return "a repetition has no operations"
    return [_Counted(r, intervals[r.id], moves.get(r.id)) for r in wanted]


def growth_percent(costs: Sequence[float]) -> float | None:
    """By how much each repetition cost more than the one before, on average; None where any did not.

    A first one that is dearer is warming up, and the others are alike then. What is made longer each time rises by as
    much each time. What the kernel does in bulk now and then (it frees a batch of pages) rises by chance, alike under
    all seeds: madvise(2) took 11311, 11631 and 13215, on another kernel 11619, 11324 and 12870.
    """
    rises = [after - before for before, after in pairwise(costs)]
    steps = [100.0 * rise / before for rise, before in zip(rises, costs, strict=False) if before]
    grows = len(steps) >= _STEPS and len(steps) == len(rises) and min(steps) >= _GROWS_PERCENT
    return sum(steps) / len(steps) if grows and max(rises) <= _ALIKE * min(rises) else None


def _run(
    case: int,
    records: Sequence[Record],
    guests: Sequence[_Guest | str],
    metrics: Sequence[Metric],
    names: Names,
    end: tuple[State, str],
) -> RunResult:
    done = next((r for r in records if isinstance(r, Done) and r.j == case), None)
    if done is None:
        state, why = end if end[0] != "ok" else ("lost", "the guest never finished this run")
        return RunResult(case=case, state=state, why=why)
    facts = {r.name: r.v for r in records if isinstance(r, Value) and r.j == case}
    if done.state != "ok":
        return RunResult(case=case, state=done.state, why=done.why, facts=facts)
    found = _pair(repetitions(records, case), guests)
    if isinstance(found, str):
        return RunResult(case=case, state="failed", why=found, facts=facts)
    costs = [int(_vectors(one.interval)[0][0]) / one.ops for one in found]
    if (grows := growth_percent(costs)) is not None:
        facts[GROWS] = grows
    chosen = found[profiles.pick(costs)]  # by operation: of a loop that is stopped each repetition has others
    profile = profiles.fold(chosen.interval, names.functions, ops=chosen.ops * parts_of(metrics))
    if chosen.moves is not None:
        known = (chosen.moves, names.functions, names.variables, names.types)
        symbols = profiles.raw_names(chosen.interval.pcs, names.functions)
        called = entries.called(symbols, chosen.interval.counts[:, 0].tolist())
        tables = {"moved": line_table.table(*known), "waits": line_table.waits(*known)}
        profile = replace(profile, **tables, called=called)
    system_calls = chosen.interval.system_calls
    if names.entries is not None and system_calls is not None:
        total = profiles.kernel_vector(profile)[0]
        profile = replace(profile, system_calls=entries.counted(names.entries, system_calls, total))
    if (calls := chosen.interval.stacks) is not None:
        profile = replace(profile, stacks=stacks.text(stacks.tree(calls, names.functions)))
    places, faster = profiles.places([one.interval for one in found], names.watched), facts.get(_FASTER_CLOCK, 0.0)
    profile = replace(profile, places=places, faster_clock_cpu=faster)
    return RunResult(case=case, state="ok", series=_series(found, metrics, names), facts=facts, profile=profile)


def runs(
    records: Sequence[Record],
    files: Files,
    cases: Sequence[int],
    metrics: Mapping[int, Sequence[Metric]],
    names: Names,
    end_of: Callable[[int], tuple[State, str]],
) -> tuple[RunResult, ...]:
    """One RunResult per case; ``files`` are the plugin's, one of each kind for each guest of the boot that ended well.

    Damaged plugin output makes every run of its guest failed, never a number. ``end_of``: how a case's guest ended.
    """
    well = any(end_of(case)[0] == "ok" for case in cases)
    several = any(metric.name == TRANSFERS for some in metrics.values() for metric in some)
    guests = [
        _read(number, file, files.lines[number] if several else None)
        for number, file in enumerate(files.counts if well else ())
    ]
    return tuple(_run(case, records, guests, metrics[case], names, end_of(case)) for case in cases)


def _read(guest: int, counts: bytes | mmap.mmap, moved: bytes | mmap.mmap | None) -> _Guest | str:
    """What one guest's files hold, or what is wrong with them."""
    try:
        intervals = {interval_of(guest, one.id): one for one in profiles.read(counts)}
        if moved is None:
            return _Guest(intervals, None)
        return _Guest(intervals, {interval_of(guest, one.id): one for one in lines.read(moved).intervals})
    except GuestError as error:
        return f"plugin output: {error}"
