# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from kdelta.fleet.ledger import Ledger
from kdelta.store.store import Store
from postgres import database, postgres_binaries, postgres_server
from unit.fleet.fleet_builders import Hosts

_count = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a PostgreSQL server that runs for this session."""
    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("the PostgreSQL server is not installed: apt-get install postgresql")
    with postgres_server(binaries) as url:
        yield url


@pytest.fixture
def url(server: str) -> str:
    """An empty database."""
    return database(server, f"fleet_{next(_count)}")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    opened = Ledger(url)
    yield opened
    opened.close()


@pytest.fixture
def hosts(url: str, store: Store, ledger: Ledger) -> Hosts:
    return Hosts(url, store, ledger)
