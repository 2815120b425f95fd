# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives schedule -> boots -> store. Every finished boot is stored before the next one starts.

Resuming is running again: the plan is a function of the stored experiment, finished boots are skipped, and what a
sequential look decided is read back, never decided twice. Times and counts go through one loop: between two looks, the
boots of all blocks (of counts: seeds), as many at once as do not disturb each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import HostError
from kdelta.experiment import outstanding, schedule
from kdelta.experiment.boot_once import boot_once
from kdelta.experiment.boot_result import boot_result, comes_again
from kdelta.experiment.forks import Forks, room
from kdelta.experiment.work import CannotPause, Site, Work
from kdelta.machine import hostfacts
from kdelta.machine.boot import RawBoot
from kdelta.machine.slots import Slots
from kdelta.model import BootResult, Experiment, OpenCell, PlannedBoot, Progress, RunResult
from kdelta.results import definitions
from kdelta.store.rows import BootRow


class BootStore(Protocol):
    """The part of the store that running needs."""

    def kept(self, experiment_id: str) -> set[tuple[int, int]]: ...
    def save_boot(self, experiment_id: str, boot: BootResult) -> None: ...
    def boots(self, experiment_id: str) -> Sequence[BootRow]: ...
    def forget(self, experiment_id: str, places: Collection[tuple[int, int]]) -> None: ...
    def redefine(self, experiment_id: str, change: Callable[[Experiment], Experiment]) -> Experiment: ...


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Job(Struct, frozen=True, kw_only=True):
    """An experiment made ready to run (prepare.py).

    ``work`` is what a planned boot does, or why it cannot be made at all; ``runs`` reads what came of it.
    ``undecided``: the cells that are open after so many blocks; none of them ends the experiment.
    """

    experiment: Experiment
    site: Site
    work: Callable[[PlannedBoot], Work | str]
    runs: Callable[[PlannedBoot, RawBoot], tuple[RunResult, ...]]
    machine: Mapping[str, str]
    undecided: Callable[[int], tuple[OpenCell, ...]]
    time_budget_s: float | None = None
    workers: int = 1  # boots at once
    slots: Slots | None = None  # guests at once, over all boots
    forks: Forks | None = None  # guests of counts that boots share
    gaps: bool = False  # timed: a kernel that does not boot is left out of the further blocks, and not the end
    identity: Callable[[PlannedBoot], str] | None = None  # exact: see boot_once.identity
    # a stored boot of this identity and the experiment it is from, where boots may be taken over
    recall: Callable[[str], tuple[str, BootResult] | None] | None = None
    now: Callable[[], datetime] = _utc_now


def boot(job: Job, plan: PlannedBoot) -> BootResult:
    """One planned boot, made and read; storing it is the caller's.

    Raises:
        CannotPause: all guests of the experiment have to boot cold. HostError: as ``boot_once``.
    """
    work = job.work(plan)
    identity = {"identity": job.identity(plan)} if job.identity else {}
    if isinstance(work, str):
        return BootResult(plan=plan, state="unsupported", why=work, machine=identity)
    started_at = job.now().isoformat(timespec="seconds")
    before = hostfacts.snapshot()
    raw = boot_once(replace(job.site, slots=job.slots, forks=job.forks, alike=True), work)
    return boot_result(
        plan,
        raw,
        job.runs(plan, raw),
        machine={**job.machine, **identity},
        facts=dict(raw.facts) if job.site.lab else hostfacts.during(before, hostfacts.snapshot()),
        started_at=started_at,
    )


def taken_over(job: Job, plan: PlannedBoot) -> BootResult | None:
    """What was measured before under the identity of ``plan``, marked with where it is from; None where nothing was.

    Nor where the host may have had a part in what became of it.
    """
    if job.recall is None or job.identity is None or (found := job.recall(job.identity(plan))) is None:
        return None
    name, known = found
    if not comes_again(known, len(job.experiment.cases)):
        return None
    source = {"taken_from": f"{name} {known.plan.block}.{known.plan.slot}"}
    return replace(known, plan=plan, machine={**known.machine, **source})


