# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that hosts build for everybody: one row each, by what decides its product, so that it is built once.

A row is claimed by the number of a worker in the queue; whose number is gone has lost its claim. Kernels of one source
are built one after another, on the host that has its objects, so that baseline and patched differ by the patch alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Literal

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert

State = Literal["waiting", "doing", "done", "failed"]
MOST_DEATHS = 3  # of the workers that built it, until a build is given up
_CLAIMING = 0x6B64_626C  # "kdbl": advisory lock of whoever takes a build

metadata = MetaData()
build = Table(
    "fleet_build",
    metadata,
    Column("key", Text, primary_key=True),  # one_build.Wanted.key, and who builds alike
    Column("source", Text, nullable=False),  # the base that it is built from
    Column("make", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("said", Text, nullable=False),  # what it is at, or why it failed
    Column("host", Text, nullable=False),  # the last one that took it
    Column("worker", BigInteger),
    Column("deaths", Integer, nullable=False),
    Column("failed_on", ARRAY(Text), nullable=False),
    Column("asked_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("carried", Text, nullable=False),  # sha256 of the build in the blob store
    Column("base", Text, nullable=False),  # sha256 of its source's files there
    Column("outcome", LargeBinary),
)
b = build.c

# What a host may take: nothing of a source that is being built, nor of one that another host has built and still could.
_TAKE = text(
    """
    SELECT key FROM fleet_build w WHERE state = 'waiting' AND make = ANY(:makes) AND NOT :host = ANY(failed_on)
    AND NOT EXISTS (SELECT 1 FROM fleet_build o WHERE o.source = w.source AND o.state = 'doing')
    AND (EXISTS (SELECT 1 FROM fleet_build o WHERE o.source = w.source AND o.state = 'done' AND o.host = :host)
         OR NOT EXISTS (SELECT 1 FROM fleet_build o JOIN fleet_host h ON h.name = o.host
                        JOIN procrastinate_workers p ON p.id = h.worker
                        WHERE o.source = w.source AND o.state = 'done' AND NOT o.host = ANY(w.failed_on)))
    ORDER BY asked_at, key LIMIT 1
    """
)


class Row(Struct, frozen=True, kw_only=True):
    """A build as it is in the table; ``said`` is what it is at, or why it failed."""

    key: str
    source: str
    make: str
    name: str
    state: State
    said: str
    host: str
    deaths: int
    carried: str
    base: str
    outcome: bytes | None = None


class Builds:
    """The table of builds. Every method raises as ``using`` does."""

    def __init__(self, using: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._using = using

    def ask(self, asked: Row, again: bool = False) -> None:
        """Have ``asked`` built, unless it is, or is on its way; one that failed is tried again, all with ``again``."""
        row = {name: getattr(asked, name) for name in ("key", "source", "make", "name", "carried", "base")}
        fresh = {"state": "waiting", "said": "", "host": "", "deaths": 0, "failed_on": [], "outcome": None}
        with self._using() as connection:
            made = upsert(build).values(**row, **fresh)
            ended = ["failed", "done"] if again else ["failed"]
            anew = {**row, **fresh, "asked_at": func.now()}
            connection.execute(made.on_conflict_do_update(index_elements=["key"], set_=anew, where=b.state.in_(ended)))

    def rows(self, keys: Sequence[str]) -> dict[str, Row]:
        """The builds ``keys`` by key."""
        with self._using() as connection:
            found = connection.execute(select(build).where(b.key.in_(keys))).all()
        return {row.key: _row(row) for row in found}

    def unfinished(self) -> list[Row]:
        """What waits or is being built, the oldest first."""
        with self._using() as connection:
            found = connection.execute(
                select(build).where(b.state.in_(["waiting", "doing"])).order_by(b.asked_at, b.key)
            )
            return [_row(row) for row in found]

    def sent(self, source: str) -> str:
        """The sha256 of the files of ``source``, which somebody sent already; "" where nobody did."""
        with self._using() as connection:
            return connection.execute(select(b.base).where(b.source == source).limit(1)).scalar() or ""

    def waits(self, host: str, makes: Sequence[str]) -> bool:
        """Whether there is something to take for ``host``."""
        with self._using() as connection:
            return connection.execute(_TAKE, {"host": host, "makes": list(makes)}).first() is not None

    def take(self, worker: int, host: str, makes: Sequence[str]) -> Row | None:
        """The oldest build that ``host`` may take, now ``worker``'s."""
        with self._using() as connection:
            connection.execute(select(func.pg_advisory_xact_lock(_CLAIMING)))
            key = connection.execute(_TAKE, {"host": host, "makes": list(makes)}).scalar()
            if key is None:
                return None
            claimed = update(build).where(b.key == key).values(state="doing", worker=worker, host=host, said="")
            return _row(connection.execute(claimed.returning(build)).one())

    def say(self, key: str, worker: int, said: str) -> None:
        """What a build is at, in a line."""
        with self._using() as connection:
            connection.execute(update(build).where(*_mine(key, worker)).values(said=said))

    def finish(self, key: str, worker: int, outcome: bytes, why: str = "") -> bool:
        """It is built, or with ``why`` cannot be; false where it is not ``worker``'s any more."""
        state = "failed" if why else "done"
        with self._using() as connection:
            ended = update(build).where(*_mine(key, worker)).values(state=state, said=why, worker=None, outcome=outcome)
            return connection.execute(ended).rowcount == 1

    def give_back(self, key: str, worker: int, failed_on: str = "") -> list[str]:
        """Let another host try; returns the hosts on which it failed, with ``failed_on``."""
        tried = func.array_append(b.failed_on, failed_on) if failed_on else b.failed_on
        with self._using() as connection:
            back = update(build).where(*_mine(key, worker)).values(state="waiting", worker=None, failed_on=tried)
            return list(connection.execute(back.returning(b.failed_on)).scalar() or ())

    def fail(self, key: str, why: str) -> None:
        """No host could build what waits."""
        with self._using() as connection:
            connection.execute(update(build).where(b.key == key, b.state == "waiting").values(state="failed", said=why))

    def reclaim(self) -> list[str]:
        """What workers had that are registered no more waits again; returns a line for each."""
        gone = or_(b.worker.is_(None), b.worker.not_in(select(text("id")).select_from(text("procrastinate_workers"))))
        with self._using() as connection:
            lost = update(build).where(b.state == "doing", gone)
            lost = lost.values(state="waiting", worker=None, deaths=b.deaths + 1)
            found = connection.execute(lost.returning(b.key, b.name, b.deaths)).all()
            dead = [row.key for row in found if row.deaths >= MOST_DEATHS]
            why = f"{MOST_DEATHS} workers died of it"
            connection.execute(update(build).where(b.key.in_(dead)).values(state="failed", said=why))
        return [f"{row.name}: is built anew: its worker died" for row in found if row.key not in dead]


def _mine(key: str, worker: int) -> tuple[ColumnElement[bool], ...]:
    return (b.key == key, b.worker == worker, b.state == "doing")


def _row(found: object) -> Row:
    return Row(**{name: getattr(found, name) for name in Row.__struct_fields__})
