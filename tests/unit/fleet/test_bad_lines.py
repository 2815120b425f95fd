# SPDX-License-Identifier: GPL-2.0-or-later
"""A database whose answers get lost: an order that was not answered may have been done, or not."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kdelta.fleet import asking
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.queue import Queue
from kdelta.store.store import Store
from unit.fleet.bad_line import bad_line
from unit.fleet.fleet_builders import Hosts, ask, asked, host, state

_BLOCKS = 8


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory for a socket, whose path has 107 bytes at most."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2, 3))])
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
