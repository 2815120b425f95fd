# SPDX-License-Identifier: GPL-2.0-or-later
"""Clocks that are wrong: of hosts, and the database's, put back while the fleet is at work."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from kdelta.errors import HostError
from kdelta.fleet import asking, status
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.queue import Queue
from kdelta.fleet.tend import tend
from kdelta.fleet.units import Unit
from kdelta.model import BootResult
from kdelta.store.store import Store
from unit.fleet.fleet_builders import ALL, QUICK, Hosts, ask, asked, boot_of, host, state


def later(ledger: Ledger, *columns: str) -> None:
    """What was written while the database's clock was an hour ahead: it is put back by that now."""
    with ledger._using() as connection:
        for column in columns:
            table, _, name = column.partition(".")
            connection.execute(text(f"UPDATE {table} SET {name} = {name} + interval '1 hour'"))


def test_clocks_of_hosts_decide_nothing(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """One lives in 1970, one in 2100; both say the same second for all that they boot."""
    store.create(asked(mode="timed", blocks=6, created_at="2100-01-01T00:00:00+00:00"))
    lost = boot_of(next(iter(asked_plans())), state="lost", runs=(), started_at="1970-01-01T00:00:00+00:00")
    store.save_boot("first", lost)
    ledger.open("first", ask("timed", again=(lost.started_at,)))

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            workers = []
            for name, year in (("h", 1970), ("future", 2100)):
                worker = hosts.worker(queue, host(name))
                worker.measure = stamped(worker.measure, f"{year}-01-01T00:00:00+00:00")
                workers.append(worker)
            await hosts.run(*workers, until=lambda: state(ledger) != "open")

    asyncio.run(run())
    assert state(ledger) == "done"
    assert store.done("first") == {(block, slot) for block in range(6) for slot in range(2)}
    assert sorted(unit for _, unit in hosts.measured) == [str(block) for block in range(6)]
    assert {row.state for row in store.boots("first")} == {"ok"}


def asked_plans() -> Sequence[Any]:
    from kdelta.experiment import schedule

    return schedule.block(asked(mode="timed"), 0)


def stamped(measure: Any, at: str) -> Any:
    async def measured(unit: Unit, asked_for: Any) -> list[BootResult]:
        return [replace(boot, started_at=at) for boot in await measure(unit, asked_for)]

    return measured


def test_a_database_whose_clock_is_put_back_is_looked_after(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """Else nothing would be queued for as long as it was put back."""
    store.create(asked(blocks=1))
    ledger.open("first", ask())

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            await asking._once(store, ledger, "first")
            later(ledger, "fleet_tended.at")
            await hosts.run(hosts.worker(queue, host("a")), until=lambda: state(ledger) != "open")

    asyncio.run(run())
    assert state(ledger) == "done" and store.done("first") == {(0, 0), (0, 1)}


def test_who_died_before_the_clock_was_put_back_is_found_dead(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    store.create(asked(blocks=1))
    ledger.open("first", ask())
    hosts.pace = replace(QUICK, dead_after_s=1.0)

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            await asking._once(store, ledger, "first")
            gone = await queue.enlist()
            ledger.enlist(gone, host("gone"))
            assert await queue.take(["first"], "gone", gone) is not None
            later(ledger, "procrastinate_workers.last_heartbeat")
            await hosts.run(hosts.worker(queue, host("b")), until=lambda: state(ledger) != "open")

    asyncio.run(run())
    assert state(ledger) == "done" and store.done("first") == {(0, 0), (0, 1)}


@contextmanager
def started(ledger: Ledger, since: str) -> Iterator[Ledger]:
    """The ledger of a database that says it was started ``since`` now."""
    with ledger._using() as connection:
        connection.execute(
            text(
                "CREATE OR REPLACE FUNCTION public.pg_postmaster_start_time() RETURNS timestamptz LANGUAGE sql "
                f"AS $$ SELECT now() + interval '{since}' $$"
            )
        )
        connection.execute(text("ALTER ROLE kdelta SET search_path = public, pg_catalog"))
    try:
        other = Ledger(ledger.url)
        yield other
        other.close()
    finally:
        with ledger._using() as connection:
            connection.execute(text("ALTER ROLE kdelta RESET search_path"))


def test_a_database_that_was_started_before_its_clock_was_put_back_is_up(ledger: Ledger) -> None:
    with started(ledger, "1 hour") as other:
        assert other.up_s() > 1e6


@pytest.mark.parametrize(("since", "alive"), [("-5 seconds", True), ("-1 hour", False), ("1 hour", False)])
def test_nobody_is_taken_for_dead_because_the_database_was_away(
    ledger: Ledger, store: Store, since: str, alive: bool
) -> None:
    """Who waited was told that no worker is running, when all of them were about to be heard again."""

    async def enlist() -> None:
        async with Queue(ledger.url) as queue:
            ledger.enlist(await queue.enlist(), host("h"))
        with ledger._using() as connection:
            connection.execute(text("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '2 minutes'"))

    asyncio.run(enlist())
    with started(ledger, since) as other:
        assert bool(asking.alive(other.hosts())) is alive
        (shown,) = status.look(store, other).hosts
        assert shown.dead is not alive and shown.silent_s > 100


def test_what_fails_under_a_clock_that_is_put_back_ends(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """Failures are told from those before it was asked by time."""
    store.create(asked())
    ledger.open("first", ask())
    ledger.failed("first", "0.0", "h", "long ago")
    later(ledger, "fleet_failure.at", "fleet_ask.asked_at")
    ledger.open("first", ask())
    names = itertools.count()

    def broken(_unit: Unit) -> None:
        raise HostError(f"the disk is full {next(names)}")

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            ledger.enlist(await queue.enlist(), host("h"))
            failed_on = ledger.failed("first", "0.0", "x", "now")
            assert failed_on is not None and failed_on.experiment == {"x"}, "not what was before it was asked"
            await tend(queue, ledger, hosts.plan)
            await hosts.run(hosts.worker(queue, host("h"), broken), until=lambda: state(ledger) != "open")

    asyncio.run(run())
    assert state(ledger) == "failed" and "the disk is full" in ledger.asked("first")[0].why
    assert store.done("first") != ALL
