# SPDX-License-Identifier: GPL-2.0-or-later
"""The fleet's own tables beside the store's: what was asked, who the hosts are, what failed.

They are made in the same PostgreSQL database on first use, with procrastinate's (``queue.py``). Heartbeats are
procrastinate's too. Times are the database's, so that the clocks of hosts need not agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from threading import Lock
from typing import Literal

import msgspec
from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    DateTime,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql.dml import ReturningInsert

from kdelta import distributions
from kdelta.errors import HostError, UserError
from kdelta.fleet import builds
from kdelta.fleet.needs import Host
from kdelta.fleet.units import Ask
from kdelta.store import connect, tables

State = Literal["open", "done", "failed"]

_TENDING = 0x6B64_666C  # "kdfl": advisory lock of whoever looks after the queue
_MAKING = 0x6B64_6D6B
_INSTANT = timedelta(microseconds=1)
metadata = MetaData()
_no = Column("experiment_no", Integer, ForeignKey(tables.experiment.c.no, ondelete="CASCADE"), primary_key=True)
ask = Table(
    "fleet_ask",
    metadata,
    _no,
    Column("state", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("asked_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("document", LargeBinary, nullable=False),  # msgpack of units.Ask
)
host = Table(
    "fleet_host",
    metadata,
    Column("worker", BigInteger, primary_key=True, autoincrement=False),  # procrastinate_workers.id
    Column("name", Text, nullable=False),
    Column("document", LargeBinary, nullable=False),  # msgpack of needs.Host
)
failure = Table(
    "fleet_failure",
    metadata,
    Column("no", Integer, primary_key=True),
    Column("experiment_no", Integer, ForeignKey(tables.experiment.c.no, ondelete="CASCADE"), nullable=False),
    Column("unit", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("why", Text, nullable=False),
)

tended = Table(
    "fleet_tended",
    metadata,
    Column("no", Integer, primary_key=True, autoincrement=False),  # one row
    Column("at", DateTime(timezone=True), nullable=False),
)


class Asked(Struct, frozen=True, kw_only=True):
    """An experiment that was asked of the fleet; ``at`` tells one time that it was asked from another."""

    experiment: str
    state: State
    why: str
    ask: Ask
    at: str = ""


_UP = "extract(epoch FROM now() - pg_postmaster_start_time())"


def _known(up_s: float) -> float:
    return up_s if up_s >= 0 else math.inf


class Seen(Struct, frozen=True, kw_only=True):
    """A worker that is registered; ``silent_s`` is how long its last heartbeat is ago.

    ``missed_s``: for how much of that it could have been heard, because the database was up.
    """

    worker: int
    host: Host
    silent_s: float
    missed_s: float


class Failure(Struct, frozen=True, kw_only=True):
    """A unit that could not be measured on a host; ``at`` in ISO 8601."""

    experiment: str
    unit: str
    host: str
    at: str
    why: str


class FailedOn(Struct, frozen=True):
    """The hosts on which a unit failed, those on which any of its experiment's did, how many workers died of it."""

    unit: set[str]
    experiment: set[str]
    deaths: int


