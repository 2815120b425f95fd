# SPDX-License-Identifier: GPL-2.0-or-later
"""Engines, transactions, revisions, and database errors as errors of kdelta."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from kdelta import distributions
from kdelta.errors import DiskFull, HostError, UserError
from kdelta.store import still
from kdelta.store.tables import REVISION_TABLE, metadata

HEAD = "0006"  # the newest revision in migrations/versions; a test holds it to that
BUSY_TIMEOUT_S = 30.0
_MIGRATION_LOCK = 0x6B64656C7461  # "kdelta": an advisory lock of PostgreSQL
_FULL = ("database or disk is full", "No space left on device", "disk full")
_FULL_BESIDE = (
    "SQLITE_IOERR_SHMSIZE"  # said as a disk I/O error: no room for the file beside the store that readers need
)
_PASSWORD = ("no password supplied", "password authentication failed")  # of libpq, and of the server
_FOREIGN = ("file is not a database", "file is encrypted")


def open_engine(address: str) -> Engine:
    """An engine for an SQLAlchemy URL; SQLite's directory is made.

    Raises:
        UserError: no URL, or another database than SQLite or PostgreSQL, or its driver is missing.
        HostError: the directory cannot be made.
    """
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):  # ValueError: a port that is no number
        shown = re.sub(r"(//[^:/@]*):[^@/]*@", r"\1:***@", address)
        raise UserError(
            f"store {shown!r}: not a URL such as sqlite:////home/me/kdelta.sqlite or postgresql://host/name"
        ) from None
    backend = url.get_backend_name()
    if backend == "sqlite":
        return _sqlite(url)
    if backend == "postgresql":
        return _postgresql(url)
    raise UserError(f"store {backend!r}: kdelta keeps results in sqlite or postgresql, as in postgresql://host/name")


def absent(address: str) -> Path | None:
    """The SQLite file that ``address`` names, where it is not there; None for servers, memory, and what is no URL."""
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        return None
    if (path := _file(url)) is None:
        return None
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError:  # whoever opens it says why it cannot be
        pass
    return None


def _file(url: URL) -> Path | None:
    """The file of a store in SQLite; None for servers and memory."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database.startswith((":", "file:")):
        return None
    return Path(url.database).absolute()


def require_writable(address: str) -> None:
    """Before anything is fetched, built or booted for the store at ``address``.

    Raises:
        HostError: nothing can be kept in it.
    """
    url = make_url(address)
    if (path := _file(url)) is not None and path.exists() and not still.is_writable(path):
        raise HostError(
            f"{_where(url)}: this user can only read it, nothing can be kept in it; set KDELTA_STORE to another"
        )


def _sqlite(url: URL) -> Engine:
    if url.database and url.database != ":memory:":
        folder = Path(url.database).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HostError(
                f"cannot make the store's directory {folder}: {error.strerror}; set KDELTA_STATE to another"
            ) from None
    is_still = (path := _file(url)) is not None and still.opens_still(path)
    pool = {"poolclass": NullPool} if is_still else {}
    engine = create_engine(url.set(drivername="sqlite"), connect_args={"timeout": BUSY_TIMEOUT_S}, **pool)
    if is_still:
        event.listen(engine, "do_connect", still.connection)
    elif path is not None:
        check = _held_to(path)
        event.listen(engine, "do_connect", check)
        event.listen(engine, "checkout", check)
    event.listen(engine, "connect", _sqlite_connect)
    event.listen(engine, "begin", _sqlite_begin)
    return engine


def _sqlite_connect(connection: sqlite3.Connection, _record: Any) -> None:
    """Foreign keys are off by default; synchronous=FULL: a saved boot outlives a power cut, also under WAL."""
    connection.isolation_level = None  # the driver must not begin transactions of its own
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")


def _held_to(path: Path) -> Callable[..., None]:
    """What is asked before each transaction: an open file can be read and written when its name is gone.

    Also before it is opened once more, which would make an empty one there.
    """
    opened: list[tuple[int, int]] = []

    def check(*_asked: object) -> None:
        try:
            stat = path.stat()
        except OSError:
            found = []
        else:
            found = [(stat.st_dev, stat.st_ino)]
        opened.extend([] if opened else found)
        if opened != found:
            how = "another file lies there" if found else "it was moved or deleted"
            raise HostError(f"store {path}: {how} since it was opened: put it back, or start kdelta again")

    return check


