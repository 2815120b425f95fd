# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment -> a job that can run: programs compiled, machine surveyed, plugin built, its kind of boots chosen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from kdelta import __version__, paths
from kdelta.experiment import boot_once, functions, images, imported, looks, trace
from kdelta.experiment.measure import Measuring, measuring, refuse_unknown
from kdelta.experiment.runner import Job
from kdelta.experiment.survey import Ground, programs_for, site, survey
from kdelta.machine import plugin
from kdelta.model import Experiment, Progress, plans
from kdelta.results import floors
from kdelta.spec.workloads import Workload
from kdelta.store.store import Store


def _reuses(plan: plans.Plan) -> bool:
    """Whether boots of the same identity are taken over; a bisection must not boot the same commit twice."""
    return isinstance(plan, plans.Bisect) or (isinstance(plan, plans.Run | plans.Sweep | plans.Check) and plan.reuse)


def _machine(experiment: Experiment, ground: Ground | None) -> dict[str, str]:
    """What is stored of the machine with every boot."""
    if ground is None:
        return {"accel": "native", "tool": __version__}
    accel = "tcg" if experiment.mode == "exact" else ground.accel
    return {"accel": accel, "qemu": ground.text, "tool": __version__}


def _with_floors(store: Store, experiment: Experiment, ground: Ground | None) -> Experiment:
    """Times are judged by the floors that were calibrated here before they were measured, whatever comes later."""
    found = floors.calibrated(experiment, _machine(experiment, ground), store)
    return store.annotate(experiment.id, lambda known: replace(known, floors_percent=found))


def prepare(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    store: Store,
    progress: Progress,
    *,
    time_budget_s: float | None = None,
) -> Job:
    """Make ``experiment`` ready to run.

    An exact experiment whose plan says ``reuse`` takes over boots of the same identity from the store.

    Raises:
        UserError: a case whose workload is missing, or a kernel's image that is not the one planned with, or imported.
        HostError: no QEMU, no compiler.
    """
    imported.refuse(experiment)
    refuse_unknown(experiment, workloads)
    images.require(experiment, progress)
    exact = experiment.mode == "exact"
    machine = experiment.machine
    programs = programs_for(experiment.kernels, tuple(map(Path, experiment.folders)))
    ground = None
    if not machine.native:
        ground = survey(experiment.kernels, "off" if exact else machine.kvm, machine.qemu, programs)
        if not exact:
            progress.note(f"machine: {ground.why}; QEMU {ground.text}")
    here = site(experiment.kernels, machine, experiment.mode, programs, ground)
    if exact and ground is not None:
        experiment = functions.learn(store, experiment, here, progress)
    if not exact and experiment.annotations.floors_percent is None:
        experiment = _with_floors(store, experiment, ground)
    counter = plugin.build(paths.cache_dir()) if exact else None
    kind = _kind(measuring(experiment, workloads, functions.known(), functions.entered(), counter), workloads)
    identity = None
    if exact and isinstance(kind, Measuring):
        identity = lambda plan: boot_once.identity(here, kind.work(plan))  # noqa: E731
    return Job(
        experiment=experiment,
        site=here,
        work=kind.work,
        runs=kind.runs,
        machine=_machine(experiment, ground),
        undecided=lambda blocks: looks.undecided(store, experiment, blocks),
        time_budget_s=None if exact else time_budget_s,
        workers=(os.cpu_count() or 1) if exact else 1,
        identity=identity,
        recall=store.identical if _reuses(experiment.plan) else None,
        gaps=experiment.in_steps,
    )


def _kind(measured: Measuring, workloads: Mapping[str, Workload]) -> Measuring | trace.Tracing | trace.Holding:
    """How the boots of this kind of experiment work."""
    if not isinstance(measured.experiment.plan, plans.Trace):
        return measured
    if measured.experiment.plan.sets:
        return trace.tracing(measured, workloads)
    return trace.holding(measured)
