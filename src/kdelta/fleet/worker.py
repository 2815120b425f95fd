# SPDX-License-Identifier: GPL-2.0-or-later
"""A host of the fleet at work: takes units that it may measure, stores what came of them, and looks after the queue.

Its number in the queue is its claim: a worker that was silent for too long has lost its units, and drops what it
measured of them. A unit is stored whole or not at all, so nothing is ever stored twice, whoever dies when.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from threading import Thread
from typing import Any, TypeVar

from msgspec import Struct

from kdelta.errors import HostError, KdeltaError, UserError
from kdelta.fleet import tend as tending
from kdelta.fleet import units
from kdelta.fleet.away import is_away, until_back
from kdelta.fleet.ledger import Asked, Ledger
from kdelta.fleet.needs import Host, lacking, unseen
from kdelta.fleet.queue import Queue, Taken, Unlisted
from kdelta.fleet.units import Ask, Unit
from kdelta.model import BootResult

T = TypeVar("T")
_LEAVE_S = 600.0  # for so long a host leaves alone what failed on it
_EXPERIMENTS_TO_FAIL = 3  # in a row: then it is the host's

Measure = Callable[[Unit, Ask], Awaitable[Sequence[BootResult]]]
Beside = Callable[["Worker"], Coroutine[Any, Any, None]]
Acquire = Callable[[str], str]  # a machine of a lab: "", or why it cannot be had now
Release = Callable[[str], None]
Save = Callable[[str, Sequence[BootResult]], Awaitable[bool]]


class Pace(Struct, frozen=True, kw_only=True):
    """How often a worker does what, in seconds. Idle it asks for work after ``poll_s``, later five times as rarely."""

    poll_s: float = 1.0
    beat_s: float = 5.0
    tend_s: float = 10.0
    dead_after_s: float = tending.DEAD_AFTER_S


async def in_thread(work: Callable[[], T]) -> T:
    """``work`` in a thread that does not keep the program from ending; its guests die with it (machine/process.py)."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(give: Callable[[Any], None], value: object) -> None:
        if not future.done():
            give(value)

    def run() -> None:
        try:
            made = work()
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            loop.call_soon_threadsafe(settle, future.set_exception, error)
        else:
            loop.call_soon_threadsafe(settle, future.set_result, made)

    Thread(target=run, daemon=True).start()
    return await future


