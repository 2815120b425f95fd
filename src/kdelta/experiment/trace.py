# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the boots that trace, beside those that measure: one a kernel, a job for each case and collector set.

A traced boot counts a fixed number of operations and reads no clock, so its figures per operation are exact; what it
costs in time does not matter, and no time of it is ever reported as a speed. All that the guests sent is kept in the
store with the boot: results are made from there, again whenever they are asked for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from kdelta import paths
from kdelta.attribution import holds
from kdelta.errors import HostError, UserError
from kdelta.experiment import prepare
from kdelta.guest import image, protocol
from kdelta.guest.jobs import jobs_text
from kdelta.kernel import naming, symbols
from kdelta.machine import boot, guests
from kdelta.machine.options import GuestSpec, common_port
from kdelta.model import BootResult, Case, Experiment, Kernel, PlannedBoot, RunResult
from kdelta.results import traces
from kdelta.spec import collectors
from kdelta.spec.workloads import Workload
from kdelta.store.store import Store

_REPETITIONS_WORTH = 32  # operations counted by default: so many exact repetitions


def ops_of(workload: Workload, asked: int | None) -> int:
    """Operations of each counted task."""
    return asked or _REPETITIONS_WORTH * workload.exact_ops


def refuse_endless(cases: Sequence[Case], workloads: Mapping[str, Workload]) -> None:
    """Raises:
    UserError: a case whose loop never returns, so that no operations can be counted off.
    """
    for case in cases:
        if workloads[case.workload].exact_ops == 0:
            raise UserError(f"case {case.name}: its loop never returns, so its operations cannot be traced one by one")


def _jobs(experiment: Experiment, kernel: Kernel, workloads: Mapping[str, Workload]) -> str:
    sets = traces.sets_of(experiment)
    asked = traces.plan_of(experiment).ops
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
    experiment: Experiment, index: int, workloads: Mapping[str, Workload], ground: prepare.Ground, program: Path
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
            port=common_port(experiment.kernels, experiment.mode),
        )
        payload = image.payload(program, _data(workloads, experiment.cases), _jobs(experiment, kernel, workloads))
        jobs = len(experiment.cases) * len(traces.sets_of(experiment))
        limit_s = experiment.machine.boot_limit_s + jobs * experiment.effort.limit_ms / 1000
        return boot.run(guest, payload, limit_s)


def _kept(
    experiment: Experiment, index: int, raw: boot.RawBoot, started_at: str, machine: Mapping[str, str]
) -> BootResult:
    """The boot as it is stored: the stream is the record, a run says only how its case went in every set."""
    sets = len(traces.sets_of(experiment)) or 1
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


def _hold_sites(experiment: Experiment, folder: Path) -> tuple[dict[int, holds.Sites], dict[int, Path], dict[int, str]]:
    """By kernel: where it takes mutexes, the file that says so to the plugin, and why there is none."""
    found: dict[int, holds.Sites] = {}
    files: dict[int, Path] = {}
    refused: dict[int, str] = {}
    for index, kernel in enumerate(experiment.kernels):
        table = naming.load(kernel)
        if isinstance(table, symbols.NoSymbols):
            refused[index] = f"no function names: {table.why}"
            continue
        try:
            found[index] = holds.find(Path(kernel.vmlinux_path or kernel.image_path).read_bytes(), table, kernel.label)
        except UserError as error:
            refused[index] = str(error)
            continue
        files[index] = folder / f"sites-{index}"
        boot.write_file(files[index], found[index].text().encode("ascii"))
    return found, files, refused


def _hold_run(sites: holds.Sites, raw: boot.RawBoot, case: int) -> RunResult | None:
    done = next((r for r in raw.records if isinstance(r, protocol.Done) and r.j == case), None)
    if done is None:
        return None
    if done.state != "ok":
        return RunResult(case=case, state=done.state, why=done.why)
    every = holds.read(raw.holds)
    repetitions = [r for r in raw.records if isinstance(r, protocol.Repetition) and r.j == case]
    missing = [r.r for r in repetitions if r.id not in every]
    if missing or not repetitions:
        return RunResult(case=case, state="failed", why=f"repetition {missing or 'none'} is not in the plugin's output")
    return RunResult(
        case=case,
        state="ok",
        facts={"ops": repetitions[0].ops, **holds.facts(sites, [every[r.id] for r in repetitions])},
    )


def execute_holds(
    experiment: Experiment,
    store: Store,
    voice: prepare.Voice,
    workloads: Mapping[str, Workload],
) -> None:
    """Count instructions in mutexes, exactly, for a trace without collector sets; each boot is stored whole.

    Raises:
        HostError: no QEMU, no compiler, or the disk is full. GuestError: the plugin's output is damaged.
    """
    job = prepare.prepare(experiment, workloads, store, voice, extra=tuple(map(Path, experiment.folders)))
    done = store.done(experiment.id)
    job.site.tmp.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="holds-", dir=job.site.tmp) as scratch:
        found, files, refused = _hold_sites(experiment, Path(scratch))
        site = replace(job.site, hold_sites=files)
        for index, kernel in enumerate(experiment.kernels):
            if (0, index) in done:
                continue
            plan = PlannedBoot(block=0, slot=index, kernel=index)
            voice.boots(index, len(experiment.kernels), f"{kernel.label}, lock holds")
            if index in refused:
                store.save_boot(experiment.id, BootResult(plan=plan, state="unsupported", why=refused[index]))
                continue
            started_at = datetime.now(UTC).isoformat(timespec="seconds")
            raw = guests.run_exact(site, plan)
            runs = (
                [_hold_run(found[index], raw, case) for case in range(len(experiment.cases))]
                if raw.state == "ok"
                else []
            )
            kept = _kept(experiment, index, raw, started_at, job.machine)
            store.save_boot(experiment.id, replace(kept, runs=tuple(run for run in runs if run is not None)))
    voice.boots(len(experiment.kernels), len(experiment.kernels), "done")


def execute(
    experiment: Experiment,
    store: Store,
    voice: prepare.Voice,
    workloads: Mapping[str, Workload],
) -> None:
    """Boot every kernel that has not been traced yet; each boot is stored before the next one starts.

    Raises:
        HostError: no QEMU, no compiler, or the disk is full.
    """
    programs = prepare.programs_for(experiment.kernels, tuple(map(Path, experiment.folders)))
    ground = prepare.survey(experiment.kernels, experiment.machine.kvm, experiment.machine.qemu, programs)
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


def run(
    experiment: Experiment,
    store: Store,
    voice: prepare.Voice,
    workloads: Mapping[str, Workload],
) -> None:
    """Boot what has not been booted yet, in the way that the experiment asks for.

    Raises:
        HostError: see ``execute`` and ``execute_holds``; stored boots stay, and running again goes on after them.
    """
    way = execute if traces.sets_of(experiment) else execute_holds
    way(experiment, store, voice, workloads)
