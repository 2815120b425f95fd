# SPDX-License-Identifier: GPL-2.0-or-later
"""The store's answer to a question: numbers -> verdicts, profiles -> because, joined for the report.

Verdicts are made first and from numbers alone; the functions behind them are added to finished rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.model import CellResult, Experiment, ExperimentResult, plans
from kdelta.results import (
    beside,
    by_clock,
    calls,
    cells,
    deferred,
    definitions,
    explain,
    line_verdicts,
    placed,
    printed,
    remarks,
    searched,
    sweep,
    system_calls,
    varying,
    waiting,
)
from kdelta.results.detail import details
from kdelta.results.explain import Seeds
from kdelta.results.types import Detail, Sweep
from kdelta.results.warnings import CountsElsewhere
from kdelta.store import planned
from kdelta.store.rows import BootRow, Number
from kdelta.store.store import Store
from kdelta.verdict import CellData, work

_HARDWARE = ("governor", "turbo", "smt", "isolated")  # as a boot saw it (machine/hardware.py)
_FAULTS = frozenset({"lost", "panicked", "hung"})  # what becomes of a guest; the others are answers of a case


def _sweeps(
    experiment: Experiment,
    store: Store,
    data: Sequence[CellData],
    seeds: Seeds,
    *,
    placed: bool = True,
    causes: bool = True,
) -> tuple[Sweep, ...]:
    """The sweeps of an experiment; () of one that is none."""
    if not experiment.in_steps:
        return ()
    floors, metrics = cells.floors_of(experiment, store), definitions.metrics_of(experiment)
    return sweep.sweeps(experiment, data, floors, metrics, seeds, placed=placed, causes=causes)


def sweeps(store: Store, name: str, *, placed: bool = True, causes: bool = True) -> tuple[Sweep, ...]:
    """The sweeps of the experiment ``name``, as ``result`` has them, without its rows against the first kernel.

    ``placed``: as ``explain.between`` has it. ``causes``: whether steps are explained.

    Raises:
        UserError: no such experiment.
    """
    experiment = store.experiment(name)
    exact = experiment.mode == "exact" and experiment.in_steps
    seeds = explain.seeds_of(experiment, store, costs_alone=True) if exact else {}
    data = _data_of_steps(experiment, store, store.numbers(experiment.id))
    return _sweeps(experiment, store, data, seeds, placed=placed, causes=causes)


def _data_of_steps(experiment: Experiment, store: Store, numbers: Sequence[Number]) -> list[CellData]:
    """What sweeps are made of: primary metrics, and what is held against counted instructions."""
    metrics = definitions.metrics_of(experiment)
    wanted = {metric.name for found in metrics.values() for metric in found if metric.primary}
    wanted |= {"", work.EXECUTIONS, work.BYTES}  # a run that failed has no metric
    return cells.of_numbers(experiment, store, [number for number in numbers if number.metric in wanted])


def _machine(boots: Sequence[BootRow]) -> dict[str, str]:
    """What the boots ran on, how that was set, and the temperatures at their ends; all, where boots differ."""
    machines, facts = [b.machine for b in boots], [b.facts for b in boots]
    found = {key: _all(key, machines) for key in ("accel", "qemu")} | {key: _all(key, facts) for key in _HARDWARE}
    warmth = [float(b.facts["temperature_c"]) for b in boots if "temperature_c" in b.facts]
    found["temperature"] = f"{min(warmth):.0f} to {max(warmth):.0f} degrees C" if warmth else ""
    return {key: text for key, text in found.items() if text}


def _told_once(asked: Mapping[str, str], seen: Mapping[str, str]) -> dict[str, str]:
    """What was set on request is told as that."""
    return {**asked, **{key: text for key, text in seen.items() if key not in asked}}


def _all(key: str, said: Sequence[Mapping[str, object]]) -> str:
    return ", ".join(sorted({str(one[key]) for one in said if key in one}))


def _faulty(experiment: Experiment, boots: Sequence[BootRow], numbers: Sequence[Number]) -> tuple[str, ...]:
    """A line for each boot that did not end well, or each case of an exact one, whose guest is its own.

    Boots that were left out because of one of those have no time at which they began. Where several hosts measured
    times, each line names its host: what ends badly on one alone may be that host's fault.
    """
    made = [b for b in boots if b.started_at]
    hosts = {(b.block, b.slot): b.machine.get("host", "") for b in made if experiment.mode == "timed"}
    on = {place: f" on {host}" for place, host in hosts.items()} if len(set(hosts.values())) > 1 else {}
    bad = [b for b in made if b.state != "ok"]
    found = [(b.block, b.slot, b.kernel, on.get((b.block, b.slot), ""), str(b.state), b.why) for b in bad]
    if experiment.mode == "exact":
        names = [f", {case.name}" for case in experiment.cases]
        own = [n for n in numbers if n.boot_state == "ok" and n.state in _FAULTS]
        found += sorted({(n.block, n.slot, n.kernel, names[n.case], str(n.state), n.why) for n in own})
    return tuple(
        f"{experiment.kernels[kernel].label}, block {block}, slot {slot}{case}: {state}: {why} "
        f"(kdelta report {experiment.id} --console {block}.{slot})"
        for block, slot, kernel, case, state, why in found
    )


def _explained(store: Store, timed: ExperimentResult) -> ExperimentResult:
    """``timed`` with the counts of its other pass, where it has one, and what they say of each row."""
    counted = plans.counted_by(timed.experiment.plan)
    if not counted:
        return timed
    try:
        counts, _ = result(store, counted)
    except UserError:
        return replace(timed, warnings=(*timed.warnings, CountsElsewhere(counted)))
    return beside.explained(timed, counts)


def verdicts(store: Store, experiment: Experiment) -> tuple[CellResult, ...]:
    """The rows of ``result`` with their verdicts alone: of few cases more is read than numbers."""
    rows = cells.judged(experiment, store, store.numbers(experiment.id))
    if experiment.mode != "exact":
        return rows
    known, cpus = {case.name: case for case in experiment.cases}, placed.shared_cpus(experiment)
    doubtful = {
        row.case
        for row in rows
        if calls.doubtful(row)
        or placed.doubtful(row, known[row.case], cpus)
        or waiting.doubtful(row, known[row.case], experiment.machine.smp)
        or deferred.doubtful(row, known[row.case], experiment.machine.smp)
        or by_clock.doubtful(row, known[row.case])
    }
    return explain.Explainer(experiment, explain.seeds_of(experiment, store, doubtful)).held(rows)


def _assembled(
    experiment: Experiment,
    store: Store,
    numbers: Sequence[Number],
    rows: tuple[CellResult, ...],
    counts: tuple[CellResult, ...] = (),
) -> ExperimentResult:
    """Finished rows with all that is told around them."""
    boots, looks = store.boots(experiment.id), store.looks(experiment.id)
    return ExperimentResult(
        experiment=replace(experiment, host=_told_once(experiment.host, _machine(boots))),
        results=rows,
        boots_done=len(boots),
        boots_planned=planned.boots_planned(experiment),
        boots_left_out=sum(boot.state != "ok" and not boot.started_at for boot in boots),
        boots_spared=planned.boots_spared(experiment, looks),
        decided=any(look.final for look in looks),
        boots_faulty=_faulty(experiment, boots, numbers),
        gate=experiment.annotations.gate,
        counts=counts,
        culprit=searched.culprit(experiment, store),
        warnings=(
            *remarks.on_experiment(experiment, boots),
            *printed.otherwise(experiment, store, boots),
            *printed.lacking(experiment, store, boots),
            *remarks.on_counters(experiment, store),
        ),
    )


def in_steps(store: Store, name: str) -> tuple[ExperimentResult, Detail] | None:
    """``result`` of an exact sweep without the rows that its steps stand for, and what is drawn of those.

    Nor do functions say where their code went, except where no line tells of them: nothing else is shown of them.
    None where they do not stand for all rows: those that are left are judged together with the others.

    Raises:
        UserError: no such experiment.
    """
    experiment = store.experiment(name)
    if not experiment.in_steps or experiment.mode != "exact":
        return None
    numbers = store.numbers(experiment.id)
    data = _data_of_steps(experiment, store, numbers)
    metrics = definitions.metrics_of(experiment)
    primary = [{m.name for m in metrics.get(case.workload, ()) if m.primary} for case in experiment.cases]
    swept = {(one.case, one.mitigations) for one in data if one.metric in primary[one.case]}
    if swept != {(number.case, number.mitigations) for number in numbers}:
        return None
    seeds = explain.seeds_of(experiment, store, costs_alone=True)
    calls_made = system_calls.of_profiles(experiment, explain.chosen(seeds))
    detail = Detail(sweeps=_sweeps(experiment, store, data, seeds, placed=False), system_calls=calls_made)
    found = _assembled(experiment, store, numbers, ())
    return replace(found, warnings=(*found.warnings, *sweep.strings(detail.sweeps))), detail


def result(
    store: Store, name: str, views: Sequence[str] = (), only: str | None = None, *, hidden: bool = True
) -> tuple[ExperimentResult, Detail]:
    """Everything that a report shows of the experiment ``name``, rebuilt from the store.

    ``only``: the one case whose differences are explained; all are judged. ``hidden``: also those rows are explained
    that no page shows, because the steps of a sweep stand for them.

    Raises:
        UserError: no such experiment.
    """
    experiment = store.experiment(name)
    numbers = store.numbers(experiment.id)
    data = cells.of_numbers(experiment, store, numbers)
    seeds = explain.seeds_of(experiment, store, None if only is None else (only,)) if experiment.mode == "exact" else {}
    explainer = explain.Explainer(experiment, seeds)
    rows = explainer.held(cells.judge(experiment, store, data))
    chosen = explain.chosen(seeds)
    swept = _sweeps(experiment, store, data, seeds)
    stood_for = frozenset[object]() if hidden else frozenset((one.cell.case, one.cell.mitigations) for one in swept)

    def told(row: CellResult) -> CellResult:
        if (row.case, row.mitigations) in stood_for:
            return row
        return varying.told(explainer.explained(row), explainer.by_kernel(row))

    lines = explain.beside(line_verdicts.of(experiment, store), rows)
    told_rows = tuple(map(told, remarks.on_rows(experiment, store, rows)))
    answer = _assembled(experiment, store, numbers, told_rows, line_verdicts.changed(lines))
    answer = _explained(store, replace(answer, warnings=(*answer.warnings, *sweep.strings(swept))))
    detail = details(experiment, store, numbers, rows, chosen, views)
    detail = replace(detail, moved=line_verdicts.told(detail.moved, lines))
    if swept:  # the functions of its steps instead of those against the first kernel
        detail = replace(detail, sweeps=swept, functions=sweep.step_functions(swept))
    return answer, detail
