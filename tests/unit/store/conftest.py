# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from kdelta.store import tables
from kdelta.store.store import Store
from postgres import database, postgres_binaries, postgres_server

_count = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server that runs for this session, with a migrated database ``made``."""
    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("the PostgreSQL server is not installed: apt-get install postgresql")
    with postgres_server(binaries) as url:
        Store(database(url, "made")).close()
        yield url


@pytest.fixture(scope="session")
def made_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite store without anything in it, to copy."""
    path = tmp_path_factory.mktemp("made") / "store.sqlite"
    Store(f"sqlite:///{path}").close()
    return path


def _named(server: str, name: str) -> str:
    return server.replace("/postgres?", f"/{name}?")


def _emptied(store: Store) -> None:
    names = ", ".join(tables.metadata.tables)
    with store._writing() as connection:
        connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    return database(request.getfixturevalue("postgres"), f"empty_{next(_count)}")


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store of each kind without anything in it."""
    if request.param == "sqlite":
        path = shutil.copy(request.getfixturevalue("made_file"), tmp_path / "store.sqlite")
        made = f"sqlite:///{path}"
    else:
        made = _named(request.getfixturevalue("postgres"), "made")
    with Store(made) as opened:
        if request.param == "postgresql":
            _emptied(opened)
        yield opened


@pytest.fixture
def lite(tmp_path: Path, made_file: Path) -> Iterator[Store]:
    """A store on SQLite, where the kind of database does not matter."""
    with Store(f"sqlite:///{shutil.copy(made_file, tmp_path / 'lite.sqlite')}") as opened:
        yield opened
