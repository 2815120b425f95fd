# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics and noise floor -> one CellResult per case, metric and patched kernel. Pure; never reads attribution.

docs/methodology.md says why each rule is what it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise, product

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kdelta.model import GRAVEST_FIRST, UNBOOTED, CellResult, Experiment, Metric, Mitigations, State, Warn
from kdelta.stats import counts, design, exact, paired, sequential, signed_rank
from kdelta.verdict import work
from kdelta.verdict.correction import corrected
from kdelta.verdict.counts import counted
from kdelta.verdict.pairing import (
    CellData,
    Observation,
    Pairs,
    at_look,
    dropped,
    measured,
    no_verdict,
    paired_blocks,
    partly,
    values_of,
)
from kdelta.verdict.warnings import FromZero
from kdelta.verdict.words import ALPHA, DELTA_PERCENT, cell_warnings, with_need, word

Floats = NDArray[np.float64]
Table = Mapping[tuple[int, Mitigations, str, int], tuple[Observation, ...]]


def floor_of(floors: Mapping[str, float], case: str, metric: str) -> float | None:
    """The calibrated floor in percent: of ``CASE/METRIC``, else of ``CASE``."""
    return floors.get(f"{case}/{metric}", floors.get(case))


def judge(
    experiment: Experiment,
    data: Sequence[CellData],
    floors: Mapping[str, float],
    metrics: Mapping[str, tuple[Metric, ...]],
) -> tuple[CellResult, ...]:
    """Judge every cell that has data, in the order of cases, mitigations, metrics, kernels.

    Args:
        experiment: kernel 0 is the baseline; its looks are the only ones at which a timed cell is judged.
        data: the boots of all kernels, in any order.
        floors: noise floors in percent by ``CASE/METRIC`` or ``CASE``.
        metrics: the metrics of each workload by its name.

    With a single kernel the rows are descriptive: its figure stands as baseline, and nothing is compared.
    """
    return corrected(_cells(experiment, data, floors, metrics))


def adjacent(
    experiment: Experiment,
    data: Sequence[CellData],
    floors: Mapping[str, float],
    metrics: Mapping[str, tuple[Metric, ...]],
) -> tuple[CellResult, ...]:
    """The primary cells of every kernel against the measured one before it, corrected together; arguments as judge's.

    A kernel without a figure for a case is stepped over.
    """
    found: list[CellResult] = []
    by_case: dict[tuple[int, Mitigations], list[CellData]] = {}
    for d in data:
        by_case.setdefault((d.case, d.mitigations), []).append(d)
    for index, mitigations in product(range(len(experiment.cases)), experiment.mitigations):
        case, mine = experiment.cases[index], by_case.get((index, mitigations), [])
        primary = {m.name: m for m in metrics.get(case.workload, ()) if m.primary}
        present = sorted({d.kernel for d in mine if d.metric in primary and measured(d.boots)})
        for pair in pairwise(present):
            places = {kernel: place for place, kernel in enumerate(pair)}
            two = replace(
                experiment,
                kernels=tuple(experiment.kernels[k] for k in pair),
                cases=(case,),
                mitigations=(mitigations,),
            )
            sides = [replace(d, case=0, kernel=places[d.kernel]) for d in mine if d.kernel in places]
            found += _cells(two, sides, floors, {case.workload: tuple(primary.values())})
    return corrected(found)


def _cells(
    experiment: Experiment,
    data: Sequence[CellData],
    floors: Mapping[str, float],
    metrics: Mapping[str, tuple[Metric, ...]],
) -> list[CellResult]:
    """Every cell that has data, before correction for multiplicity."""
    table = {(d.case, d.mitigations, d.metric, d.kernel): d.boots for d in data}
    results: list[CellResult] = []
    others = range(1, len(experiment.kernels)) if len(experiment.kernels) > 1 else (0,)
    for case, mitigations in product(range(len(experiment.cases)), experiment.mitigations):
        for metric, kernel in product(metrics.get(experiment.cases[case].workload, ()), others):
            a = table.get((case, mitigations, metric.name, 0), ())
            b = table.get((case, mitigations, metric.name, kernel), ())
            if a or b:
                floor = floor_of(floors, experiment.cases[case].name, metric.name)
                if experiment.mode == "exact" and metric.name == work.BRANCHES:
                    whole = table.get((case, mitigations, work.INSTRUCTIONS, 0), ())
                    floor = work.floor_among(floor, values_of(a), values_of(whole))
                cell = _cell(experiment, case, mitigations, metric, kernel, a, b, floor)
                if experiment.mode == "exact" and metric.name == work.INSTRUCTIONS and kernel:
                    second = [_second_account(table, case, mitigations, k) for k in (0, kernel)]
                    cell = work.both_accounts(cell, second[0], second[1], experiment.looks)
                results.append(cell)
    return results


