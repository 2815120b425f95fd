# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives schedule -> machine -> store. Every finished boot is stored before the next one starts.

Resuming is running again: the plan is a function of the stored experiment, finished boots are skipped, and what a
sequential look decided is read back, never decided twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution.profiles import Symbols
from kdelta.errors import HostError
from kdelta.experiment import schedule
from kdelta.experiment.boot_result import boot_result
from kdelta.machine import guests, hostfacts
from kdelta.machine.boot import RawBoot
from kdelta.model import BootResult, Experiment, Kernel, Metric, PlannedBoot

_STRIKES = 2  # boots of one kernel that may fail before the experiment gives it up


class Events(Protocol):
    """What a front end wants to hear."""

    def boots(self, done: int, planned: int, what: str) -> None:
        """``done`` of ``planned`` boots are stored; ``what`` runs now."""

    def note(self, text: str) -> None:
        """One line worth telling."""


class BootStore(Protocol):
    """The part of the store that running needs."""

    def done(self, experiment_id: str) -> set[tuple[int, int]]: ...
    def save_boot(self, experiment_id: str, boot: BootResult) -> None: ...


class Job(Struct, frozen=True, kw_only=True):
    """An experiment made ready to run."""

    experiment: Experiment
    site: guests.Site
    metrics: Mapping[int, Sequence[Metric]]
    symbols: Callable[[Kernel], Symbols | None]
    machine: Mapping[str, str]
    # undecided cases after ``blocks`` complete blocks; () = none left, stop
    undecided: Callable[[int], tuple[int, ...]]
    time_budget_s: float | None = None
    workers: int = 1
    identity: Callable[[PlannedBoot], str] | None = None  # exact: see guests.identity
    # a stored boot of this identity and the experiment it is from, where boots may be taken over
    recall: Callable[[str], tuple[str, BootResult] | None] | None = None
    gaps: bool = False  # timed: a kernel that does not boot is left out of the further blocks, not the end


def _place(experiment: Experiment) -> Callable[[guests.Site, PlannedBoot], RawBoot]:
    if experiment.machine.native:
        return guests.run_native
    return guests.run_exact if experiment.mode == "exact" else guests.run_timed


def boot(job: Job, plan: PlannedBoot) -> BootResult:
    """One planned boot, made and read; storing it is the caller's."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    before = hostfacts.snapshot()
    raw = _place(job.experiment)(job.site, plan)
    kernel = job.experiment.kernels[plan.kernel]
    exact = job.experiment.mode == "exact"
    machine = {**job.machine, "identity": job.identity(plan)} if exact and job.identity else job.machine
    return boot_result(
        job.experiment,
        plan,
        raw,
        metrics=job.metrics,
        symbols=job.symbols(kernel) if exact else None,
        machine=machine,
        facts=hostfacts.during(before, hostfacts.snapshot()),
        started_at=started_at,
    )


def _what(job: Job, plan: PlannedBoot) -> str:
    kernel = job.experiment.kernels[plan.kernel]
    off = " mitigations=off" if plan.mitigations == "off" else ""
    part = "seed" if job.experiment.mode == "exact" else "block"
    return f"{kernel.label}{off}, {part} {plan.block + 1}"


def _taken_over(job: Job, store: BootStore, events: Events, todo: list[PlannedBoot]) -> list[PlannedBoot]:
    """Store what was measured before under the same identity, marked with where it is from; the plans that are left."""
    if job.recall is None or job.identity is None:
        return todo
    left: list[PlannedBoot] = []
    for plan in todo:
        found = job.recall(job.identity(plan))
        if found is None:
            left.append(plan)
            continue
        name, known = found
        source = {"taken_from": f"{name} {known.plan.block}.{known.plan.slot}"}
        store.save_boot(job.experiment.id, replace(known, plan=plan, machine={**known.machine, **source}))
    if len(left) < len(todo):
        events.note(f"{len(todo) - len(left)} of {len(todo)} boots are taken over from the store")
    return left


def _exact(job: Job, store: BootStore, events: Events) -> None:
    """All boots at once on the spare cores: exact counts do not depend on what else runs."""
    finished = store.done(job.experiment.id)
    plans = [plan for block in schedule.blocks(job.experiment) for plan in block]
    todo = [plan for plan in plans if (plan.block, plan.slot) not in finished]
    todo = _taken_over(job, store, events, todo)
    done = len(plans) - len(todo)
    with ThreadPoolExecutor(max_workers=max(1, job.workers)) as pool:
        running: dict[Future[BootResult], PlannedBoot] = {}
        try:
            while todo or running:
                while todo and len(running) < max(1, job.workers):
                    plan = todo.pop(0)
                    running[pool.submit(boot, job, plan)] = plan
                events.boots(done, len(plans), ", ".join(_what(job, plan) for plan in running.values()))
                ready, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ready:
                    del running[future]
                    store.save_boot(job.experiment.id, future.result())
                    done += 1
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    events.boots(done, len(plans), "done")


class _Strikes:
    """Counts failed boots per kernel, to stop early where a kernel plainly does not boot."""

    def __init__(self) -> None:
        self._failed: dict[int, int] = {}
        self._worked: set[int] = set()

    def note(self, boot: BootResult) -> bool:
        """Whether this boot's kernel is now given up."""
        if boot.state == "ok":
            self._worked.add(boot.plan.kernel)
        else:
            self._failed[boot.plan.kernel] = self._failed.get(boot.plan.kernel, 0) + 1
        kernel = boot.plan.kernel
        return kernel not in self._worked and self._failed.get(kernel, 0) >= _STRIKES


