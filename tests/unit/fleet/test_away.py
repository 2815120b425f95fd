# SPDX-License-Identifier: GPL-2.0-or-later
"""A database that is away, and tables that are made once."""

from __future__ import annotations

import asyncio

import pytest
from procrastinate import __version__
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, OperationalError

from kdelta.errors import HostError, UserError
from kdelta.fleet import ledger as ledgers
from kdelta.fleet.away import Away, is_away, until_back
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.queue import Queue
from kdelta.store.store import Store


def failed(cause: Exception | None) -> HostError:
    error = HostError("no")
    error.__cause__ = cause
    return error


def test_only_what_a_restart_mends_is_tried_again() -> None:
    assert is_away(Away("gone")) and is_away(failed(OperationalError("q", {}, Exception("gone"))))
    assert not is_away(failed(None)) and not is_away(failed(IntegrityError("q", {}, Exception("twice"))))


def test_an_attempt_is_repeated_until_the_database_is_back() -> None:
    notes: list[str] = []
    tries: list[int] = []

    async def attempt() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise Away("gone")
        return "back"

    assert asyncio.run(until_back(attempt, notes.append)) == "back"
    assert len(tries) == 3 and len(notes) == 1 and "trying again" in notes[0]

    async def never() -> str:
        raise Away("gone")

    async def broken() -> str:
        raise HostError("the disk is full")

    with pytest.raises(Away):
        asyncio.run(until_back(never, notes.append, 0.3))
    with pytest.raises(HostError, match="disk"):
        asyncio.run(until_back(broken, notes.append))


@pytest.mark.full  # the pool of connections gives up after 30 s
def test_a_database_that_is_down_is_away_to_store_and_queue() -> None:
    url = "postgresql://nobody@localhost:1/none"
    with pytest.raises(HostError) as told:
        Store(url)
    assert is_away(told.value)

    async def take() -> None:
        queue = Queue(url)
        queue._app.connector._pool_args["timeout"] = 0.5  # type: ignore[attr-defined]
        async with queue:
            await queue.enlist()

    with pytest.raises(Away):
        asyncio.run(take())


def test_one_looks_after_the_queue_at_a_time(ledger: Ledger, url: str) -> None:
    other = Ledger(url)
    with ledger.tending() as mine, ledger.tending() as again, other.tending() as theirs:
        assert (mine, again, theirs) == (True, False, False)
    with other.tending(60.0) as theirs:
        assert not theirs, "it was looked after just now"
    with other.tending() as theirs:
        assert theirs
    other.close()


def test_another_programs_queue_is_left_alone_and_a_newer_one_refused(url: str, store: Store) -> None:
    with store._writing() as connection:
        connection.execute(text("CREATE TABLE procrastinate_jobs (id int)"))
    with pytest.raises(UserError, match="of another program"):
        Ledger(url)
    with store._writing() as connection:
        connection.execute(text("DROP TABLE procrastinate_jobs"))
    Ledger(url).close()
    with store._writing() as connection:
        assert connection.execute(text("SELECT version FROM fleet_queue")).scalar_one() == __version__
        connection.execute(text("UPDATE fleet_queue SET version = '99.0.0'"))
    with pytest.raises(HostError, match=r"made by procrastinate 99\.0\.0"):
        Ledger(url)


def test_versions_are_compared_as_numbers() -> None:
    assert ledgers._version("03.10.00") == ledgers._version("3.10.0") > ledgers._version("3.9.9")
