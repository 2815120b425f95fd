# SPDX-License-Identifier: GPL-2.0-or-later
"""One loop for times and counts: what is booted when, what is stored, and where it ends. Boots are simulated."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, wait
from itertools import count
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kdelta.errors import HostError
from kdelta.experiment import outstanding, runner, schedule
from kdelta.model import BootResult, Case, Experiment, Kernel, OpenCell, PlannedBoot, Quiet, RunResult, plans
from kdelta.store.rows import BootRow

Place = tuple[int, int]


class Shelf:
    """Where boots are kept: the part of a store that running needs."""

    def __init__(self, places: Iterable[Place] = ()) -> None:
        self.places = list(places)
        self.lost: list[Place] = []

    def kept(self, _id: str) -> set[Place]:
        return set(self.places) - set(self.lost)

    def boots(self, _id: str) -> list[BootRow]:
        return []

    def forget(self, _id: str, places: Collection[Place]) -> None:
        assert not places

    def redefine(self, _id: str, change: Callable[[Experiment], Experiment]) -> Experiment:
        raise AssertionError("no boot was dropped")

    def save_boot(self, _id: str, boot: BootResult) -> None:
        place = (boot.plan.block, boot.plan.slot)
        assert place not in self.places, "a place in the schedule is stored once"
        self.places.append(place)
        if boot.state == "lost":
            self.lost.append(place)


def kernel(label: str) -> Kernel:
    return Kernel(label=label, spec=label, release=label, image_path="/i", image_sha256=label)


def experiment(mode: str = "timed", blocks: int = 4, looks: tuple[int, ...] = ()) -> Experiment:
    return Experiment(
        id="x", mode=cast(Any, mode), kernels=(kernel("a"), kernel("b")), blocks=blocks, looks=looks,
        cases=(Case(workload="p"), Case(workload="q")), plan=plans.Compare(),
    )  # fmt: skip


def still(case: int, *kernels: int) -> tuple[OpenCell, ...]:
    return tuple(OpenCell(case, "default", kernel) for kernel in kernels)


def job(
    asked: Experiment, undecided: Callable[[int], tuple[OpenCell, ...]] = lambda _: still(0, 0, 1), **more: Any
) -> runner.Job:
    return runner.Job(
        experiment=asked, site=cast(Any, None), work=lambda plan: str(plan), runs=lambda _plan, _raw: (), machine={},
        undecided=undecided, **more,
    )  # fmt: skip


class Machine:
    """Simulated boots: ``made`` in the order in which they began, ``most`` at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[PlannedBoot] = []
        self.now = self.most = 0
        self.state: dict[int, str] = {}
        self.fails_at = -1
        self.killed: list[Place] = []  # once for every time that the place is in it
        self._lock = threading.Lock()
        self.meet: threading.Barrier | None = None
        monkeypatch.setattr(runner, "boot", self.boot)

    def boot(self, _job: runner.Job, plan: PlannedBoot) -> BootResult:
        with self._lock:
            self.made.append(plan)
            self.now += 1
            self.most = max(self.most, self.now)
            if len(self.made) - 1 == self.fails_at:
                raise HostError("the disk is full")
        if self.meet is not None:
            self.meet.wait(10)
        with self._lock:
            self.now -= 1
            if (plan.block, plan.slot) in self.killed:
                self.killed.remove((plan.block, plan.slot))
                return BootResult(plan=plan, state="lost", why="the machine ended with status -9")
        return BootResult(plan=plan, state=cast(Any, self.state.get(plan.kernel, "ok")), why="why")

    def places(self) -> list[Place]:
        return [(plan.block, plan.slot) for plan in self.made]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def planned(asked: Experiment) -> list[Place]:
    return [(plan.block, plan.slot) for block in schedule.blocks(asked) for plan in block]


@pytest.mark.parametrize("mode", ["timed", "exact"])
def test_what_is_not_stored_is_booted_in_the_order_of_the_plan(machine: Machine, mode: str) -> None:
    asked = experiment(mode)
    shelf = Shelf([(0, 1), (2, 0)])
    runner.execute(job(asked), shelf, Quiet())
    assert machine.places() == [place for place in planned(asked) if place not in ((0, 1), (2, 0))]
    assert sorted(shelf.places) == sorted(planned(asked))


