# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a case's history over all experiments."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kdelta.model import Case
from kdelta.serve.app import create_app
from kdelta.serve.guard import Access
from kdelta.store.store import Store
from unit.serve.serve_store import boot, experiment
from unit.serve.test_serve_pages import tree


def test_history_of_what_is_not_stored_says_that_it_shows_something_else(client: TestClient) -> None:
    """A link to a case that was deleted, or mistyped, led to the history of the first one."""
    first = client.get("/history").text
    assert "Nothing is stored" not in first
    told = client.get("/history?case=no<b>").text
    assert "Nothing is stored of case <code>no&lt;b&gt;</code>: this is " in told
    assert "Nothing is stored of metric <code>x</code>: this is " in client.get("/history?metric=x").text


def test_history_of_a_case_has_no_figure_of_another_of_its_workload(tmp_path: Path) -> None:
    """pipe and pipe:writers=4 were one line of the chart, up and down between 24,000 and 900."""
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        cases = (Case(workload="pidfd_open"), Case(workload="pidfd_open", label="pidfd_open:held=64"))
        store.create(experiment("knobs", ("6.12", "7.0"), cases=cases))
        store.save_boot("knobs", boot(0, 0, cases=2))
        client = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
        for name in ("pidfd_open", "pidfd_open:held=64"):
            page = tree(client, f"/history?case={name}")
            assert len(page.findall(".//table/tbody/tr")) == 1
            assert page.xpath("string(//figure//h2 | //h2)").startswith(f"{name}, instructions")


def test_history_joins_experiments_in_a_chart_and_a_table(client: TestClient) -> None:
    page = tree(client, "/history?case=pidfd_open")
    rows = page.findall(".//table/tbody/tr")
    dated = [row for row in rows if "2026-05-0" in row.text_content()]
    assert [row.find("td/a").text for row in dated] == ["7.0", "6.1", "7.0", "6.12"]
    assert len(page.xpath("//*[contains(@class, 'chart')]//*[starts-with(@class, 'dot')]")) == len(rows)
    assert "no verdict" in page.text_content() or "not a verdict" in page.text_content()
    assert "6.12" in client.get("/history?case=pidfd_open&tag=nightly").text
    assert "6.1<" not in client.get("/history?case=pidfd_open&tag=nightly").text.split("<tbody>")[1]