def _second_account(table: Table, case: int, mitigations: Mitigations, kernel: int) -> tuple[Observation, ...]:
    names = (work.INSTRUCTIONS, work.EXECUTIONS, work.BYTES)
    return work.per_word(*(table.get((case, mitigations, name, kernel), ()) for name in names))


def _cell(
    experiment: Experiment,
    case: int,
    mitigations: Mitigations,
    metric: Metric,
    kernel: int,
    a: tuple[Observation, ...],
    b: tuple[Observation, ...],
    floor: float | None,
) -> CellResult:
    """One cell, before correction for multiplicity."""
    c = experiment.cases[case]
    alone = kernel == 0
    blank = CellResult(
        case=c.name,
        params=c.params,
        cgroup=c.cgroup,
        mitigations=mitigations,
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        primary=metric.primary,
        baseline_label=experiment.kernels[0].label,
        patched_label="" if alone else experiment.kernels[kernel].label,
        baseline=None,
        patched=None,
        effect_percent=None,
        interval_percent=None,
        verdict=None,
        state="ok",
        floor_percent=floor,
        boots=(measured(a), 0 if alone else measured(b)),
    )
    bad = _unmeasured(blank, a, () if alone else b, alone)
    if bad is not None:
        return bad
    if alone:
        return _alone(blank, a)
    if experiment.mode == "exact":
        return counted(blank, a, b, metric, experiment.looks)
    return _timed(blank, a, b, metric, experiment)


def _unmeasured(
    blank: CellResult, a: Sequence[Observation], b: Sequence[Observation], alone: bool
) -> CellResult | None:
    """The cell as a state, where a side has no figure at all: no effect, but the figure of the side that has one."""
    sides = [(blank.baseline_label, a)] if alone else [(blank.baseline_label, a), (blank.patched_label, b)]
    missing: dict[tuple[State, str], list[str]] = {}  # kernels by what became of them
    ended: list[State] = []
    for label, boots in sides:
        if measured(boots):
            ended.append("ok")
            continue
        states = {boot.state for boot in boots}
        state: State = next((s for s in GRAVEST_FIRST if s in states), "lost")
        why = next((boot.why for boot in boots if boot.state == state and boot.why), "") if boots else UNBOOTED
        missing.setdefault((state, why), []).append(label)
        ended.append(state)
    if not missing:
        return None
    gravest = min((state for state, _ in missing), key=GRAVEST_FIRST.index)
    texts = (
        f"{', '.join(dict.fromkeys(labels))}: {': '.join(filter(None, (state, why))) if why != UNBOOTED else why}"
        for (state, why), labels in missing.items()
    )
    before, after = (exact.median(values_of(boots)) if measured(boots) else None for boots in (a, b))
    partial = tuple(warning for label, boots in sides for warning in partly(label, boots))
    blank = replace(blank, state=gravest, why="; ".join(texts), warnings=partial)
    return replace(blank, baseline=before, patched=None if alone else after, sides=(ended[0], ended[-1]))


def _alone(blank: CellResult, a: Sequence[Observation]) -> CellResult:
    """A single kernel: its figure and spread, compared with nothing."""
    values = values_of(a)
    return replace(blank, baseline=exact.median(values), extra={"spread_percent": exact.spread_percent(values)})