def test_the_blocks_between_two_looks_are_one_segment() -> None:
    assert list(outstanding.segments(experiment(blocks=20, looks=(8, 12, 16, 20)))) == [
        range(8), range(8, 12), range(12, 16), range(16, 20),
    ]  # fmt: skip
    assert list(outstanding.segments(experiment(blocks=3))) == [range(3)]
    assert list(outstanding.segments(experiment(blocks=0))) == []
    assert list(outstanding.segments(experiment(blocks=6, looks=(8,)))) == [range(6)]


@pytest.mark.parametrize(("mode", "workers"), [("timed", 1), ("exact", 1), ("exact", 3)])
def test_a_look_boots_on_what_is_open_and_ends_when_nothing_is(machine: Machine, mode: str, workers: int) -> None:
    looked: list[tuple[int, int]] = []

    def undecided(blocks: int) -> tuple[OpenCell, ...]:
        looked.append((blocks, len(shelf.places)))
        return still(1, 0, 1) if blocks == 2 else ()

    shelf = Shelf()
    runner.execute(job(experiment(mode, 8, (2, 4, 8)), undecided, workers=workers), shelf, Quiet())
    assert looked == [(2, 4), (4, 8)], "a look is made when all boots before it are stored, and none after it is begun"
    assert {plan.cases for plan in machine.made if plan.block < 2} == {()}
    assert {plan.cases for plan in machine.made if plan.block >= 2} == {(1,)}
    assert max(plan.block for plan in machine.made) == 3


def test_a_kernel_that_no_open_cell_compares_is_booted_no_more(machine: Machine) -> None:
    shelf = Shelf()
    runner.execute(job(experiment("exact", 8, (5, 8)), lambda _: (*still(0, 0), *still(1, 0))), shelf, Quiet())
    assert {plan.kernel for plan in machine.made if plan.block >= 5} == {0}
    assert {plan.cases for plan in machine.made if plan.block >= 5} == {(0, 1)}
    assert len(shelf.places) == 5 * 2 + 3


def test_counts_use_all_workers_and_times_one(machine: Machine) -> None:
    machine.meet = threading.Barrier(3)
    runner.execute(job(experiment("exact", 6), workers=3), Shelf(), Quiet())
    assert machine.most == 3 and len(machine.made) == 12
    machine.meet, machine.most = None, 0
    runner.execute(job(experiment("timed", 6)), Shelf(), Quiet())
    assert machine.most == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_a_seed_whose_machine_was_killed_is_measured_again_once(machine: Machine, workers: int) -> None:
    machine.killed = [(1, 0), (3, 1), (3, 1)]
    shelf = Shelf()
    runner.execute(job(experiment("exact", 5), workers=workers), shelf, Quiet())
    assert sorted(shelf.places) == sorted(planned(experiment("exact", 5)))
    assert (machine.places().count((1, 0)), machine.places().count((3, 1))) == (2, 2)
    assert shelf.lost == [(3, 1)], "and is stored as what it is when that was lost too"


