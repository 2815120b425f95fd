# SPDX-License-Identifier: GPL-2.0-or-later
"""What a boot that traces does, beside those that measure: one a kernel, a job for each case and collector set.

A traced boot counts a fixed number of operations and reads no clock, so its figures per operation are exact; what it
costs in time does not matter, and no time of it is ever reported as a speed. All that the guests sent is kept in the
store with the boot: results (results/traces.py) are made from there, again whenever they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import holds
from kdelta.errors import UserError
from kdelta.experiment.boot_once import Work
from kdelta.experiment.measure import Measuring
from kdelta.guest import protocol
from kdelta.guest.jobs import case_jobs
from kdelta.kernel import naming, symbols
from kdelta.machine.boot import RawBoot
from kdelta.model import Case, Experiment, Kernel, PlannedBoot, RunResult
from kdelta.model.collectors import Collector
from kdelta.results import traces
from kdelta.spec import collectors
from kdelta.spec.workloads import Workload

_REPETITIONS_WORTH = 32  # operations counted by default: so many exact repetitions


def refuse_endless(cases: Sequence[Case], workloads: Mapping[str, Workload]) -> None:
    """Raises:
    UserError: a case whose loop never returns, so that no operations can be counted off.
    """
    for case in cases:
        if workloads[case.workload].endless:
            raise UserError(f"case {case.name}: its loop never returns, so its operations cannot be traced one by one")


class Tracing(Struct, frozen=True, kw_only=True):
    """The boots of a trace with collector ``sets``; ``ops`` by case index. The guests get what measured ones get."""

    measured: Measuring
    sets: tuple[Collector, ...]
    ops: tuple[int, ...]

    @property
    def experiment(self) -> Experiment:
        """What is traced."""
        return self.measured.experiment

    def work(self, plan: PlannedBoot) -> Work:
        """What the planned boot does: every case under every set."""
        e, kernel = self.experiment, self.experiment.kernels[plan.kernel]
        places = [(index, one) for index in range(len(e.cases)) for one in self.sets]
        jobs = case_jobs(
            {job: e.cases[case] for job, (case, _) in enumerate(places)},
            mode="exact",
            efforts=dict.fromkeys(range(len(places)), replace(e.effort, repetitions=1)),
            exact_ops={job: self.ops[case] for job, (case, _) in enumerate(places)},
            traces={job: collectors.lines(one, kernel.arch) for job, (_, one) in enumerate(places)},
        )
        limit_s = e.machine.boot_limit_s + len(places) * e.effort.limit_ms / 1000
        return replace(self.measured.work(plan), jobs=jobs, limit_s=limit_s, plugin=None, entries=None)

    def runs(self, plan: PlannedBoot, raw: RawBoot) -> tuple[RunResult, ...]:
        """How each case went in every set; the stream is the record."""
        done = _done(raw.records)
        found = []
        for case in range(len(self.experiment.cases)):
            sets = range(case * len(self.sets), (case + 1) * len(self.sets))
            ends = [done[job] for job in sets if job in done]
            bad = next((end for end in ends if end.state != "ok"), None)
            if len(ends) == len(self.sets):
                found.append(RunResult(case=case, state=bad.state if bad else "ok", why=bad.why if bad else ""))
        return tuple(found)


def tracing(measured: Measuring, workloads: Mapping[str, Workload]) -> Tracing:
    """The boots of a trace of what ``measured`` has."""
    experiment = measured.experiment
    named = [workloads[case.workload] for case in experiment.cases]
    asked = traces.plan_of(experiment).ops
    return Tracing(
        measured=measured,
        sets=traces.sets_of(experiment),
        ops=tuple(asked or _REPETITIONS_WORTH * workload.exact_ops for workload in named),
    )


class Holding(Struct, frozen=True, kw_only=True):
    """The boots of exact lock holds: as measured, and the plugin knows where each kernel takes mutexes (or why not)."""

    measured: Measuring
    sites: Mapping[int, holds.Sites | str]  # by kernel

    def work(self, plan: PlannedBoot) -> Work | str:
        """What the planned boot does, or why the kernel's locks are not known."""
        sites = self.sites[plan.kernel]
        if isinstance(sites, str):
            return sites
        return replace(self.measured.work(plan), hold_sites=sites.text().encode("ascii"))

    def runs(self, plan: PlannedBoot, raw: RawBoot) -> tuple[RunResult, ...]:
        """The instructions in each mutex, by case."""
        sites = self.sites[plan.kernel]
        if raw.state != "ok" or isinstance(sites, str):
            return ()
        found = (_hold_run(sites, raw, case) for case in range(len(self.measured.experiment.cases)))
        return tuple(run for run in found if run is not None)


def holding(measured: Measuring) -> Holding:
    """The boots of exact lock holds of what ``measured`` has."""
    kernels = enumerate(measured.experiment.kernels)
    return Holding(measured=measured, sites={index: _sites(kernel) for index, kernel in kernels})


def _sites(kernel: Kernel) -> holds.Sites | str:
    """Where ``kernel`` takes and releases mutexes, or why that is not known."""
    table = naming.load(kernel)
    if isinstance(table, symbols.NoSymbols):
        return f"no function names: {table.why}"
    try:
        return holds.find(Path(kernel.vmlinux_path or kernel.image_path).read_bytes(), table, kernel.label)
    except UserError as error:
        return str(error)


def _done(records: Iterable[protocol.Record]) -> dict[int, protocol.Done]:
    return {record.j: record for record in records if isinstance(record, protocol.Done)}


def _hold_run(sites: holds.Sites, raw: RawBoot, case: int) -> RunResult | None:
    done = _done(raw.records).get(case)
    if done is None:
        state, why = raw.end_of(case)
        return RunResult(case=case, state=state, why=why) if state != "ok" else None
    if done.state != "ok":
        return RunResult(case=case, state=done.state, why=done.why)
    files = enumerate(raw.holds)
    every = {protocol.interval_of(n, nr): one for n, file in files for nr, one in holds.read(file).items()}
    repetitions = [r for r in raw.records if isinstance(r, protocol.Repetition) and r.j == case]
    missing = [r.r for r in repetitions if r.id not in every]
    if missing or not repetitions:
        return RunResult(case=case, state="failed", why=f"repetition {missing or 'none'} is not in the plugin's output")
    return RunResult(
        case=case,
        state="ok",
        facts={"ops": repetitions[0].ops, **holds.facts(sites, [every[r.id] for r in repetitions])},
    )
