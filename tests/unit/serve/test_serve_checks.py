# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of a trace and of a check for leaks: what they found, which is neither an effect nor a verdict on speed."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import html
from starlette.testclient import TestClient

from kdelta.model import BESIDE_TAG, Effort, RunResult, plans
from kdelta.serve.app import create_app
from kdelta.serve.guard import Access
from kdelta.store.store import Store
from unit.serve.serve_store import HOSTILE, boot, experiment, kernel

GREW = {f"leak{batch}:dentries": 100.0 + 500 * batch for batch in range(4)}
LEAKS = {"leak_ops": 500.0, "leak_batches": 3.0, **GREW}


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    """A comparison, and a check for leaks and a trace that were made beside it."""
    store = Store(f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    store.create(experiment("speed", ("6.12", "7.0")))
    kernels = (kernel("6.12"), kernel(HOSTILE))
    store.create(experiment("lives", (), kernels=kernels, plan=plans.Leaks(), mode="timed", effort=Effort(batches=3)))
    store.create(experiment("held", ("6.12",), plan=plans.Trace()))
    for slot in range(2):
        store.save_boot("lives", boot(0, slot, runs=(RunResult(case=0, state="ok", facts=LEAKS if slot else {}),)))
    store.save_boot("held", boot(0, 0, runs=(RunResult(case=0, state="ok", facts={"ops": 16.0}),)))
    for name in ("lives", "held"):
        store.tag(name, f"{BESIDE_TAG}speed")
    app = create_app(store, Access(), pytest.fail)
    return TestClient(app, base_url="http://127.0.0.1:8642", follow_redirects=False)


def page(client: TestClient, address: str) -> html.HtmlElement:
    found: html.HtmlElement = html.document_fromstring(client.get(address).text)
    return found


def test_the_page_of_a_leak_check_names_what_leaks(client: TestClient) -> None:
    """It had the chart and verdicts of a comparison: "no verdict in batches", whatever leaked."""
    found = page(client, "/experiments/lives")
    (answer,) = found.find_class("answer")
    assert answer.text == "1 leak, 0 clean, 1 not measured"
    (table,) = found.xpath("//pre[@class='told']")
    assert "LEAK" in table.text_content() and "dentries 1.00" in table.text_content()
    assert "verdict in batches" not in found.text_content() and not found.xpath("//figure")
    assert "<script>alert(1)" not in client.get("/experiments/lives").text


def test_the_page_of_a_trace_does_not_say_that_nothing_was_measured(client: TestClient) -> None:
    text = page(client, "/experiments/held").text_content()
    assert "counted, not traced" in text and "Nothing was measured" not in text


@pytest.mark.parametrize(("name", "schema"), [("lives", "kdelta-leaks/1"), ("held", "kdelta-trace/1")])
def test_their_reports_are_text_or_json(client: TestClient, name: str, schema: str) -> None:
    assert client.get(f"/experiments/{name}.json").json()["schema"] == schema
    for address in ("report", "report.terminal"):
        assert client.get(f"/experiments/{name}/{address}").text.startswith("kdelta ")
    refused = client.get(f"/experiments/{name}/report.csv")
    assert refused.status_code == 404 and "text or JSON" in refused.text
    for link in page(client, f"/experiments/{name}").xpath("//nav[@aria-label='Reports']/a/@href"):
        assert client.get(link).status_code == 200


def test_a_comparison_leads_to_what_was_looked_at_beside_it(client: TestClient) -> None:
    links = page(client, "/experiments/speed").xpath("//p[starts-with(., 'Beside it')]/a/@href")
    assert sorted(links) == ["/experiments/held", "/experiments/lives"]
    assert not page(client, "/experiments/lives").xpath("//p[starts-with(., 'Beside it')]")


def test_no_kernel_of_them_is_compared_by_its_lives(client: TestClient) -> None:
    found = page(client, "/compare").xpath("//select[@name='a']/option/@value")
    assert found == ["", "6.12", "7.0"]
    assert "/compare?" not in client.get("/experiments/lives").text