class Worker:
    """One worker; ``run`` until ``stop``."""

    def __init__(
        self,
        queue: Queue,
        ledger: Ledger,
        host: Host,
        measure: Measure,
        save: Save,
        plan: tending.Planner,
        note: Callable[[str], None],
        pace: Pace,
        dice: random.Random | None = None,
        beside: Beside | None = None,
        places: tuple[Acquire, Release] | None = None,
    ) -> None:
        """``beside`` is what it does besides, as long as it runs; ``places`` are of the machines that it drives."""
        self.queue, self.ledger, self.host, self.pace = queue, ledger, host, pace
        self.measure, self.save, self.plan, self.note = measure, save, plan, note
        self.dice, self.beside = dice or random.Random(), beside
        self.places = places
        self.lab = ""  # the machine of a lab that it has now
        self.kept_from: dict[str, str] = {}  # machines of a lab -> why they could not be had last, "" where they could
        self.number = 0
        self.open: tuple[Asked, ...] = ()
        self.hands: dict[int, Taken] = {}  # by slot
        self.unheard: set[int] = set()  # jobs of this worker's that are in no hand
        self.outlived: set[int] = set()  # jobs in hand with which it was taken for dead
        self.left: dict[tuple[str, str], float] = {}  # what failed here as it was asked, and when
        self.strikes: set[str] = set()  # those since the last unit that did not
        self.lacks: dict[str, str] = {}  # experiments that are not for this host -> what it was heard to lack
        self.stopping, self.due, self.signing = asyncio.Event(), asyncio.Event(), asyncio.Lock()

    def stop(self) -> None:
        """Take nothing more; what is being measured is given back."""
        self.stopping.set()

    async def run(self) -> None:
        """Work until stopped.

        Raises:
            UserError: another machine has its name.
            HostError: units of several experiments in a row failed here: this host is set aside.
        """
        await until_back(self._enlist, self.note)
        tasks = [asyncio.create_task(each) for each in (self._beats(), self._tends(), self.stopping.wait())]
        tasks += [asyncio.create_task(self._slot(number)) for number in range(self.host.slots)]
        if self.beside is not None:
            tasks.append(asyncio.create_task(self.beside(self)))
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            await _ended(tasks)
            await self._release()
            await self._leave()

    async def _enlist(self) -> None:
        """Sign on.

        Raises:
            UserError: another machine has the same name: its boots, and blocks begun there, would be taken for ours.
        """
        heard = [one for one in await asyncio.to_thread(self.ledger.hosts) if one.silent_s <= self.pace.dead_after_s]
        for seen in heard:
            if seen.host.name == self.host.name and seen.host.machine != self.host.machine:
                raise UserError(
                    f"another machine is called {self.host.name} and is at work (heard {seen.silent_s:.0f} s ago): "
                    "give this one another name: kdelta worker --host NAME"
                )
        if beside := unseen(self.host, [seen.host for seen in heard]):
            self.note(beside)
        number = await self.queue.enlist()
        await asyncio.to_thread(self.ledger.enlist, number, self.host)
        self.number = number

    async def describe(self, found: Host) -> None:
        """Say what was found out of this host since it signed on."""
        self.host = found
        await asyncio.to_thread(self.ledger.describe, self.number, found)

    async def _leave(self) -> None:
        """Give back what is in hand. Without the database this is found out by silence."""
        try:
            for taken in [*self.hands.values()]:
                if await self.queue.holds(taken, self.number):
                    await self._give_back(taken)
                    self.note(f"{_name(taken)}: given back")
            await self.queue.leave(self.number)
        except HostError as error:
            self.note(f"not signed off: {error}")

    async def _give_back(self, taken: Taken) -> None:
        """Queue a unit again, unless its experiment ended meanwhile: then nobody waits for it."""
        await self.queue.give_back(taken)
        name = taken.unit.experiment
        if any(asked.state != "open" for asked in await asyncio.to_thread(self.ledger.asked, name)):
            await self.queue.drop(name)

    async def _beats(self) -> None:
        while True:
            await asyncio.sleep(self.pace.beat_s)
            await until_back(self._beat, self.note)

    async def _beat(self) -> None:
        beat = await self.queue.beat(self.number, self.pace.tend_s)
        if beat.jobs is None:
            await self._sign_on_again()
        await self._reconcile(beat.jobs or set())
        if beat.due:
            self.due.set()

    async def _sign_on_again(self) -> None:
        gone = self.number
        async with self.signing:
            if self.number != gone:  # several tasks may find it out, and one is enough
                return
            self.note("this worker was taken for dead; it signs on again")
            for taken in [*self.hands.values()]:  # a unit may end meanwhile
                await self._lives(taken)
            await self._enlist()

    async def _lives(self, taken: Taken) -> None:
        """It died not of this unit: a unit of which workers die is given up."""
        if taken.job not in self.outlived:
            self.outlived.add(taken.job)
            await asyncio.to_thread(self.ledger.survived, taken.unit.experiment, taken.unit.name)

    async def _reconcile(self, jobs: set[int]) -> None:
        """Give back what the queue counts as this worker's, and it never heard of: an answer was lost on the way.

        One that is being taken just now is not in hand yet, so it has to be found so twice.
        """
        held = {taken.job for taken in self.hands.values()}
        lost = jobs - held
        if lost & self.unheard:
            for taken in await self.queue.held_by(self.number):
                if taken.job in lost & self.unheard:
                    self.note(f"{_name(taken)}: given back: it never arrived here")
                    await self._give_back(taken)
        self.unheard = lost - self.unheard

    async def _tends(self) -> None:
        while True:
            await self.due.wait()
            self.due.clear()
            await self._tend(self.pace.tend_s)  # of those that were told so, one does

    async def _tend(self, every_s: float = 0.0) -> None:
        """Look after the queue; at once where an experiment wants its next units, else as one of many."""
        try:
            work = (self.queue, self.ledger, self.plan, self.pace.dead_after_s, every_s)
            for line in await tending.tend(*work, mine=self._alike, worker=self.number):
                self.note(line)
        except HostError as error:  # whoever is next does it; also where another changed the same row first
            if not is_away(error):
                self.note(f"looking after the queue: {error}")

    async def _slot(self, number: int) -> None:
        wait_s = self.pace.poll_s
        while True:
            found = await until_back(lambda: self._take(number), self.note)
            if found is None:
                await asyncio.sleep(wait_s * self.dice.uniform(0.5, 1.0))
                wait_s = min(1.5 * wait_s, 5 * self.pace.poll_s)
                continue
            wait_s = self.pace.poll_s
            self.hands[number] = found[0]
            self.outlived.discard(found[0].job)
            await self._do(*found)
            if number == 0:
                await self._release()
            del self.hands[number]

    async def _take(self, slot: int) -> tuple[Taken, Asked] | None:
        """A unit that this host may measure. Blocks that want the host alone are taken by the first slot."""
        found = await self._first(slot)
        if found is not None:
            return found
        self.open = tuple(await asyncio.to_thread(self.ledger.asked))
        self._tell()
        mine = [asked.experiment for asked in self.open if self._may(asked, slot)]
        if mine and await self.queue.idle(mine):
            await self._tend()
        return await self._first(slot)

    def _tell(self) -> None:
        """Say once of each experiment what this host lacks to take it: else an idle worker looks as if it hung."""
        lacks = {asked.experiment: lacking(asked.ask.needs, self.host) for asked in self.open}
        for name, why in lacks.items():
            if why and self.lacks.get(name) != why:
                self.note(f"{name}: not for this host: {why}")
        self.lacks = lacks

    async def _first(self, slot: int) -> tuple[Taken, Asked] | None:
        mine = await self._to_be_had({a.experiment: a for a in self.open if self._may(a, slot)})
        try:
            taken = await self.queue.take(list(mine), self.host.name, self.number) if mine else None
        except Unlisted:
            taken = None
            await self._sign_on_again()
        if slot == 0 and (taken is None or not mine[taken.unit.experiment].ask.needs.lab):
            await self._release()  # times are of the first slot
        return None if taken is None else (taken, mine[taken.unit.experiment])

    async def _to_be_had(self, mine: dict[str, Asked]) -> dict[str, Asked]:
        """Of ``mine`` those whose machine of a lab, if they want one, is had now; of several machines one."""
        if self.places is not None:
            for lab in sorted({asked.ask.needs.lab for asked in mine.values()} - {""}):
                names = [name for name, asked in mine.items() if asked.ask.needs.lab == lab]
                if not self.lab and await self.queue.waiting(names, self.host.name):
                    why = await asyncio.to_thread(self.places[0], lab)
                    self.lab = "" if why else lab
                    if why and self.kept_from.get(lab) != why:
                        self.note(f"machine {lab} cannot be had now: {why}")
                    self.kept_from[lab] = why
        return {name: asked for name, asked in mine.items() if asked.ask.needs.lab in ("", self.lab)}

    async def _release(self) -> None:
        if self.lab and self.places is not None:
            lab, self.lab = self.lab, ""
            await asyncio.to_thread(self.places[1], lab)

    def _alike(self, asked: Asked) -> bool:
        """Whether this host's kdelta is the one that measures it."""
        return self.host.makes.get(asked.ask.needs.kind) == asked.ask.needs.make

    def _may(self, asked: Asked, slot: int) -> bool:
        needs = asked.ask.needs
        left_at = self.left.get((asked.experiment, asked.at))
        if left_at is not None and asyncio.get_running_loop().time() - left_at < _LEAVE_S:
            return False
        return not lacking(needs, self.host) and (slot == 0 or needs.mode == "exact")

    async def _do(self, taken: Taken, asked: Asked) -> None:
        self.note(f"{_name(taken)}: begun")
        try:
            boots = await until_back(lambda: self.measure(taken.unit, asked.ask), self.note)
            if await until_back(lambda: self._store(taken, boots), self.note):
                await until_back(lambda: self._finish(taken), self.note)
        except KdeltaError as error:
            why = str(error)
            await until_back(lambda: self._failed(taken, asked, why), self.note)

    async def _store(self, taken: Taken, boots: Sequence[BootResult]) -> bool:
        """Store what was measured; false where the unit is not this worker's any more."""
        if not await self.queue.holds(taken, self.number):
            self.note(f"{_name(taken)}: another host measures it by now; dropped here")
            await self._lives(taken)
            return False
        stored = await self.save(taken.unit.experiment, boots)
        self.strikes.clear()
        self.note(f"{_name(taken)}: {'stored' if stored else 'was stored already'}")
        return True

    async def _finish(self, taken: Taken) -> None:
        """What is stored has not failed, whoever finished it: another worker, or this one, whose answer was lost."""
        try:
            await self.queue.finish(taken)
        except HostError as error:
            if is_away(error):
                raise
            self.note(f"{_name(taken)}: was finished already ({error})")

    async def _failed(self, taken: Taken, asked: Asked, why: str) -> None:
        """Let another host try; where none is left, or several failed alike, the experiment cannot go on."""
        name, unit = asked.experiment, taken.unit.name
        self.note(f"{_name(taken)}: {why}")
        failed_on = await asyncio.to_thread(self.ledger.failed, name, unit, self.host.name, why)
        if failed_on is None:  # somebody deleted the experiment: nothing of it is left to do
            await self.queue.drop(name)
            if await self.queue.holds(taken, self.number):
                await self.queue.finish(taken)
            return
        self.left[name, asked.at] = asyncio.get_running_loop().time()
        self.strikes.add(name)
        hosts = [seen.host for seen in await asyncio.to_thread(self.ledger.hosts)]
        able = {host.name for host in hosts if not lacking(asked.ask.needs, host)}
        hopeless = units.hopeless(failed_on.unit, failed_on.experiment, able)
        if hopeless:
            await asyncio.to_thread(self.ledger.close_ask, name, "failed", f"unit {unit} on {self.host.name}: {why}")
            await self.queue.drop(name)
        if await self.queue.holds(taken, self.number):
            await (self.queue.finish(taken) if hopeless else self._give_back(taken))
        if len(self.strikes) >= _EXPERIMENTS_TO_FAIL:
            raise HostError(f"{len(self.strikes)} experiments in a row failed here, the last: {why}; it is set aside")


async def _ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks until all have ended: wait_for of Python 3.11 may swallow a cancellation (python/cpython#86296)."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=1.0)


def _name(taken: Taken) -> str:
    return f"{taken.unit.experiment} unit {taken.unit.name}"