def _timed(
    blank: CellResult, a: Sequence[Observation], b: Sequence[Observation], metric: Metric, experiment: Experiment
) -> CellResult:
    most_steal = math.inf if experiment.steal_limit_percent is None else experiment.steal_limit_percent
    pairs = paired_blocks((blank.baseline_label, blank.patched_label), a, b, most_steal)
    looks = experiment.looks or (max(experiment.blocks, 1),)
    index, used = at_look(pairs, looks)
    n = len(used.a)
    if n == 0:
        unblocked = design.unblocked(len(pairs.a), measured(a), measured(b))
        warnings = (*((unblocked,) if unblocked else ()), *no_verdict(metric, used, index, looks), *dropped(pairs))
        return replace(_unpaired(blank, values_of(a), values_of(b)), warnings=warnings)
    values_a, values_b = values_of(used.a), values_of(used.b)
    d, logs = counts.differences(values_a, values_b)

    def percent(x: float) -> float | None:
        return 100.0 * float(np.expm1(x)) if logs else _of_baseline(x, values_a, values_b)

    shown = replace(blank, boots=(n, n), baseline=exact.median(values_a), patched=exact.median(values_b))
    refused = no_verdict(metric, used, index, looks)
    if refused:
        effect = float(signed_rank.estimate(signed_rank.walsh(d)))
        return replace(shown, effect_percent=percent(effect), warnings=(*refused, *dropped(pairs)))
    delta = max(DELTA_PERCENT, blank.floor_percent or 0.0)
    limit = float(np.log1p(delta / 100.0)) if logs else delta / 100.0
    plan = sequential.plan(looks, ALPHA)
    look = paired.look(d, plan.two_sided[index], plan.one_sided[index], limit)
    called = word(int(look.call), metric.better)
    low, high = percent(float(look.low)), percent(float(look.high))
    warnings = (
        *cell_warnings(look, called, delta, limit, logs),
        *((FromZero(shown.patched or 0.0),) if low is None and called != "same" else ()),
        *dropped(pairs),
        *_design(used, d, values_a, values_b),
        *_layouts(experiment, blank.patched_label, used, d),
    )
    result = replace(
        shown,
        effect_percent=percent(float(look.effect)),
        interval_percent=None if low is None or high is None else (low, high),
        verdict=called,
        p_value=float(sequential.sequential_p(float(look.p), looks, index)),
        warnings=warnings,
        extra={
            "look": float(index + 1),
            "pairs": float(n),
            "nominal_p": plan.two_sided[index],
            "spent_alpha": plan.spent[index],
            "sd_pair_percent": 100.0 * float(look.sd),
            "delta_percent": delta,
        },
    )
    return with_need(result) if called == "inconclusive" else result


def _of_baseline(x: float, a: Floats, b: Floats) -> float | None:
    """A difference relative to the mean level in percent of the baseline, of which all is 100; None where that is 0.

    Of figures below 0 there is no such part: relative to the mean level.
    """
    if min(a.min(), b.min()) < 0:
        return 100.0 * x
    baseline = exact.median(a)
    if not baseline:
        return None if x else 0.0
    if not b.any():  # all of it, of each pair
        return -100.0
    return max(-100.0, 100.0 * x * float(np.mean([*a, *b])) / max(baseline, float(np.mean(a))))


def _layouts(experiment: Experiment, patched: str, used: Pairs, d: Floats) -> tuple[Warn, ...]:
    """What the layouts of a kernel, over which the blocks are spread, do to the effect."""
    kernel = next(one for one in experiment.kernels if one.label == patched)
    if not kernel.layouts:
        return ()
    found = design.layouts(d, np.array([boot.block % (len(kernel.layouts) + 1) for boot in used.a]))
    return () if found is None else (found,)


def _unpaired(blank: CellResult, values_a: Floats, values_b: Floats) -> CellResult:
    """The figures of boots that share no block: medians, and what they differ by."""
    before, after = exact.median(values_a), exact.median(values_b)
    return replace(blank, baseline=before, patched=after, effect_percent=exact.percent(after, before))


def _design(used: Pairs, d: Floats, values_a: Floats, values_b: Floats) -> tuple[Warn, ...]:
    def facts(key: str) -> Floats:
        return np.array([boot.facts[key] for boot in (*used.a, *used.b) if key in boot.facts])

    names, host = np.unique([x.host for x in used.a], return_inverse=True)
    found = [
        design.hosts(d, host, tuple(map(str, names))),
        design.slot_effect(d, np.array([x.slot < y.slot for x, y in zip(used.a, used.b, strict=True)])),
        design.steal(facts("steal_percent")),
        design.busy(facts("other_cpus")),
        design.frequency(facts("cpu_mhz")),
        design.temperature(facts("temperature_c")),
    ]
    if min(values_a.min(), values_b.min()) > 0:
        logs = tuple(design.without_hosts(np.log(values), host) for values in (values_a, values_b))
        found += [design.drift((logs[0] + logs[1]) / 2.0), *map(design.bistable, logs)]
    unique = {warning.code: warning for warning in found if warning is not None}
    return tuple(unique.values())