class Ledger:
    """The fleet's tables in one PostgreSQL database.

    Raises:
        UserError: another program's queue is in the database.
        HostError: the database refuses.
    """

    def __init__(self, url: str) -> None:
        self.url, self._tending = url, Lock()
        self._engine = connect.open_engine(url)
        self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self.builds = builds.Builds(self._using)
        try:
            connect.prepare(self._engine)
            with connect.translated(self._engine.url), self._engine.begin() as connection:
                connection.execute(select(func.pg_advisory_xact_lock(_MAKING)))
                metadata.create_all(connection)
                builds.metadata.create_all(connection)
                _make_queue(connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    @contextmanager
    def _using(self) -> Iterator[Connection]:
        with connect.translated(self._engine.url), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """For one query: no transaction is begun or ended around it."""
        with connect.translated(self._engine.url), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def tending(self, every_s: float = 0.0) -> Iterator[bool]:
        """Whether the caller may look after the queue now: one at a time does, of all processes, every ``every_s``.

        Else a thousand hosts would look after it a hundred times a second.
        """
        if not self._tending.acquire(blocking=False):  # without a connection: those of a pool are few
            yield False
            return
        try:
            with self._using() as connection:
                alone = connection.execute(select(func.pg_try_advisory_xact_lock(_TENDING))).scalar_one()
                yield bool(alone) and connection.execute(_due(every_s)).first() is not None
        finally:
            self._tending.release()

    # What was asked

    def open(self, experiment: str, asked: Ask) -> None:
        """Ask for ``experiment``, or again for one that ended."""
        values = {"state": "open", "why": "", "document": msgspec.msgpack.encode(asked)}
        with self._using() as connection:
            no = connection.execute(_number(experiment)).scalar_one()
            made = upsert(ask).values(experiment_no=no, **values)
            newest = select(func.max(failure.c.at)).where(failure.c.experiment_no == no).scalar_subquery()
            again = {**values, "asked_at": func.greatest(func.now(), newest + _INSTANT)}  # none of them counts
            connection.execute(made.on_conflict_do_update(index_elements=["experiment_no"], set_=again))

    def close_ask(self, experiment: str, state: State, why: str = "") -> None:
        """``experiment`` is complete, or it cannot go on."""
        with self._using() as connection:
            where = ask.c.experiment_no == _number(experiment).scalar_subquery()
            connection.execute(update(ask).where(where).values(state=state, why=why))

    def asked(self, experiment: str = "") -> list[Asked]:
        """What is open, the oldest first; with ``experiment`` that one, open or not.

        What a newer kdelta asked in words that this one does not know is not among what is open: it is for others.
        """
        e = tables.experiment.c
        what = (e.id, ask.c.state, ask.c.why, ask.c.document, ask.c.asked_at)
        query = select(*what).join(ask, ask.c.experiment_no == e.no)
        query = query.where(e.id == experiment) if experiment else query.where(ask.c.state == "open")
        with self._reading() as connection:
            rows = connection.execute(query.order_by(ask.c.asked_at)).all()
        found = [(r, _read(r.document)) for r in rows]
        if experiment and any(asked is None for _, asked in found):
            raise HostError(f"experiment {experiment} was asked of the fleet by a newer kdelta: upgrade this one")
        return [
            Asked(experiment=r.id, state=r.state, why=r.why, ask=asked, at=r.asked_at.isoformat())
            for r, asked in found
            if asked is not None
        ]

    # Hosts

    def enlist(self, worker: int, found: Host) -> None:
        """A worker of procrastinate's is on this host."""
        with self._using() as connection:
            row = {"worker": worker, "name": found.name, "document": msgspec.msgpack.encode(found)}
            connection.execute(insert(host).values(row))

    def describe(self, worker: int, found: Host) -> None:
        """What is true of the host of a registered worker by now."""
        with self._using() as connection:
            connection.execute(
                update(host).where(host.c.worker == worker).values(document=msgspec.msgpack.encode(found))
            )

    def hosts(self) -> list[Seen]:
        """All registered workers, by name."""
        query = text(
            f"SELECT h.worker, h.document, extract(epoch FROM now() - w.last_heartbeat) AS silent, {_UP} AS up "
            "FROM fleet_host h JOIN procrastinate_workers w ON w.id = h.worker "
            "ORDER BY h.name, h.worker"
        )
        with self._reading() as connection:
            rows = connection.execute(query).all()
        return [
            Seen(
                worker=r.worker,
                host=msgspec.msgpack.decode(r.document, type=Host),
                silent_s=float(r.silent),
                missed_s=min(float(r.silent), _known(float(r.up))),
            )
            for r in rows
        ]

    def up_s(self) -> float:
        """How long the database is up: right after it was away everybody was silent.

        Its clock may have been put back since: then that is not known, and it counts as long.
        """
        with self._reading() as connection:
            return _known(float(connection.execute(text(f"SELECT {_UP}")).scalar_one()))

    def forget_gone(self) -> None:
        """Drop the rows of workers that are not registered any more."""
        with self._using() as connection:
            connection.execute(
                delete(host).where(host.c.worker.not_in(select(text("id")).select_from(text("procrastinate_workers"))))
            )

    # Failures

    def failed(self, experiment: str, unit: str, on: str, why: str) -> FailedOn | None:
        """Note that ``unit`` failed on a host; returns where it, and its experiment, failed since it was asked.

        One whose worker died is on no host (""). None where the experiment was deleted since.
        """
        f = failure.c
        with self._using() as connection:
            no = connection.execute(_number(experiment)).scalar()
            if no is None:
                return None
            # one after the other: of two hosts that fail at once, the second has to see both
            since = select(ask.c.asked_at).where(ask.c.experiment_no == no).with_for_update()
            asked_at = connection.execute(since).scalar()
            at = func.greatest(func.now(), asked_at)  # whose clock may have been put back since
            connection.execute(insert(failure).values(experiment_no=no, unit=unit, host=on, why=why, at=at))
            rows = connection.execute(select(f.unit, f.host).where(f.experiment_no == no, f.at >= asked_at)).all()
        hosts = [(r.unit, r.host) for r in rows if r.host]
        deaths = sum(r.unit == unit and not r.host for r in rows)
        return FailedOn({h for u, h in hosts if u == unit}, {h for _, h in hosts}, deaths)

    def survived(self, experiment: str, unit: str) -> None:
        """The worker that was taken for dead with ``unit`` in hand lives: one death less."""
        f = failure.c
        mine = (f.experiment_no == _number(experiment).scalar_subquery()) & (f.unit == unit) & (f.host == "")
        newest = select(func.max(f.no)).where(mine).correlate(None).scalar_subquery()
        with self._using() as connection:
            connection.execute(delete(failure).where(f.no == newest))

    def failures(self, limit: int = 20, ended_within: timedelta | None = None) -> list[Failure]:
        """The newest failures, the newest first; of experiments that have ended those alone that are no older."""
        e, f = tables.experiment.c, failure.c
        query = select(e.id, f.unit, f.host, f.at, f.why).join_from(failure, tables.experiment)
        if ended_within is not None:
            still = select(ask.c.experiment_no).where(ask.c.state == "open")
            query = query.where(or_(f.at > func.now() - ended_within, f.experiment_no.in_(still)))
        with self._reading() as connection:
            rows = connection.execute(query.order_by(f.no.desc()).limit(limit)).all()
        return [Failure(experiment=r.id, unit=r.unit, host=r.host, at=r.at.isoformat(), why=r.why) for r in rows]


def _read(document: bytes) -> Ask | None:
    try:
        return msgspec.msgpack.decode(document, type=Ask)
    except msgspec.ValidationError:
        return None


def _due(every_s: float) -> ReturningInsert[tuple[int]]:
    """Notes that the queue is looked after now, unless it was within ``every_s``."""
    at = func.clock_timestamp()
    noted = upsert(tended).values(no=1, at=at)
    late = (tended.c.at <= at - timedelta(seconds=every_s)) | (tended.c.at > at)  # its clock was put back
    return noted.on_conflict_do_update(index_elements=["no"], set_={"at": at}, where=late).returning(tended.c.no)


def _number(experiment: str) -> Select[tuple[int]]:
    return select(tables.experiment.c.no).where(tables.experiment.c.id == experiment)


def require(url: str) -> None:
    """Raises:
    UserError: the store is no PostgreSQL, or a package is missing.
    """
    if not url.startswith("postgresql"):
        raise UserError(
            "the fleet needs a store on PostgreSQL that all hosts reach: set KDELTA_STORE=postgresql://USER@HOST/NAME"
        )
    if missing := [name for name in ("fsspec", "procrastinate", "psycopg") if find_spec(name) is None]:
        raise UserError(f"the fleet needs the package {missing[0]}: {distributions.extra('fleet')}")


def _make_queue(connection: Connection) -> None:
    """procrastinate's tables, where there are none; an older procrastinate's are brought up to date.

    Its migrations are files named VERSION_NUMBER_..., applied in order (its documentation, "Migrations").
    """
    from pathlib import Path

    from procrastinate import __version__
    from procrastinate.schema import SchemaManager

    connection.execute(text("CREATE TABLE IF NOT EXISTS fleet_queue (version text NOT NULL)"))
    known = connection.execute(text("SELECT version FROM fleet_queue")).scalar()
    if known == __version__:
        return
    if known is None:
        if connection.execute(text("SELECT to_regclass('procrastinate_jobs')")).scalar() is not None:
            raise UserError("the database has a queue of procrastinate's already, of another program: take another one")
        scripts = [SchemaManager.get_schema()]
    elif _version(known) > _version(__version__):
        raise HostError(f"the queue was made by procrastinate {known}, this is {__version__}: upgrade it on this host")
    else:
        files = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
        scripts = [f.read_text(encoding="utf-8") for f in files if _version(f.name.split("_")[0]) > _version(known)]
    for script in scripts:
        connection.execution_options(no_parameters=True).exec_driver_sql(script)
    connection.execute(text("DELETE FROM fleet_queue"))
    connection.execute(text("INSERT INTO fleet_queue VALUES (:version)"), {"version": __version__})


def _version(name: str) -> tuple[int, ...]:
    """``03.10.00`` or ``3.10.0`` -> (3, 10, 0)."""
    return tuple(int(part) for part in name.split(".") if part.isdigit())
