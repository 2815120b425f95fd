# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers of many versions -> sweeps: a figure per version, the steps between them, and the functions behind a step.

Exact counts: a change between measured neighbours that the verdict engine calls and that exceeds the case's floor is a
step. Times: the permutation steps of stats.steps over boot medians in blocks. A version without a figure is a gap with
its state, and the version after it is compared with the one before. An absent version (see results/versions.py) is a
gap too.
"""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count, pairwise

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kdelta import verdict
from kdelta.model import (
    GRAVEST_FIRST,
    UNBOOTED,
    Case,
    CellResult,
    Experiment,
    Gap,
    Metric,
    Mitigations,
    Profile,
    Remark,
    State,
    Warn,
    Word,
)
from kdelta.results import by_clock, calls, deferred
from kdelta.results.explain import beside, between
from kdelta.results.placed import held as kept_by_placement
from kdelta.results.placed import shared_cpus
from kdelta.results.types import CellName, FunctionDiff, Sweep, SweepPoint, SweepStep
from kdelta.results.versions import Version, versions_of
from kdelta.results.waiting import held as kept_by_waiting
from kdelta.results.warnings import StepDetectable, StepStrings, StepUnseen
from kdelta.stats import exact
from kdelta.stats.paired import MIN_PAIRS
from kdelta.stats.steps import find_steps
from kdelta.units import Better
from kdelta.verdict import work
from kdelta.verdict.judge import floor_of
from kdelta.verdict.pairing import Observation, measured, values_of
from kdelta.verdict.warnings import UNDECIDABLE, MixedCalls, Strings, WithinFloor

Floats = NDArray[np.float64]
Seeds = Mapping[tuple[int, str], Mapping[int, Sequence[Profile]]]  # [case, mitigations][kernel] -> one a seed


def sweeps(
    experiment: Experiment,
    data: Sequence[verdict.CellData],
    floors: Mapping[str, float],
    metrics: Mapping[str, tuple[Metric, ...]],
    seeds: Seeds,
    *,
    placed: bool = True,
    causes: bool = True,
) -> tuple[Sweep, ...]:
    """One sweep per case, mitigations and primary metric, kernels in the order of the experiment.

    Args:
        experiment: its kernels are the versions, in order.
        data: the boots of all kernels, as the verdict engine takes them.
        floors: noise floors in percent, by ``CASE/METRIC`` or ``CASE``.
        metrics: the metrics of each workload by its name.
        seeds: the profiles of each kernel, one a seed, for the because of exact steps.
        placed: as ``explain.between`` has it.
        causes: whether exact steps are explained.
    """
    table: dict[tuple[int, Mitigations, str], dict[int, tuple[Observation, ...]]] = defaultdict(dict)
    for one in data:
        table[one.case, one.mitigations, one.metric][one.kernel] = one.boots
    versions, endless, found = versions_of(experiment), calls.endless(metrics), []
    labels = [kernel.label for kernel in experiment.kernels]
    neighbours: dict[tuple[str, str, str], list[CellResult]] = defaultdict(list)
    for cell in verdict.adjacent(experiment, data, floors, metrics) if experiment.mode == "exact" else ():
        neighbours[cell.case, cell.mitigations, cell.metric].append(cell)
    for index, case in enumerate(experiment.cases):
        for mitigations in experiment.mitigations:
            counted: Sequence[CellResult] = ()  # the instructions, which stand before what is of the same calls
            for metric in metrics.get(case.workload, ()):
                boots = table.get((index, mitigations, metric.name))
                if boots is None or not metric.primary:
                    continue
                name = CellName(case=case.name, metric=metric.name, cgroup=case.cgroup, mitigations=mitigations)
                if experiment.mode == "exact":
                    mine = seeds.get((index, mitigations), {})
                    stopped = case.workload in endless
                    adjacent = neighbours.get((case.name, mitigations, metric.name), [])
                    cells = _held(experiment, adjacent, labels, mine, case, stopped)
                    counted = cells if metric.name == work.INSTRUCTIONS else counted
                    cells = beside(cells, counted)
                    floor = floor_of(floors, case.name, metric.name) or 0.0
                    steps = _exact_steps(cells, labels, floor)
                    steps = _explained(steps, metric.name, labels, mine, placed) if causes else steps
                    unseen = _undecided(cells, labels)
                    whole = _whole(boots, mine, stopped) if metric.name == work.INSTRUCTIONS else None
                else:
                    whole = None
                    steps = _timed_steps(experiment, boots, metric.better, name)
                    unseen = _unseen(experiment, boots)
                hidden = table.get((index, mitigations, work.BYTES), {}) if metric.name == work.INSTRUCTIONS else {}
                points = _points(versions, boots, unseen, hidden)
                found.append(
                    Sweep(cell=name, unit=metric.unit, better=metric.better, points=points, steps=steps, whole=whole)
                )
    return tuple(found)


def _held(
    experiment: Experiment,
    cells: Sequence[CellResult],
    labels: Sequence[str],
    seeds: Mapping[int, Sequence[Profile]],
    case: Case,
    endless: bool,
) -> Sequence[CellResult]:
    """The ``cells`` of ``case``, held against what they would be with the system calls of the version before."""
    found = []
    for cell in cells:
        before, after = (seeds.get(labels.index(label), ()) for label in (cell.baseline_label, cell.patched_label))
        one = calls.held(cell, before, after, endless=endless)
        one = kept_by_placement(one, case, shared_cpus(experiment), before, after)
        one = kept_by_waiting(one, case, experiment.machine.smp, before, after)
        one = by_clock.held(one, case, experiment.machine.smp, before, after)
        found.append(deferred.held(one, case, experiment.machine.smp, before, after))
    return found


def _whole(
    boots: Mapping[int, tuple[Observation, ...]], seeds: Mapping[int, Sequence[Profile]], endless: bool
) -> Warn | None:
    """Whether the change from the first measured version to the last is that a program made other calls."""
    present = sorted(kernel for kernel, found in boots.items() if measured(found))
    if len(present) < 2:
        return None
    first, last = present[0], present[-1]
    before, after = (exact.median(values_of(boots[kernel])) for kernel in (first, last))
    if not before or before == after:
        return None
    sides = seeds.get(first, ()), seeds.get(last, ())
    account = calls.second(before, 100.0 * (after / before - 1.0), *sides, endless=endless)
    return account.told if account is not None and isinstance(account.told, MixedCalls) else None


def strings_of(step: SweepStep) -> tuple[Strings, ...]:
    """That string instructions carry most of a step, where they do."""
    return (Strings(step.effect_rep8_percent),) if step.strings and step.effect_rep8_percent is not None else ()


def strings(found: Sequence[Sweep]) -> tuple[Warn, ...]:
    """The same of all steps, to stand in the notes: a sweep has none at its rows."""
    return tuple(
        StepStrings(sweep.cell.case, step.last, step.first, one.per_word_percent)
        for sweep in found
        for step in sweep.steps
        for one in strings_of(step)
    )


def step_functions(found: Sequence[Sweep]) -> tuple[FunctionDiff, ...]:
    """The functions behind each step, to be drawn."""
    return tuple(
        FunctionDiff(
            cell=sweep.cell, baseline_label=step.last, patched_label=step.first, functions=step.because, unit=sweep.unit
        )
        for sweep in found
        for step in sweep.steps
        if step.because and sweep.cell.metric == work.INSTRUCTIONS
    )


def _points(
    versions: Sequence[Version],
    boots: Mapping[int, tuple[Observation, ...]],
    unseen: Mapping[int, Warn],
    hidden: Mapping[int, tuple[Observation, ...]],
) -> tuple[SweepPoint, ...]:
    kernel = count()
    return tuple(
        SweepPoint(kernel=one.label, value=None, state="failed", why=one.why)
        if isinstance(one, Gap)
        else _point(one.label, boots.get(index := next(kernel), ()), unseen.get(index), hidden.get(index, ()))
        for one in versions
    )


def _point(label: str, boots: Sequence[Observation], unseen: Warn | None, hidden: Sequence[Observation]) -> SweepPoint:
    """A version's figure: the median of its boots, or why there is none."""
    if measured(boots):
        moved = exact.median(values_of(hidden)) if measured(hidden) else None
        return SweepPoint(kernel=label, value=exact.median(values_of(boots)), unseen=unseen, rep_bytes=moved)
    states = {boot.state for boot in boots}
    state: State = next((s for s in GRAVEST_FIRST if s in states), "lost")
    why = next((boot.why for boot in boots if boot.state == state and boot.why), "" if boots else UNBOOTED)
    return SweepPoint(kernel=label, value=None, state=state, why=why)


