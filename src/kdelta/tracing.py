# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the boots that trace, beside those that measure: one a kernel, a job for each case and collector set.

A traced boot counts a fixed number of operations and reads no clock, so its figures per operation are exact; what it
costs in time does not matter, and no time of it is ever reported as a speed. All that the guests sent is kept in the
store with the boot: results are made from there, again whenever they are asked for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from kdelta import collectors, paths, session
from kdelta.attribution import traces
from kdelta.collectors import Collector
from kdelta.errors import HostError, UserError
from kdelta.guest import image, protocol
from kdelta.guest.jobs import jobs_text
from kdelta.machine import boot
from kdelta.machine.options import GuestSpec, common_port
from kdelta.model import BootResult, Case, Experiment, Kernel, PlannedBoot, RunResult
from kdelta.store.store import Store
from kdelta.workloads import Workload

Voice = session.Voice
KIND = "trace"
_REPETITIONS_WORTH = 32  # operations counted by default: so many exact repetitions


def ops_of(workload: Workload, asked: int | None) -> int:
    """Operations of each counted task."""
    return asked or _REPETITIONS_WORTH * workload.exact_ops


def new(
    template: Experiment,
    sets: Sequence[Collector],
    workloads: Mapping[str, Workload],
    ops: int | None,
    now: Callable[[], datetime],
) -> Experiment:
    """An experiment of kind ``trace`` with the kernels, cases and machine of ``template``.

    Raises:
        UserError: a case whose loop never returns, so that no operations can be counted off.
    """
    for case in template.cases:
        if workloads[case.workload].exact_ops == 0:
            raise UserError(f"case {case.name}: its loop never returns, so its operations cannot be traced one by one")
    extra = {**template.extra, "what": ",".join(one.name for one in sets)}
    if ops is not None:
        extra["ops"] = str(ops)
    return session.new_experiment(
        replace(template, kind=KIND, mode="timed", blocks=1, looks=(), mitigations=("default",), extra=extra), 0, now
    )


def sets_of(experiment: Experiment) -> tuple[Collector, ...]:
    """The collector sets of a stored experiment."""
    return collectors.choose(experiment.extra.get("what", ""), collectors.catalogue())


def _jobs(experiment: Experiment, kernel: Kernel, workloads: Mapping[str, Workload]) -> str:
    sets = sets_of(experiment)
    asked = int(experiment.extra["ops"]) if "ops" in experiment.extra else None
    places = [(case, one) for case in experiment.cases for one in sets]
    effort = replace(experiment.effort, repetitions=1)
    return jobs_text(
        {job: case for job, (case, _) in enumerate(places)},
        mode="exact",
        efforts=dict.fromkeys(range(len(places)), effort),
        exact_ops={job: ops_of(workloads[case.workload], asked) for job, (case, _) in enumerate(places)},
        traces={job: collectors.lines(one, kernel.arch) for job, (_, one) in enumerate(places)},
    )


def _data(workloads: Mapping[str, Workload], cases: Sequence[Case]) -> dict[str, Path]:
    folder = paths.shipped("guest") / "data"
    return {name: folder / name for case in cases for name in workloads[case.workload].data}


def _run(
    experiment: Experiment, index: int, workloads: Mapping[str, Workload], ground: session.Ground, program: Path
) -> boot.RawBoot:
    kernel = experiment.kernels[index]
    qemu = ground.qemus[kernel.arch]
    parent = paths.cache_dir() / "boots"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix="trace-", dir=parent)
    except OSError as error:
        raise HostError(f"cannot make a folder in {parent}: {error.strerror}") from None
    with scratch as folder:
        guest = GuestSpec(
            kernel=kernel,
            mode="timed",
            accel=ground.accel,
            options=experiment.machine,
            mitigations="default",
            qemu=qemu.path,
            qemu_version=qemu.version,
            folder=Path(folder),
            port=common_port(experiment.kernels),
        )
        payload = image.payload(program, _data(workloads, experiment.cases), _jobs(experiment, kernel, workloads))
        jobs = len(experiment.cases) * len(sets_of(experiment))
        limit_s = experiment.machine.boot_limit_s + jobs * experiment.effort.limit_ms / 1000
        return boot.run(guest, payload, limit_s)


def _kept(
    experiment: Experiment, index: int, raw: boot.RawBoot, started_at: str, machine: Mapping[str, str]
) -> BootResult:
    """The boot as it is stored: the stream is the record, a run says only how its case went in every set."""
    sets = len(sets_of(experiment))
    done = {r.j: r for r in raw.records if isinstance(r, protocol.Done)}
    runs = []
    for case in range(len(experiment.cases)):
        mine = [done[job] for job in range(case * sets, (case + 1) * sets) if job in done]
        bad = next((record for record in mine if record.state != "ok"), None)
        if len(mine) == sets:
            runs.append(RunResult(case=case, state=bad.state if bad else "ok", why=bad.why if bad else ""))
    return BootResult(
        plan=PlannedBoot(block=0, slot=index, kernel=index),
        state=raw.state,
        why=raw.why,
        started_at=started_at,
        elapsed_s=raw.elapsed_s,
        argv=raw.argv,
        machine=dict(machine),
        console=raw.console,
        stream=raw.stream,
        runs=tuple(runs),
    )


def execute(
    experiment: Experiment,
    store: Store,
    voice: session.Voice,
    workloads: Mapping[str, Workload],
    folders: Sequence[Path] = (),
) -> None:
    """Boot every kernel that has not been traced yet; each boot is stored before the next one starts.

    Raises:
        HostError: no QEMU, no compiler, or the disk is full.
    """
    programs = session.programs_for(experiment.kernels, folders)
    ground = session.survey(experiment.kernels, experiment.machine.kvm, experiment.machine.qemu, programs)
    machine = {"accel": ground.accel, "qemu": "; ".join(qemu.text for qemu in ground.qemus.values())}
    done = store.done(experiment.id)
    for index, kernel in enumerate(experiment.kernels):
        if (0, index) in done:
            continue
        voice.boots(index, len(experiment.kernels), f"{kernel.label}, tracing")
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        raw = _run(experiment, index, workloads, ground, programs[kernel.arch])
        store.save_boot(experiment.id, _kept(experiment, index, raw, started_at, machine))
    voice.boots(len(experiment.kernels), len(experiment.kernels), "done")


def results(store: Store, name: str) -> tuple[Experiment, tuple[traces.SetResult, ...]]:
    """Everything that the experiment ``name`` found, from the store alone: by case, set and kernel.

    Raises:
        UserError: no such experiment, or one of another kind.
    """
    experiment = store.experiment(name)
    if experiment.kind != KIND:
        raise UserError(f"experiment {experiment.id} is no trace; kdelta report shows it")
    sets = sets_of(experiment)
    found: dict[tuple[int, int], traces.SetResult] = {}
    for plan in sorted(store.done(experiment.id)):
        stored = store.boot(experiment.id, *plan)
        kernel = experiment.kernels[stored.plan.kernel]
        records = protocol.parse(stored.stream).records
        for job in range(len(experiment.cases) * len(sets)):
            found[job, stored.plan.kernel] = traces.evaluate(
                sets[job % len(sets)],
                records,
                job,
                kernel=kernel.label,
                case=experiment.cases[job // len(sets)].name,
                config=kernel.config,
                boot=(stored.state, stored.why),
            )
    return experiment, tuple(found[key] for key in sorted(found))
