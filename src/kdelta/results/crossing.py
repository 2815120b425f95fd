# SPDX-License-Identifier: GPL-2.0-or-later
"""What crosses between CPUs over their number, or the length of turns: of exact experiments that differ in that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct, field

from kdelta.attribution import callers, exact, line_table, profiles, serial
from kdelta.attribution.serial import Serial
from kdelta.model import CellResult, Experiment, Profile, Word
from kdelta.results import answer, explain, scaling
from kdelta.store.store import Store

SHOWN = ("instructions", exact.TRANSFERS, exact.WAITS)
_AGREE = 0.05  # of the mean: what lengths of turns may differ by, beside what seeds differ by


class Step(Struct, frozen=True, kw_only=True):
    """One kernel and case on one number of CPUs. Figures are per operation; what was not counted is not there.

    ``figures``: by metric of SHOWN. ``waiting``: instructions in slow paths of locks, a part of all. ``verdicts`` and
    ``effects_percent``: against the first kernel. ``lines``: transfers by line, the mean of all seeds; ``spread``: of
    the transfers over seeds, largest over smallest, less 1.
    """

    kernel: str
    case: str
    cpus: int
    turn_ns: int
    figures: dict[str, float] = field(default_factory=dict)
    waiting: float = 0.0
    verdicts: dict[str, Word] = field(default_factory=dict)
    effects_percent: dict[str, float] = field(default_factory=dict)
    lines: dict[str, float] = field(default_factory=dict)
    serial: Serial | None = None  # of the median seed: a bound
    spread: float = 0.0
    experiment: str = ""
    why: str = ""


class Growing(Struct, frozen=True, kw_only=True):
    """A line whose transfers per operation grow with the CPUs: those at each number, in order."""

    kernel: str
    case: str
    line: str
    transfers: tuple[float, ...]


def _waiting(profile: Profile) -> float:
    return sum(counts[0] for name, counts in profile.functions.items() if callers.waits(name)) / profile.ops


def _lines(profiles: Sequence[Profile]) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for profile in profiles:
        for line in profile.moved:
            sums[line.name] += line.transfers / profile.ops / len(profiles)
    return dict(sums)


def _spread(profiles: Sequence[Profile]) -> float:
    totals = [sum(line.transfers for line in profile.moved) / profile.ops for profile in profiles]
    return max(totals) / min(totals) - 1 if totals and min(totals) > 0 else 0.0


def _value(row: CellResult, label: str) -> float | None:
    return row.patched if row.patched_label == label else row.baseline


def _of_kernel(rows: Iterable[CellResult], label: str, first: bool) -> dict[str, CellResult]:
    """By metric: the row that has a figure of the kernel ``label``."""
    mine = (row for row in rows if row.metric in SHOWN and (first or row.patched_label == label))
    return {row.metric: row for row in mine}


def _step(
    experiment: Experiment, index: int, label: str, rows: Mapping[str, CellResult], seeds: Sequence[Profile]
) -> Step:
    case, machine = experiment.cases[index], experiment.machine
    values = {metric: _value(row, label) for metric, row in rows.items()}
    compared = [row for row in rows.values() if row.patched_label == label]
    failed = next((row for row in rows.values() if row.state != "ok"), None)
    return Step(
        kernel=label,
        case=scaling.without(case, "tasks"),
        cpus=machine.smp,
        turn_ns=machine.turn_ns,
        figures={metric: value for metric, value in values.items() if value is not None},
        waiting=fmean(map(_waiting, seeds)) if seeds else 0.0,
        verdicts={row.metric: row.verdict for row in compared if row.verdict is not None},
        effects_percent={row.metric: row.effect_percent for row in compared if row.effect_percent is not None},
        lines=_lines(seeds),
        serial=serial.bound(profiles.median_profile(seeds)) if seeds else None,
        spread=_spread(seeds),
        experiment=experiment.id,
        why=f"{failed.state}: {failed.why}" if failed is not None else "",
    )


def steps(store: Store, experiments: Sequence[str]) -> tuple[Step, ...]:
    """All cases and kernels of ``experiments`` (ids), by case, then kernel, then CPUs and turns in the order given.

    Raises:
        UserError: no such experiment.
    """
    found: list[tuple[int, int, int, Step]] = []
    for place, name in enumerate(experiments):
        result, _ = answer.result(store, name)
        experiment = result.experiment
        seeds = explain.seeds_of(experiment, store)
        for index, case in enumerate(experiment.cases):
            rows = [row for row in result.results if row.case == case.name]
            for kernel, one in enumerate(experiment.kernels):
                mine = _of_kernel(rows, one.label, first=kernel == 0)
                profiles = seeds.get((index, "default"), {}).get(kernel, [])
                found.append((index, kernel, place, _step(experiment, index, one.label, mine, profiles)))
    return tuple(step for *_, step in sorted(found, key=lambda one: one[:3]))


def curves(found: Sequence[Step]) -> dict[tuple[str, str], list[Step]]:
    """The steps of each case and kernel, in their order."""
    by: defaultdict[tuple[str, str], list[Step]] = defaultdict(list)
    for step in found:
        by[step.case, step.kernel].append(step)
    return dict(by)


def growing(found: Sequence[Step], limit: int = 5) -> tuple[Growing, ...]:
    """The lines that grow most from the fewest CPUs to the most, ``limit`` for each case and kernel."""
    kept: list[Growing] = []
    for (case, kernel), curve in curves(found).items():
        if len(curve) < 2:
            continue
        names = {name for step in curve for name in step.lines} - {line_table.OTHERS}
        series = {name: tuple(step.lines.get(name, 0.0) for step in curve) for name in names}
        ranked = sorted(series, key=lambda name: (series[name][0] - series[name][-1], name))
        kept += (
            Growing(kernel=kernel, case=case, line=name, transfers=series[name])
            for name in ranked[:limit]
            if series[name][-1] > series[name][0]
        )
    return tuple(kept)


def disagreeing(found: Sequence[Step]) -> tuple[str, ...]:
    """What lengths of turns do not agree on: a sentence for each case, kernel and number of CPUs; () where all do.

    They agree where their transfers differ by at most 5 % of the mean more than those of one length's seeds do.
    """
    told: list[str] = []
    groups: defaultdict[tuple[str, str, int], list[Step]] = defaultdict(list)
    for step in found:
        if exact.TRANSFERS in step.figures:
            groups[step.case, step.kernel, step.cpus].append(step)
    for (case, kernel, cpus), turns in groups.items():
        values = [step.figures[exact.TRANSFERS] for step in turns]
        allowed = (_AGREE + max(step.spread for step in turns)) * fmean(values)
        if len(turns) > 1 and max(values) - min(values) > allowed:
            figures = ", ".join(f"{step.turn_ns} ns: {value:.2f}" for step, value in zip(turns, values, strict=True))
            told.append(f"{case} on {cpus} CPUs, {kernel}: transfers depend on the length of turns ({figures})")
    return tuple(told)
