# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report may draw, gathered from the store: points, distributions, differences, scaling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kdelta.attribution import because, line_labels
from kdelta.attribution.exact import TRANSFERS
from kdelta.attribution.line_table import OTHERS
from kdelta.guest.metrics import histogram
from kdelta.model import Case, CellResult, Experiment, Profile
from kdelta.results import definitions, system_calls
from kdelta.results.types import (
    CellName,
    CellPoints,
    Curve,
    Detail,
    Distribution,
    FunctionDiff,
    LegacyLine,
    LegacyView,
    MovedDiff,
    MovedRow,
    Point,
    Scaling,
    ScalingLine,
    StackDiff,
)
from kdelta.spec.workloads import TASK_KNOBS
from kdelta.stats import estimators
from kdelta.store.rows import Number
from kdelta.store.store import Store

_PERCENTILES = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99, 100.0)
_FUNCTIONS_DRAWN = 24


def _cell(case: Case, metric: str, mitigations: str) -> CellName:
    return CellName(case=case.name, metric=metric, cgroup=case.cgroup, mitigations=mitigations)  # type: ignore[arg-type]


def points(experiment: Experiment, numbers: Iterable[Number]) -> tuple[CellPoints, ...]:
    """Every boot's number by cell."""
    grouped: dict[tuple[int, str, str], list[Number]] = defaultdict(list)
    for number in numbers:
        if number.value is not None and number.state == "ok" and number.boot_state == "ok":
            grouped[number.case, number.metric, number.mitigations].append(number)
    return tuple(
        CellPoints(
            cell=_cell(experiment.cases[case], metric, mitigations),
            unit=rows[0].unit,
            better=rows[0].better,
            points=tuple(Point(r.block, r.slot, r.kernel, r.value) for r in rows if r.value is not None),
        )
        for (case, metric, mitigations), rows in sorted(grouped.items())
    )


def distributions(experiment: Experiment, store: Store) -> tuple[Distribution, ...]:
    """Percentile curves of each case's histograms, all boots of a kernel together."""
    found: list[Distribution] = []
    for index, case in enumerate(experiment.cases):
        merged: dict[tuple[str, str], dict[int, object]] = defaultdict(dict)
        for row in store.histograms(experiment.id, index):
            for name, payload in row.histograms.items():
                mine = merged[name, row.mitigations]
                one = histogram(payload)
                if row.kernel in mine:
                    mine[row.kernel].add(one)  # type: ignore[attr-defined]
                else:
                    mine[row.kernel] = one
        for (name, mitigations), by_kernel in sorted(merged.items()):
            curves = tuple(
                Curve(
                    kernel=experiment.kernels[kernel].label,
                    points=tuple((p, float(h.get_value_at_percentile(p))) for p in _PERCENTILES),  # type: ignore[attr-defined]
                )
                for kernel, h in sorted(by_kernel.items())
            )
            found.append(Distribution(cell=_cell(case, name, mitigations), unit="ns", curves=curves))
    return tuple(found)


def functions(
    experiment: Experiment, chosen: Mapping[tuple[int, str], Mapping[int, Profile]]
) -> tuple[FunctionDiff, ...]:
    """Kernel functions before and after; ``chosen[case, mitigations][kernel]`` is the profile of a kernel."""
    found = []
    for (case, mitigations), by_kernel in sorted(chosen.items()):
        for kernel, profile in sorted(by_kernel.items()):
            if kernel == 0 or 0 not in by_kernel:
                continue
            deltas = because.differences(by_kernel[0], profile)
            found.append(
                FunctionDiff(
                    cell=_cell(experiment.cases[case], "instructions", mitigations),
                    baseline_label=experiment.kernels[0].label,
                    patched_label=experiment.kernels[kernel].label,
                    functions=tuple(d for d in deltas if d.delta)[:_FUNCTIONS_DRAWN],
                    unit=definitions.unit_of_counts(experiment, experiment.cases[case]),
                )
            )
    return tuple(found)


def stacks(experiment: Experiment, chosen: Mapping[tuple[int, str], Mapping[int, Profile]]) -> tuple[StackDiff, ...]:
    """The call stacks of each kernel against the first, where both have been followed."""
    return tuple(
        StackDiff(
            cell=_cell(experiment.cases[case], "instructions", mitigations),
            baseline_label=experiment.kernels[0].label,
            patched_label=experiment.kernels[kernel].label,
            before=by_kernel[0],
            after=profile,
            unit=definitions.unit_of_counts(experiment, experiment.cases[case]),
        )
        for (case, mitigations), by_kernel in sorted(chosen.items())
        for kernel, profile in sorted(by_kernel.items())
        if kernel and 0 in by_kernel and by_kernel[0].stacks and profile.stacks
    )


