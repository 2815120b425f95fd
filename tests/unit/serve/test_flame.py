# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of call stacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("httpx2", reason="Starlette's test client needs httpx2")
from starlette.testclient import TestClient

from kdelta.serve.app import create_app
from kdelta.serve.guard import Access
from unit.serve.serve_store import filled

PAGE = "/experiments/first/flame?case=0&from=0&to=1"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with filled(tmp_path) as store:
        for row in store.profiles("first", 0):
            grown = 40 if row.kernel else 4
            store.keep_stacks("first", (row.block, row.slot), 0, f"0 0 0 [kernel]\n1 9 1 <b>\n2 {grown} 1 memset")
        yield TestClient(create_app(store, Access(), lambda _: None), base_url="http://127.0.0.1:8642")


def test_the_graph_zooms_by_links_finds_by_name_and_lists_callers(client: TestClient) -> None:
    whole = client.get(PAGE + "&q=mems").text
    assert "frame up found" in whole and "<script" not in whole
    assert "&lt;b&gt;" in whole and "<b>" not in whole
    zoomed = client.get(PAGE + "&at=%3Cb%3E%3Bmemset")
    assert zoomed.status_code == 200
    assert "Callers of memset" in zoomed.text
    assert "/flame?case=0" in client.get("/experiments/first/functions?case=0&from=0&to=1").text


def test_where_no_stacks_are_stored_the_page_says_how_to_count_them(client: TestClient) -> None:
    answer = client.get("/experiments/second/flame?case=0&from=0&to=1")
    assert answer.status_code == 404
    assert "--stacks" in answer.text
