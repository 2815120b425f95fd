# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment -> a job that can run: what must hold holds, the machine is surveyed, its kind of boots chosen."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from kdelta import paths
from kdelta.experiment import allowed, alone, boot_once, functions, kinds, known, looks, place, recalled, runner
from kdelta.experiment.hopeless import Remembering
from kdelta.experiment.measure import Measuring
from kdelta.experiment.runner import Job
from kdelta.experiment.work import CannotPause
from kdelta.machine import plugin
from kdelta.model import Experiment, PlannedBoot, Progress
from kdelta.store.store import Store


def run(experiment: Experiment, store: Store, progress: Progress) -> None:
    """Make ``experiment`` ready, and run what is left of it."""
    with alone.measuring(store, experiment.id):
        execute(prepare(experiment, store, progress), store, progress)


def execute(job: Job, store: Store, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
    """Run what is left of an experiment that was made ready: where a kernel cannot be paused, all of it cold.

    The time limit holds for both together.

    Raises:
        HostError: as ``runner.execute``.
    """
    start = clock()
    try:
        runner.execute(job, store, progress)
    except CannotPause as told:
        name = job.experiment.id
        progress.note(f"{told}: all guests are booted for each case and seed, which takes longer")
        store.forget(name, store.done(name))
        cold = store.redefine(name, lambda e: replace(e, machine=replace(e.machine, cold=True)))
        limit_s = job.time_budget_s
        left_s = None if limit_s is None else max(0.0, limit_s - (clock() - start))
        runner.execute(prepare(cold, store, progress, time_budget_s=left_s), store, progress)


def prepare(experiment: Experiment, store: Store, progress: Progress, *, time_budget_s: float | None = None) -> Job:
    """Make ``experiment`` ready to run.

    An exact experiment whose plan says ``reuse`` takes over boots of the same identity from the store.

    Raises:
        UserError: a case whose workload is missing, or a kernel's image that is not the one planned with, or imported.
        HostError: no QEMU, no compiler.
    """
    workloads = allowed.workloads_of(experiment, progress)
    exact = experiment.mode == "exact"
    with ThreadPoolExecutor(1) as beside:
        if exact:  # what went wrong with it is told where it is asked for
            beside.submit(plugin.build, paths.cache_dir())
        here = place.of(experiment, progress)
        if exact and here.guests:
            experiment = functions.learn(store, experiment, here.site, progress)
            experiment = known.note_untyped(store, experiment, progress)
    if not exact and experiment.annotations.floors_percent is None:
        experiment = place.with_floors(store, experiment, here)
    names = known.known(experiment.machine.smp > 1, known.watched(experiment), experiment.kernels)
    kind = kinds.kind_of(experiment, workloads, names)
    identity: Callable[[PlannedBoot], str] | None = None
    boots: kinds.Kind | Remembering = kind
    if exact and isinstance(kind, Measuring):
        identity = lambda plan: boot_once.identity(here.site, kind.work(plan))  # noqa: E731
        boots = Remembering(kind)
    return Job(
        experiment=experiment,
        site=here.site,
        work=boots.work,
        runs=boots.runs,
        machine=here.machine,
        undecided=lambda blocks: looks.undecided(store, store.experiment(experiment.id), blocks),
        time_budget_s=time_budget_s,
        workers=(os.cpu_count() or 1) if exact else 1,
        identity=identity,
        recall=recalled.recalling(store, experiment) if experiment.reuses else None,
        gaps=experiment.in_steps,
    )
