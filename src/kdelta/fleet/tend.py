# SPDX-License-Identifier: GPL-2.0-or-later
"""Looking after the queue: what dead workers had is queued again, and each experiment gets its next units.

Any worker does it, one at a time, and whoever asks. What comes next is read from the store each time, so nothing is
lost with the process that did it last: killed at any instant, the next one finds the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from kdelta.errors import KdeltaError
from kdelta.experiment import looks
from kdelta.fleet import units
from kdelta.fleet.away import is_away
from kdelta.fleet.ledger import Asked, Ledger
from kdelta.fleet.queue import Queue
from kdelta.fleet.units import MOST_DEATHS, Ask, Unit
from kdelta.model import BootResult
from kdelta.store.store import Store

DEAD_AFTER_S = 30.0


# What is to be measured next of an experiment: (units, ""), or ((), why no more will be measured, "" when complete).
Planner = Callable[[str, Ask], tuple[Sequence[Unit], str]]


def planner(store: Store) -> Planner:
    """The one that reads the store, and takes the looks that are due."""

    def plan(name: str, asked: Ask) -> tuple[Sequence[Unit], str]:
        experiment = store.experiment(name)
        boots = store.boots(name)
        finished = units.stored(boots, store.kept(name), asked.again)
        for last in units.struck_out(experiment, boots):
            if not experiment.in_steps:
                return (), f"{experiment.kernels[last.kernel].label}: {last.state}: {last.why}; given up"
            finished |= _give_up(store, name, units.given_up(experiment, last, finished))
        hosts = {boot.block: boot.machine.get("host", "") for boot in boots if boot.started_at}  # not those given up
        return units.next_units(experiment, finished, hosts, lambda n: looks.undecided(store, experiment, n)), ""

    return plan


def _give_up(store: Store, name: str, boots: Sequence[BootResult]) -> set[units.Place]:
    """Store boots that are not made, for whoever looks later."""
    for boot in boots:
        store.save_together(name, [boot])
    return {(boot.plan.block, boot.plan.slot) for boot in boots}


@asynccontextmanager
async def _turn(ledger: Ledger, every_s: float) -> AsyncIterator[bool]:
    """``Ledger.tending`` without holding up the event loop."""
    turn = ledger.tending(every_s)
    mine = await asyncio.to_thread(turn.__enter__)
    try:
        yield mine
    finally:
        await asyncio.to_thread(turn.__exit__, None, None, None)


async def tend(
    queue: Queue,
    ledger: Ledger,
    plan: Planner,
    dead_after_s: float = DEAD_AFTER_S,
    every_s: float = 0.0,
    mine: Callable[[Asked], bool] = lambda _: True,
    worker: int = 0,
) -> list[str]:
    """One round, unless somebody else is at it, or was within ``every_s``; returns what is worth telling.

    Only experiments that are ``mine`` get their next units: another version may read a plan, or take a look, otherwise.
    A ``worker`` that was silent itself does not tell who is dead: what held it up may hold up all.

    Raises:
        Away: the database cannot be reached. HostError: it refuses.
    """
    said: list[str] = []
    async with _turn(ledger, every_s) as turn:
        if not turn:
            return said
        up_s = await asyncio.to_thread(ledger.up_s)
        hosts = {seen.worker: seen for seen in await asyncio.to_thread(ledger.hosts)}
        names = {number: seen.host.name for number, seen in hosts.items()}
        heard = not worker or (worker in hosts and hosts[worker].silent_s <= dead_after_s / 2)
        for lost in await queue.take_back(dead_after_s) if heard and up_s > dead_after_s else ():
            said.append(f"{lost.unit.experiment}: unit {lost.unit.name} is queued again: its worker died")
            died = f"the worker on {names.get(lost.worker or 0, 'a host')} died of it or with it; queued again"
            so_far = await asyncio.to_thread(ledger.failed, lost.unit.experiment, lost.unit.name, "", died)
            if so_far is None:
                await queue.drop(lost.unit.experiment)
            elif so_far.deaths >= MOST_DEATHS:
                why = f"unit {lost.unit.name}: {MOST_DEATHS} workers died of it"
                await asyncio.to_thread(ledger.failed, lost.unit.experiment, lost.unit.name, "", why)
                await _close(queue, ledger, lost.unit.experiment, why)
        await asyncio.to_thread(ledger.forget_gone)
        said += await asyncio.to_thread(ledger.builds.reclaim)
        for asked in await asyncio.to_thread(ledger.asked):
            if mine(asked) and not await queue.unfinished(asked.experiment):
                said += await _next(queue, ledger, plan, asked)
    return said


async def _next(queue: Queue, ledger: Ledger, plan: Planner, asked: Asked) -> list[str]:
    """Queue what comes next of one experiment, or close it."""
    try:
        found, why = await asyncio.to_thread(plan, asked.experiment, asked.ask)
    except KdeltaError as error:  # of this experiment alone: the others go on
        if is_away(error):
            raise
        await _close(queue, ledger, asked.experiment, str(error))
        return [f"{asked.experiment}: {error}"]
    if found:
        await queue.put(found)
        return [f"{asked.experiment}: {len(found)} units queued"]
    await asyncio.to_thread(ledger.close_ask, asked.experiment, "done", why)
    return [f"{asked.experiment}: {why or 'complete'}"]


async def _close(queue: Queue, ledger: Ledger, experiment: str, why: str) -> None:
    await asyncio.to_thread(ledger.close_ask, experiment, "failed", why)
    await queue.drop(experiment)