def _give_up(job: Job, store: BootStore, last: BootResult, finished: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Store the further boots of a kernel that does not boot as what they are, not made: so a resumed plan knows."""
    places = set()
    for index in range(last.plan.block + 1, job.experiment.blocks):
        for plan in schedule.block(job.experiment, index):
            same = (plan.kernel, plan.mitigations) == (last.plan.kernel, last.plan.mitigations)
            if same and (plan.block, plan.slot) not in finished:
                why = f"not booted, given up after {_STRIKES} boots: {last.why}"
                store.save_boot(job.experiment.id, BootResult(plan=plan, state=last.state, why=why))
                places.add((plan.block, plan.slot))
    return places


def _timed(job: Job, store: BootStore, events: Events, clock: Callable[[], float]) -> None:
    experiment = job.experiment
    finished = store.done(experiment.id)
    strikes, start, measured = _Strikes(), clock(), 0
    cases: tuple[int, ...] = ()
    per_block = len(schedule.block(experiment, 0))
    for index in range(experiment.blocks):
        if index in experiment.looks:
            cases = job.undecided(index)
            if not cases:
                events.note(f"every case is decided after {index} blocks")
                return
        spent = clock() - start
        if job.time_budget_s is not None and measured and spent + spent / measured > job.time_budget_s:
            events.note(f"the time budget ends after {index} of {experiment.blocks} blocks")
            return
        for plan in schedule.block(experiment, index, cases):
            if (plan.block, plan.slot) in finished:
                continue
            events.boots(index * per_block + plan.slot, experiment.blocks * per_block, _what(job, plan))
            result = boot(job, plan)
            store.save_boot(experiment.id, result)
            if strikes.note(result):
                events.note(f"{_what(job, plan)}: {result.state}: {result.why}; given up")
                if not job.gaps:
                    return
                finished |= _give_up(job, store, result, finished)
        measured += 1
    events.boots(experiment.blocks * per_block, experiment.blocks * per_block, "done")


def execute(job: Job, store: BootStore, events: Events, clock: Callable[[], float] = time.monotonic) -> None:
    """Run every boot of the plan that is not stored yet.

    Raises:
        HostError: QEMU, the compiler or the disk failed; stored boots stay.
    """
    if not job.experiment.cases or not job.experiment.kernels:
        raise HostError("the experiment has no case or no kernel")
    if job.experiment.mode == "exact":
        _exact(job, store, events)
    else:
        _timed(job, store, events, clock)
