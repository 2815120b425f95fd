# SPDX-License-Identifier: GPL-2.0-or-later
"""Which cells a look leaves open, and so what is booted until the next one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdelta.model import CellResult, Experiment, Metric, OpenCell
from kdelta.model.plans import Compare
from kdelta.stats import counts
from kdelta.verdict.correction import gate_holm
from kdelta.verdict.judge import adjacent, judge
from kdelta.verdict.pairing import CellData
from kdelta.verdict.warnings import Dropped, LegacyMetric, MixedAccounts, TailOfFew, Withdrawn
from kdelta.verdict.words import GRID_PAIRS

_HOPELESS = (LegacyMetric, MixedAccounts, TailOfFew)  # on cells that no further boot gives a verdict


def open_cells(
    experiment: Experiment,
    data: Sequence[CellData],
    floors: Mapping[str, float],
    metrics: Mapping[str, tuple[Metric, ...]],
) -> tuple[OpenCell, ...]:
    """The cells that need further blocks, in order; arguments as ``judge``'s.

    A case is decided when each of its primary cells has a verdict other than inconclusive, or can have none; of counts,
    when besides no other cell differs so plainly that the number of cells alone withdrew it, and none is the same for
    want of seeds alone. With a ``precision_percent`` it is decided when each interval's half-width is below that
    instead. Where regressions are to close a gate, one that is not kept for that goes on too: facts of five seeds close
    none among more than 25 cells. A case without data is open. Of times all kernels of an open case go on, because a
    block holds all of them; of counts only those that an open cell compares.
    """
    exact = experiment.mode == "exact"
    rows = (adjacent if exact and experiment.in_steps else judge)(experiment, data, floors, metrics)
    labels = [kernel.label for kernel in experiment.kernels]
    weak = {id(row) for row in _ungated(rows)} if isinstance(experiment.plan, Compare) and experiment.plan.gated else ()
    found: set[OpenCell] = set()
    for index, case in enumerate(experiment.cases):
        known = metrics.get(case.workload, ())
        names = {m.name for m in known if m.primary} or {m.name for m in known[:1]}
        identity = (case.name, case.params, case.cgroup)
        mine = [r for r in rows if (r.case, r.params, r.cgroup) == identity and r.metric in names]
        undecided = [r for r in mine if not _decided(r, experiment) or id(r) in weak]
        undecided += [r for r in rows if exact and (r.case, r.params, r.cgroup) == identity and _withdrawn(r, known)]
        if not mine or (undecided and not exact):
            found |= {OpenCell(index, m, k) for m in experiment.mitigations for k in range(len(labels))}
            continue
        sides = [(r.mitigations, label) for r in undecided for label in (r.baseline_label, r.patched_label) if label]
        found |= {OpenCell(index, mitigations, labels.index(label)) for mitigations, label in sides}
    return tuple(sorted(found))


def _ungated(rows: Sequence[CellResult]) -> Sequence[CellResult]:
    """The primary regressions that have a verdict, and do not close a gate."""
    kept = {id(row) for row in gate_holm(rows)}
    return [row for row in rows if row.primary and row.verdict == "regressed" and id(row) not in kept]


def _withdrawn(result: CellResult, known: Sequence[Metric]) -> bool:
    """Whether a count beside the primary ones is a fact, or as plain as one, that too few seeds tell from chance.

    A fact of five seeds stands in a family of up to 25 cells, and there are nine counts a case.
    """
    if result.verdict != "inconclusive" or result.metric not in {metric.name for metric in known}:
        return False
    plain = result.p_value is not None and result.p_value <= counts.chance(int(result.extra["pairs"]))
    return plain and any(isinstance(warning, Withdrawn) for warning in result.warnings)


def _decided(result: CellResult, experiment: Experiment) -> bool:
    if result.state != "ok" or any(isinstance(warning, _HOPELESS) for warning in result.warnings):
        return True
    if experiment.mode == "exact" and any(isinstance(warning, Dropped) for warning in result.warnings):
        return True  # a seed is missing: it is measured again, or there is no verdict
    precision = experiment.precision_percent
    if precision is not None:
        interval = result.interval_percent
        return interval is not None and (interval[1] - interval[0]) / 2.0 < precision
    return result.verdict not in (None, "inconclusive") and not (
        experiment.mode == "exact" and _few(result, experiment)
    )


def _few(result: CellResult, experiment: Experiment) -> bool:
    """Whether a change within delta was taken back for want of seeds, and a later look has them."""
    few = any(isinstance(warning, Withdrawn) and warning.blocks is not None for warning in result.warnings)
    return few and max(experiment.looks, default=0) >= GRID_PAIRS
