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

from kdelta import paths
from kdelta.attribution import holds, traces
from kdelta.errors import HostError, UserError
from kdelta.experiment import prepare
from kdelta.guest import image, protocol
from kdelta.guest.jobs import jobs_text
from kdelta.kernel import symbols
from kdelta.machine import boot, guests
from kdelta.machine.options import GuestSpec, common_port
from kdelta.model import BootResult, Case, Experiment, Kernel, PlannedBoot, RunResult
from kdelta.spec import collectors
from kdelta.spec.collectors import Collector
from kdelta.spec.workloads import Workload
from kdelta.store.store import Store

Voice = prepare.Voice
KIND = "trace"
HOLD = "hold"  # not a collector set of the tracefs, but the counting plugin
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
    """An experiment of kind ``trace`` with the kernels, cases and machine of ``template``; no ``sets``: of exact holds.

    Raises:
        UserError: a case whose loop never returns, so that no operations can be counted off.
    """
    exact = not sets
    for case in template.cases:
        if workloads[case.workload].exact_ops == 0:
            raise UserError(f"case {case.name}: its loop never returns, so its operations cannot be traced one by one")
    extra = {key: value for key, value in template.extra.items() if key == "folders"}
    extra |= {"what": ",".join(one.name for one in sets) or HOLD}
    if ops is not None:
        extra["ops"] = str(ops)
    # Memory pressure is for measuring: it would only be traced too.
    cases = tuple(replace(case, pressure="") for case in template.cases)
    return prepare.new_experiment(
        replace(
            template,
            cases=cases,
            kind=KIND,
            mode="exact" if exact else "timed",
            blocks=1,
            looks=(),
            mitigations=("default",),
            extra=extra,
        ),
        0,
        now,
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
        jobs = len(experiment.cases) * len(sets_of(experiment))
        limit_s = experiment.machine.boot_limit_s + jobs * experiment.effort.limit_ms / 1000
        return boot.run(guest, payload, limit_s)


def _kept(
    experiment: Experiment, index: int, raw: boot.RawBoot, started_at: str, machine: Mapping[str, str]
) -> BootResult:
    """The boot as it is stored: the stream is the record, a run says only how its case went in every set."""
    sets = 1 if experiment.extra.get("what") == HOLD else len(sets_of(experiment))
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
        table = symbols.load(kernel)
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
    folders: Sequence[Path] = (),
) -> None:
    """Count instructions in mutexes, exactly, for an experiment whose ``what`` is ``hold``; each boot is stored whole.

    Raises:
        HostError: no QEMU, no compiler, or the disk is full. GuestError: the plugin's output is damaged.
    """
    job = prepare.prepare(experiment, workloads, store, voice, extra=folders)
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


def _hold_results(store: Store, experiment: Experiment) -> tuple[traces.SetResult, ...]:
    aliases = collectors.catalogue()["locks"].aliases
    found = []
    boots = {row.kernel: row for row in store.boots(experiment.id)}
    for case, named in enumerate(experiment.cases):
        for index, kernel in enumerate(experiment.kernels):
            if index not in boots:
                continue
            stored = store.boot(experiment.id, boots[index].block, boots[index].slot)
            run = next((run for run in stored.runs if run.case == case), None)
            state, why = (run.state, run.why) if run else (stored.state if stored.state != "ok" else "lost", stored.why)
            one = traces.SetResult(
                collector=HOLD, title="Lock holds", kernel=kernel.label, case=named.name, state=state, why=why
            )
            if run is not None and run.state == "ok":
                probe, warnings = holds.result(run.facts, aliases)
                one = replace(one, ops=int(run.facts["ops"]), probes=(probe,), warnings=tuple(warnings))
            found.append(one)
    return tuple(found)


def execute(
    experiment: Experiment,
    store: Store,
    voice: prepare.Voice,
    workloads: Mapping[str, Workload],
    folders: Sequence[Path] = (),
) -> None:
    """Boot every kernel that has not been traced yet; each boot is stored before the next one starts.

    Raises:
        HostError: no QEMU, no compiler, or the disk is full.
    """
    programs = prepare.programs_for(experiment.kernels, folders)
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


def results(store: Store, name: str) -> tuple[Experiment, tuple[traces.SetResult, ...]]:
    """Everything that the experiment ``name`` found, from the store alone: by case, set and kernel.

    Raises:
        UserError: no such experiment, or one of another kind.
    """
    experiment = store.experiment(name)
    if experiment.kind != KIND:
        raise UserError(f"experiment {experiment.id} is no trace; kdelta report shows it")
    if experiment.extra.get("what") == HOLD:
        return experiment, _hold_results(store, experiment)
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


def run(
    experiment: Experiment,
    store: Store,
    voice: prepare.Voice,
    workloads: Mapping[str, Workload],
    folders: Sequence[Path] = (),
) -> None:
    """Boot what has not been booted yet, in the way that the experiment asks for.

    Raises:
        HostError: see ``execute`` and ``execute_holds``; stored boots stay, and running again goes on after them.
    """
    way = execute_holds if experiment.extra.get("what") == HOLD else execute
    way(experiment, store, voice, workloads, folders)
