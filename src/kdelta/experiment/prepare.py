# SPDX-License-Identifier: GPL-2.0-or-later
"""From a question to a job that can run: kernels and cases to an Experiment, an Experiment to its Site and Job."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from kdelta import __version__, paths
from kdelta.attribution.exact import exact_metrics
from kdelta.errors import HostError, UserError
from kdelta.experiment import functions
from kdelta.experiment.runner import Events, Job
from kdelta.guest import binary, image, pressure
from kdelta.guest.jobs import jobs_text
from kdelta.kernel.progress import Progress
from kdelta.machine import boot, guests, plugin, probe
from kdelta.machine.options import Accel, GuestSpec, common_port
from kdelta.machine.qemu import binary_name
from kdelta.model import Arch, Experiment, Kernel, MachineOptions, Metric, plans
from kdelta.results import answer, leaks
from kdelta.spec.workloads import Workload
from kdelta.store.store import Store


class Voice(Progress, Events, Protocol):
    """A front end that hears of steps and of boots."""


class Ground(Struct, frozen=True, kw_only=True):
    """What was found out about this machine for an experiment."""

    accel: Accel
    why: str
    qemus: dict[Arch, probe.Qemu]


def _trial(qemu: probe.Qemu, kernel: Kernel, program: Path) -> tuple[bool, str]:
    """Boot ``kernel`` under KVM with no job: does it come up?"""
    with tempfile.TemporaryDirectory(prefix="kdelta-kvm-") as folder:
        guest = GuestSpec(
            kernel=kernel,
            mode="timed",
            accel="kvm",
            options=MachineOptions(),
            mitigations="default",
            qemu=qemu.path,
            qemu_version=qemu.version,
            folder=Path(folder),
        )
        payload = image.payload(program, {}, jobs_text({}, mode="timed", efforts={}, exact_ops={}))
        try:
            raw = boot.run(guest, payload, probe.KVM_TRIAL_LIMIT_S)
        except HostError as error:
            return False, str(error)
        return raw.state == "ok", "" if raw.state == "ok" else f"{raw.state}: {raw.why}"


def survey(kernels: Sequence[Kernel], kvm: str, chosen_qemu: str, programs: Mapping[Arch, Path]) -> Ground:
    """Find QEMU for every architecture and decide between KVM and emulation."""
    arches = sorted({kernel.arch for kernel in kernels})
    qemus = {arch: probe.find_qemu(binary_name(arch), arch, chosen_qemu) for arch in arches}
    first = kernels[0]
    accel, why = probe.decide_accel(
        kvm if len(arches) == 1 else "off",
        qemus[first.arch],
        first.arch,
        paths.cache_dir(),
        lambda: _trial(qemus[first.arch], first, programs[first.arch]),
    )
    return Ground(accel=accel, why=why, qemus=qemus)


def case_metrics(experiment: Experiment, workloads: Mapping[str, Workload]) -> dict[int, tuple[Metric, ...]]:
    """The metrics of every case, by case index."""
    found = {index: workloads[case.workload] for index, case in enumerate(experiment.cases)}
    if isinstance(experiment.plan, plans.Leaks):
        return dict.fromkeys(found, leaks.METRICS)
    if experiment.mode == "exact":
        return {index: exact_metrics(workload.part, workload.parts_per_op) for index, workload in found.items()}
    return {index: workload.metrics for index, workload in found.items()}


def programs_for(kernels: Sequence[Kernel], extra: Sequence[Path]) -> dict[Arch, Path]:
    """The guest binary for every architecture at hand, compiled now if it was not."""
    arches: set[Arch] = {kernel.arch for kernel in kernels}
    wis_dir = extra[0] if extra else None
    return {arch: binary.build(arch, cache=paths.cache_dir(), wis_dir=wis_dir) for arch in sorted(arches)}


def _check_cases(experiment: Experiment, workloads: Mapping[str, Workload]) -> None:
    for case in experiment.cases:
        workload = workloads.get(case.workload)
        if workload is None:
            raise UserError(
                f"case {case.name}: its workload {case.workload!r} is not here; name its folder with --workloads"
            )
        if experiment.mode == "exact" and workload.exact_ops == 0:
            raise UserError(f"case {case.name}: its loop never returns, so it has no exact mode; add --timed")


def _reuses(plan: plans.Plan) -> bool:
    """Whether boots of the same identity are taken over; a bisection must not boot the same commit twice."""
    return isinstance(plan, plans.Bisect) or (isinstance(plan, plans.Run | plans.Sweep | plans.Check) and plan.reuse)


def prepare(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    store: Store,
    voice: Voice,
    *,
    extra: Sequence[Path] = (),
    time_budget_s: float | None = None,
    ground: Ground | None = None,
) -> Job:
    """Make ``experiment`` ready to run: programs compiled, machine surveyed, plugin built.

    An exact experiment whose plan says ``reuse`` takes over boots of the same identity from the store.

    Raises:
        UserError: a case whose workload is missing. HostError: no QEMU, no compiler.
    """
    _check_cases(experiment, workloads)
    programs = programs_for(experiment.kernels, extra)
    native = experiment.machine.native
    if ground is None and not native:
        kvm = "off" if experiment.mode == "exact" else experiment.machine.kvm
        ground = survey(experiment.kernels, kvm, experiment.machine.qemu, programs)
    machine = {"accel": "native", "tool": __version__}
    if ground is not None:
        accel = "tcg" if experiment.mode == "exact" else ground.accel
        text = "; ".join(f"{arch} {qemu.text}" for arch, qemu in ground.qemus.items())
        machine = {"accel": accel, "qemu": text, "tool": __version__}
        if experiment.mode == "timed":
            voice.note(f"machine: {ground.why}; QEMU {text}")
    if experiment.mode == "exact" and ground is not None:
        missing = functions.learn(experiment.kernels, ground.qemus, "tcg", programs, voice)
        for label, why in missing.items():
            voice.note(f"{label}: no function names: {why}")
        experiment = functions.noted(store, experiment, missing)
    metrics = case_metrics(experiment, workloads)
    pressed = any(case.pressure for case in experiment.cases)
    cores = os.cpu_count() or 1
    folder = paths.shipped("guest") / "data"
    site = guests.Site(
        experiment=experiment,
        efforts={i: workloads[c.workload].effort(experiment.effort) for i, c in enumerate(experiment.cases)},
        exact_ops={i: workloads[c.workload].exact_ops for i, c in enumerate(experiment.cases)},
        data={name: folder / name for workload in workloads.values() for name in workload.data},
        data_folder=folder,
        programs=pressure.programs([kernel.arch for kernel in experiment.kernels]) if pressed else {},
        binaries=programs,
        qemus={} if ground is None else ground.qemus,
        accel="tcg" if ground is None else ground.accel,
        port=common_port(experiment.kernels, experiment.mode),
        plugin=plugin.build(paths.cache_dir()) if experiment.mode == "exact" else None,
        cache=paths.cache_dir(),
        tmp=paths.cache_dir() / "boots",
        cpu=None,
    )
    return Job(
        experiment=experiment,
        site=site,
        metrics=metrics,
        symbols=functions.known(),
        machine=machine,
        undecided=lambda blocks: answer.undecided(store, experiment, blocks),
        time_budget_s=time_budget_s,
        workers=cores if experiment.mode == "exact" else 1,
        identity=(lambda plan: guests.identity(site, plan)) if experiment.mode == "exact" else None,
        recall=store.identical if _reuses(experiment.plan) else None,
        gaps=experiment.in_steps,
    )
