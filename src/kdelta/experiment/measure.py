# SPDX-License-Identifier: GPL-2.0-or-later
"""What a boot that measures does, and how its runs are read: times, exact counts, lives of a leak check."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kdelta.attribution import exact
from kdelta.attribution.entries import Entries
from kdelta.attribution.profiles import Symbols
from kdelta.errors import UserError
from kdelta.experiment.boot_once import Work
from kdelta.guest import metrics as guest_metrics
from kdelta.guest import packing, pressure
from kdelta.guest.jobs import case_jobs
from kdelta.machine.boot import RawBoot
from kdelta.model import Effort, Experiment, Kernel, Metric, PlannedBoot, RunResult
from kdelta.results.definitions import define
from kdelta.spec import program
from kdelta.spec.workloads import Workload


def refuse_unknown(experiment: Experiment, workloads: Mapping[str, Workload]) -> None:
    """Raises:
    UserError: a case whose workload is not here, or that has no exact mode where counts are asked for.
    """
    for case in experiment.cases:
        workload = workloads.get(case.workload)
        if workload is None:
            raise UserError(
                f"case {case.name}: its workload {case.workload!r} was not found; give its directory with --workloads"
            )
        if experiment.mode == "exact" and workload.exact_ops == 0:
            raise UserError(f"case {case.name}: it has no exact mode (exact_ops = 0); add --timed")


class Measuring(Struct, frozen=True, kw_only=True):
    """The boots of a measuring experiment: efforts and operations by case index; ``plugin`` counts instructions."""

    experiment: Experiment
    efforts: Mapping[int, Effort]
    exact_ops: Mapping[int, int]
    metrics: Mapping[int, Sequence[Metric]]
    data: Mapping[str, Path]  # of all workloads: one settled guest serves every case
    programs: Mapping[str, Path]
    tree: Path | None
    symbols: Callable[[Kernel], Symbols | None]
    entries: Callable[[Kernel], Entries | None]
    plugin: Path | None = None

    def work(self, plan: PlannedBoot) -> Work:
        """What the planned boot does."""
        e = self.experiment
        indexes = plan.cases or tuple(range(len(e.cases)))
        jobs = case_jobs(
            {index: e.cases[index] for index in indexes},
            mode=e.mode,
            efforts=self.efforts,
            exact_ops=self.exact_ops,
            seed=plan.block + 1 + (1000 * e.seed if e.mode == "exact" else 0),
        )
        kernel = e.kernels[plan.kernel]
        entries = self.entries(kernel) if self.plugin is not None else None
        boot_limit_s, limits_s = e.machine.boot_limit_s, {i: self.efforts[i].limit_ms / 1000 for i in indexes}
        return Work(
            kernel=kernel,
            jobs=jobs,
            limit_s=boot_limit_s + min(sum(limits_s.values()), 20 * boot_limit_s),
            job_limits_s={i: boot_limit_s + limit_s for i, limit_s in limits_s.items()},
            wall_limits_s=limits_s if e.effort.limit_ms != Effort().limit_ms else {},
            mitigations=plan.mitigations,
            data=self.data,
            programs=self.programs,
            tree=self.tree,
            plugin=self.plugin,
            entries=None if entries is None else entries.text.encode("ascii"),
        )

    def runs(self, plan: PlannedBoot, raw: RawBoot) -> tuple[RunResult, ...]:
        """What the guest said, and in exact mode what the plugin counted, by case."""
        cases = plan.cases or tuple(range(len(self.experiment.cases)))
        if self.experiment.mode == "timed":
            return guest_metrics.timed_runs(raw.records, cases, self.metrics, (raw.state, raw.why))
        kernel = self.experiment.kernels[plan.kernel]
        symbols, entries = self.symbols(kernel), self.entries(kernel)
        return exact.runs(raw.records, raw.counts, cases, self.metrics, symbols, raw.end_of, entries)


def _packed(experiment: Experiment) -> packing.Pack | None:
    """The program of the experiment, where one is measured.

    Raises:
        UserError: its files are gone, there are several, or the kernels cannot run it.
    """
    cases = [case for case in experiment.cases if case.workload == program.WORKLOAD]
    if not cases:
        return None
    if len({case.params.get(program.PACK) for case in cases}) > 1:
        raise UserError("an experiment takes one program")
    here = pressure.MACHINES.get(platform.machine())
    if foreign := [kernel for kernel in experiment.kernels if kernel.arch != here]:
        raise UserError(
            f"{foreign[0].label} is of {foreign[0].arch}: it cannot run the programs of this {here} machine"
        )
    return packing.of_case(cases[0])


def measuring(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    symbols: Callable[[Kernel], Symbols | None],
    entries: Callable[[Kernel], Entries | None],
    plugin: Path | None,
) -> Measuring:
    """The boots of ``experiment``, whose workloads are all known."""
    named = {index: workloads[case.workload] for index, case in enumerate(experiment.cases)}
    defined = experiment.definitions or define(experiment, workloads)
    pressed = any(case.pressure for case in experiment.cases)
    data = {name: path for workload in workloads.values() for name, path in workload.data_files.items()}
    packed = _packed(experiment)
    return Measuring(
        experiment=experiment,
        efforts={index: workload.effort(experiment.effort) for index, workload in named.items()},
        exact_ops={index: workload.exact_ops for index, workload in named.items()},
        metrics={index: defined[case.workload].metrics for index, case in enumerate(experiment.cases)},
        data=data | ({packing.SPEC: packed.spec} if packed else {}),
        tree=packed.tree if packed else None,
        programs=pressure.programs([kernel.arch for kernel in experiment.kernels]) if pressed else {},
        symbols=symbols,
        entries=entries,
        plugin=plugin,
    )