def _sqlite_begin(connection: Connection) -> None:
    """A writer takes the lock at once: upgrading a read lock later fails without waiting, when two write at a time."""
    writes = connection.get_execution_options().get("kdelta_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _postgresql(url: URL) -> Engine:
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    try:
        return create_engine(url, pool_pre_ping=True, connect_args={"client_encoding": "utf8"})
    except ModuleNotFoundError as error:
        raise UserError(
            f"store on PostgreSQL: the driver {error.name} is missing; {distributions.extra('fleet')}"
        ) from None
    except NoSuchModuleError:
        raise UserError(f"store {url.drivername!r}: unknown driver; write postgresql://host/name") from None


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Database errors inside become one line of kdelta.

    Raises:
        UserError: the file is no SQLite database.
        HostError: anything else that the database refuses.
    """
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise _explained(error, url) from error


def _where(url: URL) -> str:
    """The store as its user named it, without passwords."""
    shown = url.set(drivername=url.get_backend_name())
    if "password" in shown.query:
        shown = shown.update_query_dict({"password": "***"})
    return f"store {shown.render_as_string(hide_password=True).replace('%2F', '/')}"


def _explained(error: Exception, url: URL) -> HostError | UserError:
    where = _where(url)
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    said = " ".join(str(cause).split())[:300]
    if any(sign in said for sign in _FOREIGN):
        return UserError(f"{where}: not a kdelta store ({said}); move the file away or set KDELTA_STORE to another")
    if any(sign in said for sign in _FULL) or getattr(cause, "sqlite_errorname", "") == _FULL_BESIDE:
        return DiskFull(where)
    if "malformed" in said:
        return HostError(f"{where}: damaged ({said}); restore it from a backup or move it away")
    if "database is locked" in said:
        return HostError(
            f"{where}: locked by another process for over {BUSY_TIMEOUT_S:.0f} s; try again when it has finished"
        )
    if "readonly" in said or "unable to open" in said:
        return HostError(f"{where}: {said}; check its permissions, or set KDELTA_STORE to another")
    if any(sign in said for sign in _PASSWORD):
        return HostError(f"{where}: {said}; the password belongs into ~/.pgpass, a line HOST:PORT:NAME:USER:PASSWORD")
    if isinstance(error, IntegrityError):
        return HostError(f"{where}: refused, it contradicts what is stored ({said})")
    return HostError(f"{where}: {said}; check that the database is there and reachable, or set KDELTA_STORE to another")


def revision(connection: Connection) -> str | None:
    """The store's revision; None where the database holds nothing of kdelta."""
    if not inspect(connection).has_table(REVISION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {REVISION_TABLE}")).scalar()
    return None if found is None else str(found)


def prepare(engine: Engine) -> None:
    """Bring the store to ``HEAD``: made where there is none, migrated where it is older.

    Raises:
        UserError: made by a newer kdelta, or another program's database.
        HostError: the database refuses.
    """
    with translated(engine.url):
        with engine.connect() as connection:
            found = revision(connection)
            if found == HEAD:
                return
            _require_utf8(connection)
            _refuse(engine.url, found, inspect(connection).get_table_names())
        path = _file(engine.url)
        if found is not None and path is not None and not still.is_writable(path):
            raise HostError(
                f"{_where(engine.url)}: made by an older kdelta (revision {found}, this one reads {HEAD}), and cannot "
                "be brought up to date, since this user can only read it: copy it, and set KDELTA_STORE to the copy"
            )
        if engine.url.get_backend_name() == "sqlite":
            _use_wal(engine)
        with engine.execution_options(kdelta_writes=True).begin() as connection:
            if engine.url.get_backend_name() == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
            if revision(connection) != HEAD:  # another process may have been faster
                migrate(connection, HEAD)


def _refuse(url: URL, found: str | None, present: list[str]) -> None:
    where = _where(url)
    if found is not None and (not found.isdigit() or int(found) > int(HEAD)):
        raise UserError(
            f"{where}: made by a newer kdelta (revision {found}, this one knows {HEAD}): upgrade kdelta, "
            "or set KDELTA_STORE to another"
        )
    foreign = set(present) if url.get_backend_name() == "sqlite" else set(present) & set(metadata.tables)
    if found is None and foreign - {REVISION_TABLE}:
        raise UserError(f"{where}: belongs to another program (table {min(foreign)!r}); set KDELTA_STORE to another")


def _require_utf8(connection: Connection) -> None:
    """Another encoding lacks characters of our texts; SQL_ASCII, which the locale C brings, gives out bytes."""
    url = connection.engine.url
    if url.get_backend_name() == "postgresql" and (has := connection.scalar(text("SHOW server_encoding"))) != "UTF8":
        raise UserError(
            f"{_where(url)}: its encoding is {has}, and kdelta needs UTF8: "
            "createdb -E UTF8 -T template0 --locale C.UTF-8 NAME"
        )


def _use_wal(engine: Engine) -> None:
    """Readers never wait for a writer. The setting stays in the file; it cannot be made inside a transaction."""
    raw = engine.raw_connection()
    try:
        cursor = raw.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.close()
    finally:
        raw.close()


def migrate(connection: Connection, target: str) -> None:
    """Upgrade to ``target`` inside the caller's transaction: it happens whole or not at all."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, target)