def moved_rows(before: Profile, after: Profile) -> tuple[MovedRow, ...]:
    """Hottest first by the larger side, the sum of further lines last; names that stand twice are added up."""
    (before,), (after,) = line_labels.alike([before], [after])
    sides = [because.movers_per_op(side) for side in (before, after)]
    useless = {line.name: line.unshared / line.transfers for line in after.moved if line.transfers}
    rows = []
    for name in sides[0].keys() | sides[1].keys():
        old, new = (side.get(name, {}) for side in sides)
        rows.append(
            MovedRow(
                line=name,
                baseline=sum(old.values()),
                patched=sum(new.values()),
                by={who: (old.get(who, 0.0), new.get(who, 0.0)) for who in sorted(old.keys() | new.keys())},
                false_sharing=useless.get(name, 0.0),
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.line == OTHERS, -max(row.baseline, row.patched), row.line)))


def moved(experiment: Experiment, chosen: Mapping[tuple[int, str], Mapping[int, Profile]]) -> tuple[MovedDiff, ...]:
    """The lines that move between CPUs, of each kernel against the first, or of the only one."""
    found = []
    for (case, mitigations), by_kernel in sorted(chosen.items()):
        before = by_kernel.get(0)
        for kernel, after in sorted(by_kernel.items()):
            alone = kernel == 0 and len(experiment.kernels) == 1
            if before is None or (kernel == 0 and not alone) or not (before.moved or after.moved):
                continue
            found.append(
                MovedDiff(
                    cell=_cell(experiment.cases[case], TRANSFERS, mitigations),
                    baseline_label=experiment.kernels[0].label,
                    patched_label="" if alone else experiment.kernels[kernel].label,
                    rows=moved_rows(before, after),
                )
            )
    return tuple(found)


def scaling(experiment: Experiment, results: Sequence[CellResult]) -> tuple[Scaling, ...]:
    """Curves over the number of tasks, where an experiment has several cases that differ in it alone."""
    groups: dict[tuple[object, ...], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    about: dict[tuple[object, ...], CellResult] = {}
    for row in results:
        if not row.primary or row.state != "ok":
            continue
        knob = next((k for k in TASK_KNOBS if k in row.params), None)
        if knob is None:
            continue
        rest = tuple(sorted((k, v) for k, v in row.params.items() if k != knob))
        key: tuple[object, ...] = (row.case.partition(":")[0], knob, rest, row.cgroup, row.mitigations, row.metric)
        about[key] = row
        tasks = int(row.params[knob])
        for label, value in ((row.baseline_label, row.baseline), (row.patched_label, row.patched)):
            if value is not None:
                groups[key][label][tasks] = value
    found = []
    for key, lines in groups.items():
        if max(len(values) for values in lines.values()) < 2:
            continue
        row = about[key]
        cell = CellName(case=str(key[0]), metric=row.metric, cgroup=row.cgroup, mitigations=row.mitigations)
        drawn = tuple(ScalingLine(kernel=label, points=tuple(sorted(v.items()))) for label, v in lines.items())
        found.append(Scaling(cell=cell, unit=row.unit, lines=drawn))
    return tuple(found)


def legacy_views(
    experiment: Experiment, store: Store, results: Sequence[CellResult], views: Sequence[str]
) -> tuple[LegacyView, ...]:
    """The same samples by other tools' rules; each sees all samples after warm-up, boot by boot."""
    found = []
    for view in views:
        lines = []
        for row in results:
            if not row.primary or row.state != "ok" or not row.patched_label:  # one kernel alone
                continue
            samples = _samples(experiment, store, row)
            if all(samples):
                call = estimators.estimate(view, *samples)
                text = f"{row.case}, {row.patched_label}: {call.text}: {call.call}"
                lines.append(LegacyLine(text, tuple(call.warnings)))
        found.append(LegacyView(name=view, lines=tuple(lines)))
    return tuple(found)


def _samples(experiment: Experiment, store: Store, row: CellResult) -> tuple[list[np.ndarray], list[np.ndarray]]:
    case = next(i for i, c in enumerate(experiment.cases) if c.name == row.case)
    labels = [kernel.label for kernel in experiment.kernels]
    sides: dict[int, list[np.ndarray]] = {labels.index(row.baseline_label): [], labels.index(row.patched_label): []}
    for sample in store.samples(experiment.id, case, row.metric):
        if sample.kernel in sides and sample.mitigations == row.mitigations:
            kept = np.array([v for v, w in zip(sample.values, sample.warm, strict=True) if not w], dtype=np.float64)
            # The rules are written for "lower is better": a rate is turned into its inverse.
            sides[sample.kernel].append(kept if row.better == "lower" else 1.0 / kept)
    return sides[labels.index(row.baseline_label)], sides[labels.index(row.patched_label)]


def details(
    experiment: Experiment,
    store: Store,
    numbers: Sequence[Number],
    results: Sequence[CellResult],
    chosen: Mapping[tuple[int, str], Mapping[int, Profile]],
    views: Sequence[str],
) -> Detail:
    """Everything that a report may draw of one experiment."""
    return Detail(
        points=points(experiment, numbers),
        distributions=distributions(experiment, store) if experiment.mode == "timed" else (),
        functions=() if experiment.in_steps else functions(experiment, chosen),  # a sweep's are those of its steps
        stacks=stacks(experiment, chosen),
        system_calls=system_calls.of_profiles(experiment, chosen),
        moved=moved(experiment, chosen),
        scaling=scaling(experiment, results),
        legacy=legacy_views(experiment, store, results, views),
    )