def _present(experiment: Experiment, boots: Mapping[int, tuple[Observation, ...]]) -> list[int]:
    return [k for k in range(len(experiment.kernels)) if measured(boots.get(k, ()))]


def _unseen(experiment: Experiment, boots: Mapping[int, tuple[Observation, ...]]) -> dict[int, Warn]:
    """Why no step could be seen at a measured version, whatever its figure, by kernel. The first has none before it."""
    present = _present(experiment, boots)
    blocks = _shared_blocks(_matrix(boots, present)) if present else 0
    if blocks >= MIN_PAIRS:
        return {}
    return dict.fromkeys(present[1:], StepUnseen(blocks, MIN_PAIRS))


def _undecided(cells: Sequence[CellResult], labels: Sequence[str]) -> dict[int, Warn]:
    """Why nothing could be said of the step to a version, by kernel."""
    found: dict[int, Warn] = {}
    for cell in cells:
        if cell.state == "ok" and cell.verdict in (None, "inconclusive"):
            seen = StepDetectable(cell.detectable_percent) if cell.detectable_percent else None
            kinds = (*UNDECIDABLE, WithinFloor)  # which would be detectable, and is no more than noise can be
            mixed = next((warning for warning in cell.warnings if isinstance(warning, kinds)), None)
            why = mixed or seen or next(iter(cell.warnings), Remark("undecided", "undecided"))
            found[labels.index(cell.patched_label)] = why
    return found


