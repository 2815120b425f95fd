# SPDX-License-Identifier: GPL-2.0-or-later
"""What a boot that traces does, beside those that measure: one a kernel, a job for each case and collector set.

A traced boot counts a fixed number of operations and reads no clock, so its figures per operation are exact; what it
costs in time does not matter, and no time of it is ever reported as a speed. All that the guests sent is kept in the
store with the boot: results (results/traces.py) are made from there, again whenever they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kdelta.experiment.measure import Measuring
from kdelta.experiment.work import Work
from kdelta.guest import protocol
from kdelta.guest.jobs import case_jobs
from kdelta.machine.boot import RawBoot
from kdelta.model import Collector, Experiment, PlannedBoot, RunResult
from kdelta.results import traces
from kdelta.spec import collectors
from kdelta.spec.workloads import Workload

_REPETITIONS_WORTH = 32  # operations counted by default: so many exact repetitions


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
        ended = done(raw.records)
        found = []
        for case in range(len(self.experiment.cases)):
            sets = range(case * len(self.sets), (case + 1) * len(self.sets))
            ends = [ended[job] for job in sets if job in ended]
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


def done(records: Iterable[protocol.Record]) -> dict[int, protocol.Done]:
    """How each job ended, by its number."""
    return {record.j: record for record in records if isinstance(record, protocol.Done)}
