# SPDX-License-Identifier: GPL-2.0-or-later
"""How a host measures a unit: the kernels fetched, the experiment made ready once, its boots made one after another."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from msgspec.structs import replace

from kdelta import paths
from kdelta.errors import HostError, KdeltaError, UserError
from kdelta.experiment import prepare, runner
from kdelta.experiment.work import CannotPause
from kdelta.fleet import own_sources, ship
from kdelta.fleet.blobs import Blobs
from kdelta.fleet.units import Ask, Unit
from kdelta.fleet.waiting import Waiting
from kdelta.lab.describe import described, refuse
from kdelta.model import BootResult, Experiment, PlannedBoot, Progress
from kdelta.store.store import Store

_READY = 4  # experiments that stay prepared


class Bench:
    """The measuring of one host; threads may share it."""

    def __init__(
        self, store: Store, blobs: Blobs, host: str, progress: Progress, machines: Mapping[str, str] | None = None
    ) -> None:
        """``machines``: those of a lab that this host drives, by name -> ``FILE:NAME`` here."""
        self._store, self._blobs, self._host, self._progress = store, blobs, host, progress
        self._machines = machines or {}
        self._ready: OrderedDict[tuple[str, ...], runner.Job] = OrderedDict()
        self._lock, self._waiting = Lock(), Waiting()

    def measure(self, unit: Unit, ask: Ask) -> tuple[BootResult, ...]:
        """The boots of ``unit``, not stored.

        Raises:
            UserError: its kernels or cases are not what was planned with.
            HostError: no QEMU, no compiler, the disk is full, or a kernel cannot be fetched.
        """
        try:
            with self._shared(self._job(unit.experiment, ask), ask) as job:
                boots = self._boots(job, unit, ask)
        except KdeltaError:
            self._forget(unit.experiment)
            raise
        except OSError as error:  # of this host alone: another one has room, or may write
            raise HostError(f"{error.filename or paths.cache_dir()}: {error.strerror or error}") from error
        return tuple(
            replace(boot, machine={"host": self._host, **boot.machine, "make": ask.needs.make}) for boot in boots
        )

    def close(self) -> None:
        """Let the guests go that wait for a further unit."""
        self._waiting.rest()

    @contextmanager
    def _shared(self, job: runner.Job, ask: Ask) -> Iterator[runner.Job]:
        """``job`` with the guests that seeds share, as a ``runner`` has them; times have the host's memory alone."""
        if ask.needs.mode != "exact" or job.experiment.blocks == 1:
            self._waiting.rest()
            yield job
            return
        with self._waiting.of(job.experiment.id) as forks:
            yield replace(job, forks=forks)

    def _job(self, name: str, ask: Ask) -> runner.Job:
        with self._lock:  # one thread makes it ready, the others wait
            key = (name, *sorted(ask.kernels))  # a bisection grows by kernels
            if key not in self._ready:
                ship.receive_programs(ask.programs, self._blobs, self._progress)
                asked = self._alike(self._store.experiment(name), ask)
                asked = own_sources.here(asked, ask.sources, self._blobs, self._progress)
                experiment = ship.here(asked, ask.kernels, self._blobs, self._progress)
                self._ready[key] = prepare.prepare(experiment, self._store, self._progress)
            self._ready.move_to_end(key)
            while len(self._ready) > _READY:
                self._ready.popitem(last=False)
            return self._ready[key]

    def _forget(self, name: str) -> None:
        """What failed is made ready anew when it is asked again: a machine that was set aside may be back."""
        with self._lock:
            for key in [key for key in self._ready if key[0] == name]:
                del self._ready[key]

    def _alike(self, experiment: Experiment, ask: Ask) -> Experiment:
        """``experiment`` as all hosts measure it: times under KVM on each of them, or on none; on that machine."""
        if experiment.mode == "exact":
            return experiment
        if not ask.needs.lab:
            return replace(experiment, machine=replace(experiment.machine, kvm="on" if ask.needs.kvm else "off"))
        text = self._machines[ask.needs.lab]
        refuse(described(text), experiment.machine.in_system)
        return replace(experiment, machine=replace(experiment.machine, lab=text))

    def _boots(self, job: runner.Job, unit: Unit, ask: Ask) -> list[BootResult]:
        try:
            return [self._boot(job, plan) for plan in unit.plans]
        finally:
            if ask.needs.lab and job.site.lab is not None:
                job.site.lab.free()

    def _boot(self, job: runner.Job, plan: PlannedBoot) -> BootResult:
        if (known := runner.taken_over(job, plan)) is not None:
            return known
        try:
            result = runner.boot(job, plan)
        except CannotPause as told:  # what other hosts have measured of it meanwhile could not stand beside
            raise UserError(f"{told}: all guests would have to boot cold; leave --fleet out") from None
        if result.cut_short and job.experiment.mode == "exact":
            self._progress.note(f"block {plan.block + 1}, boot {plan.slot + 1}: lost; it is measured again")
            result = runner.boot(job, plan)
        return result