def _word(rises: bool, better: Better) -> Word:
    return "improved" if rises == (better == "higher") else "regressed"


def _explained(
    steps: Sequence[SweepStep],
    metric: str,
    labels: Sequence[str],
    seeds: Mapping[int, Sequence[Profile]],
    placed: bool,
) -> tuple[SweepStep, ...]:
    """The ``steps`` with the functions behind each."""
    found = []
    for step in steps:
        last, first = labels.index(step.last), labels.index(step.first)
        functions, told = between(metric, seeds.get(last, ()), seeds.get(first, ()), placed=placed)
        found.append(replace(step, because=functions, because_line=told))
    return tuple(found)


def _exact_steps(cells: Sequence[CellResult], labels: Sequence[str], floor: float) -> tuple[SweepStep, ...]:
    """The changes between neighbours that the verdict engine calls, and that exceed the case's floor."""
    found = []
    for cell in cells:
        if cell.verdict not in ("improved", "regressed") or cell.baseline is None or cell.patched is None:
            continue
        effect = math.inf if cell.effect_percent is None else cell.effect_percent
        if abs(effect) <= floor:
            continue
        found.append(
            SweepStep(
                last=cell.baseline_label,
                first=cell.patched_label,
                baseline=cell.baseline,
                patched=cell.patched,
                effect_percent=effect,
                interval_percent=cell.interval_percent,
                verdict=cell.verdict,
                effect_rep8_percent=cell.extra.get("effect_rep8_percent"),
                strings=any(isinstance(warning, Strings) for warning in cell.warnings),
                effect_same_calls_percent=cell.extra.get("effect_same_calls_percent"),
            )
        )
    return tuple(found)


def _matrix(boots: Mapping[int, tuple[Observation, ...]], present: Sequence[int]) -> Floats:
    """Figures of shape (blocks, versions); NaN where a boot is missing."""
    blocks = sorted({boot.block for k in present for boot in boots[k]})
    values = np.full((len(blocks), len(present)), np.nan)
    for column, kernel in enumerate(present):
        for boot in boots[kernel]:
            if boot.state == "ok" and boot.value is not None:
                values[blocks.index(boot.block), column] = boot.value
    return values


def _shared_blocks(values: Floats) -> int:
    """Blocks that hold two versions or more."""
    return int((np.isfinite(values).sum(axis=1) >= 2).sum())


def _timed_steps(
    experiment: Experiment, boots: Mapping[int, tuple[Observation, ...]], better: Better, cell: CellName
) -> tuple[SweepStep, ...]:
    """Steps in times; none with fewer blocks than any verdict needs."""
    present = _present(experiment, boots)
    if not present:
        return ()
    values = _matrix(boots, present)
    if _shared_blocks(values) < MIN_PAIRS:
        return ()
    logs = bool(np.nanmin(values) > 0)
    mean = float(np.nanmean(np.abs(values))) or 1.0
    scaled = np.log(values) if logs else values / mean
    # the same data give the same steps, however often they are reported
    rng = np.random.default_rng([experiment.seed, zlib.crc32(repr(cell).encode())])
    steps = find_steps(scaled, rng)
    edges = [0, *(step.index for step in steps), len(present)]
    levels = [float(np.nanmedian(values[:, a:b])) for a, b in pairwise(edges)]
    return tuple(
        SweepStep(
            last=experiment.kernels[present[step.index - 1]].label,
            first=experiment.kernels[present[step.index]].label,
            baseline=before,
            patched=after,
            effect_percent=100.0 * float(np.expm1(step.effect)) if logs else _of_level(step.effect * mean, before),
            verdict=_word(step.effect > 0, better),
            p_value=step.p,
        )
        for step, before, after in zip(steps, levels, levels[1:], strict=False)
    )


def _of_level(change: float, before: float) -> float:
    """A change in percent of the level before it; infinite from 0."""
    return max(-100.0, 100.0 * change / before) if before > 0 else math.copysign(math.inf, change)
