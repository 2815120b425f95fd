# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("httpx2", reason="Starlette's test client needs httpx2")
from starlette.testclient import TestClient

from kdelta.serve.app import create_app
from kdelta.serve.guard import Access
from kdelta.store.store import Store
from unit.serve.serve_store import filled

Open = Callable[..., TestClient]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Filled once: the pages only read."""
    folder: Path = tmp_path_factory.mktemp("serve")
    with filled(folder) as store:
        yield store


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def client(store: Store, complaints: list[str]) -> TestClient:
    app = create_app(store, Access(), complaints.append)
    return TestClient(app, base_url="http://127.0.0.1:8642", raise_server_exceptions=False, follow_redirects=False)
