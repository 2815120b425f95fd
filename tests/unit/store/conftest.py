# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from store_builders import postgres_binaries, postgres_server

from kdelta.store.store import Store

_count = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("the PostgreSQL server is not installed: apt-get install postgresql")
    with postgres_server(binaries) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    server: str = request.getfixturevalue("postgres")
    name = f"test_{next(_count)}"
    engine = create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Store]:
    """A store on SQLite, where the kind of database does not matter."""
    with Store(f"sqlite:///{tmp_path / 'lite.sqlite'}") as opened:
        yield opened