def test_a_seed_of_which_one_guest_was_killed_is_measured_again_once(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_lost(_job: runner.Job, plan: PlannedBoot) -> BootResult:
        machine.made.append(plan)
        runs = (RunResult(case=0, state="ok"), RunResult(case=1, state="lost", why="the machine ended"))
        return BootResult(plan=plan, state="ok", runs=runs)

    monkeypatch.setattr(runner, "boot", one_lost)
    shelf = Shelf()
    runner.execute(job(experiment("exact", 1)), shelf, Quiet())
    assert machine.places() == [(0, 0), (0, 0), (0, 1), (0, 1)] and shelf.places == [(0, 0), (0, 1)]


def test_a_lost_boot_of_a_timed_block_waits_for_a_resume(machine: Machine) -> None:
    machine.killed = [(1, 0)]
    shelf = Shelf()
    runner.execute(job(experiment("timed")), shelf, Quiet())
    assert shelf.lost == [(1, 0)] and machine.places().count((1, 0)) == 1
    shelf.places.remove((1, 0))  # as the store replaces it
    runner.execute(job(experiment("timed")), shelf, Quiet())
    assert machine.places().count((1, 0)) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_after_an_error_nothing_new_is_begun_and_what_was_stored_stays(machine: Machine, workers: int) -> None:
    machine.fails_at = 3
    shelf = Shelf()
    with pytest.raises(HostError, match="disk is full"):
        runner.execute(job(experiment("exact", 6), workers=workers), shelf, Quiet())
    assert len(shelf.places) >= 2 and len(machine.made) <= 3 + workers
    machine.fails_at, machine.now = -1, 0
    runner.execute(job(experiment("exact", 6), workers=workers), shelf, Quiet())
    assert len(shelf.places) == 12


def all_of_them(running: Iterable[Future[BootResult]], return_when: str) -> tuple[list[Future[BootResult]], None]:
    """All boots have ended, and the one that failed is looked at first."""
    return sorted(wait(running).done, key=lambda future: future.exception() is None), None


@pytest.mark.parametrize("at_once", [True, False])
def test_boots_that_end_well_beside_one_that_fails_are_kept(monkeypatch: pytest.MonkeyPatch, at_once: bool) -> None:
    here, told = threading.Barrier(3), threading.Event()

    def boot(_job: runner.Job, plan: PlannedBoot) -> BootResult:
        here.wait(10)
        if (plan.block, plan.slot) == (1, 0):
            told.set()
            raise HostError("the disk is full")
        told.wait(10)
        if not at_once:
            time.sleep(0.2)  # so that the error is seen first
        return BootResult(plan=plan, state="ok")

    monkeypatch.setattr(runner, "boot", boot)
    if at_once:
        monkeypatch.setattr(runner, "wait", all_of_them)
    shelf = Shelf()
    with pytest.raises(HostError, match="disk is full"):
        runner.execute(job(experiment("exact", 6), workers=3), shelf, Quiet())
    assert sorted(shelf.places) == [(0, 0), (0, 1)]


def test_an_interruption_does_not_wait_for_boots_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    here, over = threading.Barrier(2), threading.Event()

    def boot(_job: runner.Job, plan: PlannedBoot) -> BootResult:
        here.wait(10)
        if plan.slot:
            over.wait(10)
        else:
            raise KeyboardInterrupt
        return BootResult(plan=plan, state="ok")

    monkeypatch.setattr(runner, "boot", boot)
    shelf = Shelf()
    with pytest.raises(KeyboardInterrupt):
        runner.execute(job(experiment("exact", 6), workers=2), shelf, Quiet())
    assert not over.is_set() and not shelf.places
    over.set()


def test_no_block_is_begun_that_would_end_after_the_budget(machine: Machine) -> None:
    ticks: Iterator[int] = count(0, 10)  # each look at the clock is 10 s later
    runner.execute(job(experiment(blocks=20), time_budget_s=45.0), Shelf(), Quiet(), lambda: float(next(ticks)))
    blocks = {plan.block for plan in machine.made}
    assert blocks == set(range(len(blocks))) and 0 < len(blocks) < 6
    assert len(machine.made) == 2 * len(blocks), "a block that was begun is finished"


def test_of_counts_a_budget_ends_whole_seeds_and_none_before_the_first_look(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "room", lambda: 1)  # so that guests go kernel by kernel where that may be
    ticks: Iterator[int] = count(0, 10)
    asked = experiment("exact", 12, looks=(5, 8))
    runner.execute(job(asked, time_budget_s=15.0), Shelf(), Quiet(), lambda: float(next(ticks)))
    five = [(block, 0) for block in range(5)] + [(block, 1) for block in range(5)]
    assert machine.places() == [*five, (5, 0), (5, 1)]


def test_a_kernel_that_never_boots_ends_a_comparison(machine: Machine) -> None:
    machine.state = {1: "panicked"}
    shelf = Shelf()
    runner.execute(job(experiment(blocks=20)), shelf, Quiet())
    assert sum(plan.kernel == 1 for plan in machine.made) == outstanding.STRIKES


def test_a_kernel_that_booted_once_is_never_given_up(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = experiment(blocks=8)
    first = next(plan for plan in schedule.block(asked, 0) if plan.kernel == 1)
    real = machine.boot

    def boot(of: runner.Job, plan: PlannedBoot) -> BootResult:
        machine.state = {} if plan == first else {1: "lost"}
        return real(of, plan)

    monkeypatch.setattr(runner, "boot", boot)
    runner.execute(job(asked), Shelf(), Quiet())
    assert len(machine.made) == 16


def test_a_boot_that_cannot_be_made_is_stored_with_its_reason() -> None:
    plan = PlannedBoot(block=0, slot=0, kernel=0)
    made = runner.boot(replace(job(experiment()), work=lambda _: "no function names"), plan)
    assert made == BootResult(plan=plan, state="unsupported", why="no function names")


def test_an_experiment_of_nothing_is_refused() -> None:
    with pytest.raises(HostError, match="no case or no kernel"):
        runner.execute(job(replace(experiment(), kernels=())), Shelf(), Quiet())
