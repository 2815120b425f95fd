# SPDX-License-Identifier: GPL-2.0-or-later
"""How the fleet is: its hosts, what they measure, what waits and for how long, what failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.fleet import asking, tend
from kdelta.fleet.ledger import Asked, Failure, Ledger, Seen
from kdelta.fleet.needs import Host, lacking
from kdelta.fleet.queue import Queue, Taken
from kdelta.model import plans
from kdelta.store.rows import BootRow
from kdelta.store.store import Store

_TOLD_FOR = timedelta(days=1)  # failures of what has ended since


class HostState(Struct, frozen=True, kw_only=True):
    """A worker: ``doing`` are the units that it has in hand, as ``EXPERIMENT unit NAME``."""

    name: str
    slots: int
    version: str
    qemu: str
    kvm: bool
    silent_s: float
    dead: bool
    doing: tuple[str, ...]
    machines: tuple[str, ...] = ()  # of a lab, that it drives


class Waiting(Struct, frozen=True, kw_only=True):
    """An experiment that is not complete: boots stored, units until its next look, and who may take them."""

    experiment: str
    boots: int
    waiting: int
    doing: int
    hosts: tuple[str, ...]
    left_s: float | None  # until its next look; None before anything was measured, or where nobody can
    why: str = ""


class Build(Struct, frozen=True, kw_only=True):
    """A kernel that is built for somebody, or waits for a host; ``said`` is what it is at."""

    kernel: str
    host: str
    said: str


class Fleet(Struct, frozen=True, kw_only=True):
    """All of it."""

    hosts: tuple[HostState, ...]
    experiments: tuple[Waiting, ...]
    failures: tuple[Failure, ...]
    builds: tuple[Build, ...] = ()
    schema: str = "kdelta-fleet/1"


def left_s(asked: Asked, units: int, boots: Sequence[BootRow], hosts: Sequence[Host]) -> float | None:
    """How long ``units`` will take if they take as long as those before them, on ``hosts``. Pure."""
    alone = asked.ask.needs.mode == "timed"
    lanes = sum(1 if alone else host.slots for host in hosts)
    made = {boot.block if alone else (boot.block, boot.slot) for boot in boots}
    if not lanes or not made:
        return None
    return sum(boot.elapsed_s for boot in boots) / len(made) * -(-units // lanes)


def _host(seen: Seen, doing: Sequence[Taken]) -> HostState:
    mine = tuple(f"{t.unit.experiment} unit {t.unit.name}" for t in doing if t.worker == seen.worker)
    return HostState(
        name=seen.host.name,
        slots=seen.host.slots,
        version=seen.host.version,
        qemu="; ".join(sorted(set(seen.host.qemus.values()))),
        kvm=seen.host.kvm,
        silent_s=seen.silent_s,
        dead=seen.missed_s > tend.DEAD_AFTER_S,
        doing=mine,
        machines=tuple(sorted(seen.host.machines)),
    )


def _why(asked: Asked, alive: Sequence[Host], able: Sequence[Host]) -> str:
    """Which hosts cannot take its units, and why. Pure."""
    if not able:
        return asking.nobody(asked.ask.needs, alive)
    whys = [f"{host.name}: {why}" for host in alive if (why := lacking(asked.ask.needs, host))]
    return f"not on {'; '.join(whys[:4])}{f' and {len(whys) - 4} more' if len(whys) > 4 else ''}" if whys else ""


async def _look(store: Store, ledger: Ledger) -> Fleet:
    async with Queue(ledger.url, connections=1) as queue:
        seen, doing = ledger.hosts(), await queue.doing()
        found = []
        for asked in ledger.asked():
            counts = await queue.counts(asked.experiment)
            able = [host for host in asking.alive(seen) if not lacking(asked.ask.needs, host)]
            boots = store.boots(asked.experiment)
            found.append(
                Waiting(
                    experiment=asked.experiment,
                    boots=len(boots),
                    waiting=counts["todo"],
                    doing=counts["doing"],
                    hosts=tuple(host.name for host in able),
                    left_s=left_s(asked, sum(counts.values()), boots, able),
                    why=_why(asked, asking.alive(seen), able),
                )
            )
    hosts = tuple(_host(one, doing) for one in seen)
    builds = tuple(
        Build(kernel=row.name, host=row.host if row.state == "doing" else "", said=row.said)
        for row in ledger.builds.unfinished()
    )
    failures = tuple(ledger.failures(ended_within=_TOLD_FOR))
    return Fleet(hosts=hosts, experiments=tuple(found), failures=failures, builds=builds)


def look(store: Store, ledger: Ledger) -> Fleet:
    """The fleet as it is now.

    Raises:
        HostError: the database cannot be reached.
    """
    return asyncio.run(_look(store, ledger))


async def _cancel(ledger: Ledger, names: Sequence[str]) -> None:
    async with Queue(ledger.url, connections=1) as queue:
        for name in names:
            ledger.close_ask(name, "failed", "cancelled")
            await queue.drop(name)


def cancel(store: Store, ledger: Ledger, experiment: str) -> None:
    """Measure no more of ``experiment`` and what was asked for with it; what hosts have in hand is stored.

    Raises:
        UserError: nothing of it is open.
    """
    plan = store.experiment(experiment).plan
    names = [name for name in (experiment, plans.counted_by(plan), plans.traced_beside(plan)) if name]
    found = [asked for name in names for asked in ledger.asked(name)]
    wanted = [asked.experiment for asked in found if asked.state == "open"]
    if not wanted:
        ended = next((f"has ended there: {asked.why or asked.state}" for asked in found), "was not asked of it")
        raise UserError(f"the fleet has nothing to cancel: {experiment} {ended}")
    asyncio.run(_cancel(ledger, wanted))
