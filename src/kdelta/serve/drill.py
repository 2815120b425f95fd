# SPDX-License-Identifier: GPL-2.0-or-later
"""Ways from the cells and steps of an experiment to the functions behind them."""

from __future__ import annotations

from kdelta.model import CellResult, Experiment, ExperimentResult
from kdelta.report.view import View
from kdelta.results.types import Detail
from kdelta.serve import page


def of_cells(result: ExperimentResult, view: View) -> dict[int, str]:
    """The query of the functions behind a cell of the tables, by the cell's ``id()``.

    The view's texts are clipped for display, so a cell is traced by its place among the results.
    """
    experiment = result.experiment
    if experiment.mode != "exact":
        return {}
    cases = {case.name: index for index, case in enumerate(experiment.cases)}
    kernels = {kernel.label: index for index, kernel in enumerate(experiment.kernels)}
    found: dict[int, str] = {}
    for cell, source in zip(view.result.results, result.results, strict=True):
        if _has_functions(source) and source.case in cases and source.patched_label in kernels:
            places = {"case": cases[source.case], "from": kernels[source.baseline_label]}
            places["to"] = kernels[source.patched_label]
            found[id(cell)] = page.query(**places, mitigations=source.mitigations)
    return found


def with_stacks(result: ExperimentResult, view: View, detail: Detail) -> frozenset[int]:
    """The cells of the tables, by ``id()``, whose call stacks were counted: they can be drawn as a flame graph."""
    followed = {(d.cell.case, d.cell.mitigations, d.baseline_label, d.patched_label) for d in detail.stacks}
    both = zip(view.result.results, result.results, strict=True)
    return frozenset(
        id(cell)
        for cell, source in both
        if (source.case, source.mitigations, source.baseline_label, source.patched_label) in followed
    )


def _has_functions(cell: CellResult) -> bool:
    return cell.metric == "instructions" and cell.state == "ok" and bool(cell.patched_label)


def of_steps(experiment: Experiment, detail: Detail) -> dict[tuple[int, int], str]:
    """The query of the functions behind each step of an exact sweep, by the sweep's place and the version's in it."""
    if experiment.mode != "exact":
        return {}
    cases = {(case.name, case.cgroup): index for index, case in enumerate(experiment.cases)}
    kernels = {kernel.label: index for index, kernel in enumerate(experiment.kernels)}
    found: dict[tuple[int, int], str] = {}
    for number, sweep in enumerate(detail.sweeps):
        places = {point.kernel: place for place, point in enumerate(sweep.points)}
        for step in sweep.steps if sweep.cell.metric == "instructions" else ():
            ends = {"from": kernels[step.last], "to": kernels[step.first], "mitigations": sweep.cell.mitigations}
            found[number, places[step.first]] = page.query(case=cases[sweep.cell.case, sweep.cell.cgroup], **ends)
    return found