def execute(job: Job, store: BootStore, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
    """Run every boot of the plan that is not stored yet, or was lost.

    Raises:
        HostError: QEMU, the compiler or the disk failed; stored boots stay.
        CannotPause: as ``boot``.
    """
    if not job.experiment.cases or not job.experiment.kernels:
        raise HostError("the experiment has no case or no kernel")
    _Run(job, store, progress, clock).all_segments()


class _Here(Executor):
    """One boot at a time, in this thread, where Ctrl-C reaches it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def workers(count: int) -> Iterator[Executor]:
    """So many boots at once; after an error no further one is begun, nor waited for here."""
    pool = _Here() if count <= 1 else ThreadPoolExecutor(max_workers=count)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _may_wait(error: BaseException) -> bool:
    """Whether boots under way are worth their time after ``error``: what is to be booted cold is dropped with all."""
    return isinstance(error, Exception) and not isinstance(error, CannotPause)


class _Run:
    """One call of ``execute``: what is stored, who failed, and whether it has ended early."""

    def __init__(self, job: Job, store: BootStore, progress: Progress, clock: Callable[[], float]) -> None:
        self.job = replace(job, slots=Slots(job.workers)) if job.workers > 1 else job
        self.store, self.progress, self.clock = store, progress, clock
        self.experiment = job.experiment
        self.finished = store.kept(job.experiment.id)
        self.again: set[tuple[int, int]] = set()  # lost seeds that were measured a second time
        self.worked: set[int] = set()
        self.failed: dict[int, int] = {}
        self.start, self.blocks = clock(), 0
        self.ended = False
        self.planned = self.experiment.blocks * len(schedule.block(self.experiment, 0))

    def all_segments(self) -> None:
        """Look, boot what is open until the next look, and so on; twice where boots of another kdelta were dropped."""
        stale = self._stale()
        with self._forks(), workers(self.job.workers) as pool:
            if not self._through(pool, stale):
                self.store.forget(self.experiment.id, stale)
                self.finished -= stale
                if not self.finished:  # what it says of its boots was true of those
                    self.experiment = self.store.redefine(self.experiment.id, definitions.as_booted_now)
                self.progress.note(
                    f"{len(stale)} boots were counted with another guest program, plugin or QEMU: they are made again"
                )
                self._through(pool, set())

    @contextmanager
    def _forks(self) -> Iterator[None]:
        """Where seeds are counted, the guests that their boots share, until the last of them."""
        if self.experiment.mode != "exact" or self.experiment.blocks == 1:
            yield
            return
        with Forks(room()) as forks:
            self.job = replace(self.job, forks=forks)
            yield
        if forks.failed:
            self.progress.note(
                f"guests that were not forked but restored one by one: {len(forks.failed)} ({forks.failed[0]}); their"
                " counts are the same, and take longer"
            )

    def _stale(self) -> set[tuple[int, int]]:
        """The stored exact boots that would count differently now: they cannot stand beside new ones.

        An imported experiment that nobody vouched for is not resumed, and its identities are another host's.
        """
        if self.job.identity is None or self.experiment.imported or not self.finished:
            return set()
        stale = set()
        for row in self.store.boots(self.experiment.id):
            plan = PlannedBoot(
                block=row.block, slot=row.slot, kernel=row.kernel, mitigations=row.mitigations, cases=row.cases
            )
            if row.machine.get("identity") != self.job.identity(plan):
                stale.add((row.block, row.slot))
        return stale & self.finished

    def _through(self, pool: Executor, stale: set[tuple[int, int]]) -> bool:
        """All segments once; False as soon as a boot is missing while others are ``stale``."""
        for segment in outstanding.segments(self.experiment):
            still: tuple[OpenCell, ...] = ()
            if segment.start in self.experiment.looks:
                still = self.job.undecided(segment.start)
                if not still:
                    self.progress.note(f"nothing is left to decide after {segment.start} {self.unit}s")
                    return True
            missing = outstanding.missing(self.experiment, segment, still, self.finished)
            if stale and missing:
                return False
            if self.job.recall is not None:
                missing = self._take_over(missing)
            if self.experiment.mode == "exact":  # how far counts must go shows at each look
                self.planned = len(self.finished) + len(missing)
            self._segment(pool, self._open(segment, still))
            if self.ended:
                return True
        self.progress.boots(self.planned, self.planned, "done")
        return True

    @property
    def unit(self) -> str:
        """What a block is in words."""
        return "seed" if self.experiment.mode == "exact" else "block"

    def _open(self, segment: range, still: tuple[OpenCell, ...]) -> Iterator[PlannedBoot]:
        """The boots of ``segment`` that are not stored, asked for one by one as there is room for them."""
        if self._kernel_by_kernel(segment):
            yield from self._in_turn(segment, still)
            return
        for index in segment:
            if self._over_budget():
                self.progress.note(f"the time budget ends after {index} of {self.experiment.blocks} {self.unit}s")
                self.ended = True
                return
            for plan in schedule.block(self.experiment, index, still):
                if (plan.block, plan.slot) not in self.finished:
                    yield plan
                if self.ended:
                    return
            self.blocks += 1

    def _kernel_by_kernel(self, segment: range) -> bool:
        """Whether the guests that boots share are too many to wait all at once; counts have no drift to fear.

        A time budget asks for whole seeds, where it has a say.
        """
        guests = len(self.experiment.kernels) * len(self.experiment.cases)
        whole = self.job.time_budget_s is not None and segment.stop > self._least_blocks()
        return self.job.forks is not None and not whole and guests > self.job.forks.most

    def _least_blocks(self) -> int:
        """So many are made whatever the time budget: before the first look seeds say nothing."""
        return min(self.experiment.looks, default=1) if self.experiment.mode == "exact" else 1

    def _in_turn(self, segment: range, still: tuple[OpenCell, ...]) -> Iterator[PlannedBoot]:
        plans = outstanding.missing(self.experiment, segment, still, self.finished)
        for plan in sorted(plans, key=lambda plan: (plan.kernel, plan.mitigations, plan.block)):
            if self.ended:
                return
            yield plan
        self.blocks += len(segment)

    def _over_budget(self) -> bool:
        """Whether a further block would end after the time that was given."""
        spent, budget = self.clock() - self.start, self.job.time_budget_s
        return budget is not None and self.blocks >= self._least_blocks() and spent + spent / self.blocks > budget

    def _segment(self, pool: Executor, plans: Iterator[PlannedBoot]) -> None:
        running: dict[Future[BootResult], PlannedBoot] = {}
        while True:
            starting = list(islice(plans, max(1, self.job.workers) - len(running)))
            if not starting and not running:
                return
            names = ", ".join(self._name(plan) for plan in (*running.values(), *starting))
            self.progress.boots(len(self.finished), self.planned, names)
            running |= {pool.submit(boot, self.job, plan): plan for plan in starting}
            ready, _ = wait(running, return_when=FIRST_COMPLETED)
            if error := next((found for future in ready if (found := future.exception())), None):
                self._keep_good(running if _may_wait(error) else ready)
                raise error
            for future in ready:
                plan, result = running.pop(future), future.result()
                if self._once_more(result):
                    running[pool.submit(boot, self.job, plan)] = plan
                else:
                    self._keep(result)

    def _keep_good(self, ending: Iterable[Future[BootResult]]) -> None:
        """Store the boots that end well although another failed, each as it ends: Ctrl-C need not wait for the rest."""
        for future in as_completed(ending):
            if future.exception() is None and not future.result().cut_short:
                self._keep(future.result())

    def _once_more(self, result: BootResult) -> bool:
        """Whether a seed whose QEMU was killed is measured again at once; of times, it would stand beside its block."""
        place = (result.plan.block, result.plan.slot)
        lost = next((run.why for run in result.runs if run.state == "lost"), result.why)
        if self.experiment.mode != "exact" or not result.cut_short or place in self.again:
            return False
        self.again.add(place)
        self.progress.note(f"{self._name(result.plan)}: lost: {lost}; it is measured again")
        return True

    def _keep(self, result: BootResult) -> None:
        self._save(result)
        if self.experiment.mode == "timed" and self._struck_out(result):
            self.progress.note(f"{self._name(result.plan)}: {result.state}: {result.why}; given up")
            if self.job.gaps:
                self._give_up(result)
            else:
                self.ended = True

    def _save(self, result: BootResult) -> None:
        self.store.save_boot(self.experiment.id, result)
        self.finished.add((result.plan.block, result.plan.slot))

    def _struck_out(self, result: BootResult) -> bool:
        """Count a boot; true when its kernel, of which no boot worked yet, should be given up."""
        kernel = result.plan.kernel
        if result.state == "ok":
            self.worked.add(kernel)
        else:
            self.failed[kernel] = self.failed.get(kernel, 0) + 1
        return kernel not in self.worked and self.failed.get(kernel, 0) >= outstanding.STRIKES

    def _give_up(self, last: BootResult) -> None:
        """Store the further boots of a kernel that does not boot as what they are, not made: a resumed plan knows."""
        for result in outstanding.given_up(self.experiment, last, self.finished):
            self._save(result)

    def _take_over(self, missing: Sequence[PlannedBoot]) -> list[PlannedBoot]:
        """Store what was measured before; returns what was not."""
        known = [boot for plan in missing if (boot := taken_over(self.job, plan)) is not None]
        for boot in known:
            self._save(boot)
        if known:
            self.progress.note(f"{len(known)} of {len(missing)} boots are reused from the store")
        return [plan for plan in missing if (plan.block, plan.slot) not in self.finished]

    def _name(self, plan: PlannedBoot) -> str:
        kernel = self.experiment.kernels[plan.kernel]
        off = " mitigations=off" if plan.mitigations == "off" else ""
        return f"{kernel.label}{off}, {self.unit} {plan.block + 1}"
