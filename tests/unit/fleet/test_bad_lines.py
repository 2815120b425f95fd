# SPDX-License-Identifier: GPL-2.0-or-later
"""A database whose answers get lost: an order that was not answered may have been done, or not."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Lock

import pytest

from kdelta.fleet import asking
from kdelta.fleet.away import until_back
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.queue import Queue
from kdelta.store.store import Store
from postgres import Postgres, postgres_binaries
from unit.fleet.bad_line import bad_line
from unit.fleet.fleet_builders import Hosts, ask, asked, host, state

_BLOCKS = 8
_KILLS = 4


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory for a socket, whose path has 107 bytes at most."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2, 3))])
@pytest.mark.full
def test_orders_and_answers_that_are_lost_lose_nothing_and_measure_nothing_twice(
    url: str, store: Store, ledger: Ledger, short: Path, seed: int
) -> None:
    store.create(asked(blocks=_BLOCKS))
    ledger.open("first", ask())
    asking.begin(store, ledger, "first")
    with (
        bad_line(url, short, 0.0, random.Random(seed)) as (broken_url, line),
        Store(broken_url) as theirs,
        closing(Ledger(broken_url)) as books,
    ):
        hosts = Hosts(broken_url, theirs, books)
        line.share = 0.05

        async def run() -> None:
            async with Queue(broken_url) as queue:
                await hosts.run(
                    *(hosts.worker(queue, host(name)) for name in "abc"), until=lambda: state(ledger) != "open"
                )

        asyncio.run(run())
        line.share = 0.0
    assert state(ledger) == "done", hosts.notes
    assert store.done("first") == {(block, slot) for block in range(_BLOCKS) for slot in range(2)}
    assert set(Counter(unit for _, unit in hosts.measured).values()) == {1}, hosts.notes
    assert ledger.failures() == []
    assert not any("dropped here" in note for note in hosts.notes)
    assert all(line.broken[fate, commit] for fate in ("unsent", "unanswered") for commit in (False, True)), line.broken


def test_a_database_that_dies_at_its_commits_loses_nothing(short: Path) -> None:
    """Killed while a COMMIT is on its way there or back, and started again, which recovers what was committed."""
    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("the PostgreSQL server is not installed: apt-get install postgresql")
    server, dice, killing = Postgres(binaries), random.Random(16), Lock()
    killed: list[float] = []

    def kill() -> None:
        if len(killed) < _KILLS and dice.random() < 0.2 and killing.acquire(blocking=False):
            delay_s = dice.uniform(0.0, 0.004)
            time.sleep(delay_s)
            server.stop()
            server.start()
            killed.append(delay_s)
            killing.release()

    try:
        server.start()
        with (
            bad_line(server.url, short, 0.0, dice) as (url, line),
            Store(url) as store,
            closing(Ledger(url)) as ledger,
        ):
            store.create(asked(blocks=_BLOCKS))
            ledger.open("first", ask())
            hosts = Hosts(url, store, ledger)
            line.at_commit = kill
            asyncio.run(asyncio.wait_for(_worked(url, hosts, ledger), 120))
            line.at_commit = None
            with killing:
                pass
            assert ledger.asked("first")[0].state == "done" and ledger.failures() == [], hosts.notes
            assert store.done("first") == {(block, slot) for block in range(_BLOCKS) for slot in range(2)}
            assert set(Counter(unit for _, unit in hosts.measured).values()) == {1}, hosts.notes
        assert len(killed) == _KILLS
        server.stop()
    finally:
        server.remove()


async def _worked(url: str, hosts: Hosts, ledger: Ledger) -> None:
    """Until the experiment has ended, whoever is away meanwhile."""
    async with Queue(url) as queue:
        workers = [hosts.worker(queue, host(name)) for name in "abc"]
        tasks = [asyncio.create_task(worker.run()) for worker in workers]
        while await until_back(lambda: asyncio.to_thread(state, ledger), hosts.notes.append) == "open":
            await asyncio.sleep(0.2)
        for worker in workers:
            worker.stop()
        await asyncio.gather(*tasks)
