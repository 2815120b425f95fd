# SPDX-License-Identifier: GPL-2.0-or-later
"""The store's numbers as the verdict engine takes them, with the metrics and noise floors that they are judged by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kdelta import verdict
from kdelta.attribution.exact import CROSSING
from kdelta.errors import UserError
from kdelta.kernel.sources import parse_kernel
from kdelta.model import CellResult, Experiment, Kernel, Metric, Mitigations
from kdelta.results import definitions, floors
from kdelta.spec.kernels import BUILT_KINDS
from kdelta.store.rows import BootRow, Number
from kdelta.store.store import Store

_TAKEN_AWAY = "the baseline has it"


def _facts(boots: Sequence[BootRow]) -> dict[tuple[int, int], dict[str, float]]:
    return {(b.block, b.slot): {k: v for k, v in b.facts.items() if isinstance(v, float)} for b in boots}


def _states(number: Number) -> tuple[str, str]:
    """A run in a boot that failed later counts as the boot does."""
    if number.boot_state != "ok" and number.state == "ok":
        return number.boot_state, "the boot failed after this run"
    return number.state, number.why


def _is_patched(before: Kernel, after: Kernel) -> bool:
    """Whether both were built here of one release with the same config and command line: a patch or commit differs."""
    try:
        one, other = (parse_kernel(kernel.spec.partition("#")[0]) for kernel in (before, after))
    except UserError:  # named by an older kdelta
        return False
    alike = {replace(spec, text="", label="", patches=(), ref="") for spec in (one, other)}
    return one.kind in BUILT_KINDS and len(alike) == 1 and before.release == after.release


def _taken_away(experiment: Experiment, numbers: Sequence[Number]) -> frozenset[tuple[int, int]]:
    """(kernel, case) of those that a patch took away: unsupported there, and measured on the baseline.

    Between two releases, and with another config, a kernel may well lack what a case needs.
    """
    lacking = {(number.kernel, number.case) for number in numbers if _states(number)[0] == "unsupported"}
    measured = {number.case for number in numbers if lacking and not number.kernel and _states(number)[0] == "ok"}
    patched = {
        index
        for index in {kernel for kernel, case in lacking if kernel and case in measured}
        if _is_patched(experiment.kernels[0], experiment.kernels[index])
    }
    return frozenset((kernel, case) for kernel, case in lacking if kernel in patched and case in measured)


def cell_data(
    experiment: Experiment,
    numbers: Sequence[Number],
    boots: Sequence[BootRow],
    metrics: Mapping[str, tuple[Metric, ...]],
    counts: Mapping[tuple[int, int, int], Mapping[str, float]],
) -> list[verdict.CellData]:
    """The store's rows as the verdict engine takes them; a run without figures stands in every metric of its case.

    ``counts[block, slot, case]`` has the facts of a run; ``latency_count`` is the size of its latency histogram.
    """
    facts = _facts(boots)
    hosts = {(b.block, b.slot): b.machine.get("host", "") for b in boots}
    cells: dict[tuple[int, Mitigations, str, int], list[verdict.Observation]] = defaultdict(list)
    taken_away = _taken_away(experiment, numbers)
    for number in numbers:
        declared = metrics.get(experiment.cases[number.case].workload, ())
        state, why = _states(number)
        if state == "unsupported" and (number.kernel, number.case) in taken_away:
            state, why = "failed", f"{why}; {_TAKEN_AWAY}"
        wanted = [m for m in declared if m.name == number.metric] if number.metric else list(declared)
        for metric in wanted:
            samples = number.samples
            if metric.source.startswith("hist:"):
                hist = metric.source.split(":")[1]
                samples = int(counts.get((number.block, number.slot, number.case), {}).get(f"{hist}_count", samples))
            cells[number.case, number.mitigations, metric.name, number.kernel].append(
                verdict.Observation(
                    block=number.block,
                    slot=number.slot,
                    value=number.value if state == "ok" else None,
                    samples=samples,
                    state=state,  # type: ignore[arg-type]
                    why=why,
                    facts=facts.get((number.block, number.slot), {}),
                    host=hosts.get((number.block, number.slot), ""),
                )
            )
    return [
        verdict.CellData(case=case, mitigations=mitigations, metric=metric, kernel=kernel, boots=tuple(found))
        for (case, mitigations, metric, kernel), found in cells.items()
    ]


def floors_of(experiment: Experiment, store: Store) -> dict[str, float]:
    """Noise floors by ``CASE`` or ``CASE/METRIC``: in exact mode the workload's own, and that of what crosses between
    CPUs; in timed mode the calibrated ones of this host."""
    if experiment.mode == "exact":
        found = definitions.of(experiment)
        known = [(case.name, found[case.workload]) for case in experiment.cases if case.workload in found]
        moved = {f"{name}/{metric}": one.moved_floor_percent for name, one in known for metric in CROSSING}
        return {name: one.floor_percent for name, one in known} | {key: floor for key, floor in moved.items() if floor}
    return floors.of(experiment, store)


def of_numbers(experiment: Experiment, store: Store, numbers: Sequence[Number]) -> list[verdict.CellData]:
    """``numbers`` as the verdict engine takes them."""
    counts = (
        {(f.block, f.slot, f.case): f.facts for f in store.facts(experiment.id)} if experiment.mode == "timed" else {}
    )
    return cell_data(experiment, numbers, store.boots(experiment.id), definitions.metrics_of(experiment), counts)


def judged(experiment: Experiment, store: Store, numbers: Sequence[Number]) -> tuple[CellResult, ...]:
    """The verdicts of one experiment, from numbers alone."""
    return judge(experiment, store, of_numbers(experiment, store, numbers))


def judge(experiment: Experiment, store: Store, data: Sequence[verdict.CellData]) -> tuple[CellResult, ...]:
    """The verdicts on what ``of_numbers`` made."""
    return verdict.judge(experiment, data, floors_of(experiment, store), definitions.metrics_of(experiment))
