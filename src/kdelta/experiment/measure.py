# SPDX-License-Identifier: GPL-2.0-or-later
"""What a boot that measures does, and how its runs are read: times, exact counts, lives of a leak check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import exact
from kdelta.experiment import programs
from kdelta.experiment.known import NamesOf
from kdelta.experiment.work import Work
from kdelta.guest import metrics as guest_metrics
from kdelta.guest import pressure, startup
from kdelta.guest.jobs import case_jobs
from kdelta.kernel.layouts import laid_out
from kdelta.machine.boot import RawBoot
from kdelta.model import Case, Effort, Experiment, Metric, PlannedBoot, RunResult
from kdelta.results.definitions import define
from kdelta.spec import counted, needs
from kdelta.spec.program import PACK
from kdelta.spec.workloads import Workload

_THEIR_CLOCK = " of the guest's clock"
_RUN_FAILED = "operation of task 0 failed: "  # as guest/harness_api.c says it; a program has no other task


class Measuring(Struct, frozen=True, kw_only=True):
    """The boots of a measuring experiment: efforts and operations by case index; ``plugin`` counts instructions."""

    experiment: Experiment
    efforts: Mapping[int, Effort]
    exact_ops: Mapping[int, int]
    metrics: Mapping[int, Sequence[Metric]]
    data: Mapping[str, Path]  # of all workloads: one settled guest serves every case
    own: Mapping[str, Path]  # of these cases: programs, and what few kernels can run
    programs: Mapping[str, Path]
    trees: tuple[Path, ...]
    names: NamesOf
    plugin: Path | None = None

    def work(self, plan: PlannedBoot) -> Work:
        """What the planned boot does."""
        e = self.experiment
        runs = self._jobs(plan)
        jobs = case_jobs(
            runs,
            mode=e.mode,
            efforts=self.efforts,
            exact_ops=self.exact_ops,
            seed=plan.block + 1 + (1000 * e.seed if e.mode == "exact" else 0),
            rehearsed=e.blocks > 1,
        )
        boot_limit_s, limits_s = e.machine.boot_limit_s, {i: self.efforts[i].limit_ms / 1000 for i in runs}
        kernel = laid_out(e.kernels[plan.kernel], plan.block)
        names = self.names(kernel) if self.plugin is not None else exact.Names()
        return Work(
            kernel=kernel,
            jobs=jobs,
            limit_s=boot_limit_s + min(sum(limits_s.values()), 20 * boot_limit_s),
            job_limits_s={i: boot_limit_s + limit_s for i, limit_s in limits_s.items()},
            wall_limits_s=limits_s if e.effort.by_the_wall else {},
            mitigations=plan.mitigations,
            data=self.data,
            own=self.own,
            programs=self.programs,
            trees=self.trees,
            plugin=self.plugin,
            entries=None if names.entries is None else names.entries.text.encode("ascii"),
            kernel_facts=names.facts,
        )

    def runs(self, plan: PlannedBoot, raw: RawBoot) -> tuple[RunResult, ...]:
        """What the guest said, and in exact mode what the plugin counted, by case."""
        most = len(self.experiment.cases)
        jobs = tuple(self._jobs(plan))
        if self.experiment.mode == "timed":
            runs = guest_metrics.timed_runs(raw.records, jobs, self.metrics, (raw.state, raw.why))
        else:
            names = self.names(laid_out(self.experiment.kernels[plan.kernel], plan.block))
            runs = exact.runs(raw.records, exact.Files(raw.counts, raw.lines), jobs, self.metrics, names, raw.end_of)
        return tuple(self._told(run, plan) for run in startup.all_without(runs, most))

    def _told(self, run: RunResult, plan: PlannedBoot) -> RunResult:
        """Of a program: its end without the harness's word for a run; of what did not end, why it may not have."""
        if run.state == "ok":
            return run
        why, program = run.why, PACK in self.experiment.cases[run.case].params
        if program:
            why = why.removeprefix(_RUN_FAILED)
        if run.state != "hung":
            return replace(run, why=why)
        if why.startswith("timed out after"):  # as guest/harness_child.c says it
            theirs = self.experiment.mode == "exact" and not self.experiment.effort.by_the_wall
            why += f"{_THEIR_CLOCK if theirs else ''}; --limit TIME waits longer"
        if program:
            why += "; a run ends with the last process that it started, daemons too"
        if lives := self.experiment.effort.batches:
            often = self.experiment.effort.batch_ops
            why += f"; it runs {often} times in each of {lives} batches: --ops N sets how often"
        if self.experiment.mode == "exact" and "idle=poll" in self.experiment.kernels[plan.kernel].cmdline.split():
            why += "; under idle=poll a kernel executes instructions for as long as it waits: leave it out, or --timed"
        return replace(run, why=why)

    def _jobs(self, plan: PlannedBoot) -> dict[int, Case]:
        """The runs of the planned boot, by job."""
        cases = self.experiment.cases
        indexes = plan.cases or range(len(cases))
        return counted.jobs({index: cases[index] for index in indexes}, len(cases))


def _files(workloads: Iterable[Workload]) -> dict[str, Path]:
    return {name: path for workload in workloads for name, path in workload.data_files.items()}


def measuring(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    names: NamesOf,
    plugin: Path | None,
) -> Measuring:
    """The boots of ``experiment``, whose workloads are all known."""
    jobs = counted.jobs(dict(enumerate(experiment.cases)), len(experiment.cases))
    named = {index: workloads[case.workload] for index, case in jobs.items()}
    defined = experiment.definitions or define(experiment, workloads)
    pressed = any(case.pressure for case in experiment.cases)
    shared = [workload for workload in workloads.values() if not needs.are_rare(workload.needs)]
    rare = {name for case in experiment.cases if needs.are_rare(workloads[name := case.workload].needs_of(case))}
    own = _files(workload for name, workload in workloads.items() if name in rare)
    specs, trees = programs.packed(experiment, jobs)
    return Measuring(
        experiment=experiment,
        efforts={index: workload.effort(experiment.effort) for index, workload in named.items()},
        exact_ops={index: workload.exact_ops for index, workload in named.items()},
        metrics={index: defined[case.workload].metrics for index, case in jobs.items()},
        data=_files(shared),
        own=own | specs,
        trees=trees,
        programs=pressure.programs([kernel.arch for kernel in experiment.kernels]) if pressed else {},
        names=names,
        plugin=plugin,
    )
