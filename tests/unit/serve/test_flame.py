# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of call stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import html
from msgspec.structs import replace

pytest.importorskip("httpx2", reason="Starlette's test client needs httpx2")
from starlette.testclient import TestClient

from kdelta.attribution import stack_diff
from kdelta.attribution.exact import exact_metrics
from kdelta.model import Definition
from kdelta.report import flame
from kdelta.serve.app import create_app
from kdelta.serve.guard import Access
from unit.attribution import counts
from unit.serve.serve_store import filled

PAGE = "/experiments/first/flame?case=0&from=0&to=1"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with filled(tmp_path) as store:
        yield TestClient(create_app(store, Access(), lambda _: None), base_url="http://127.0.0.1:8642")


def test_the_graph_zooms_by_links_finds_by_name_and_lists_callers(client: TestClient) -> None:
    whole = client.get(PAGE + "&q=mems").text
    assert "frame up found" in whole and "<script" not in whole
    assert "could not be followed: 0.5 on 6.12;" in whole
    assert "&lt;b&gt;" in whole and "<b>" not in whole
    zoomed = client.get(PAGE + "&at=%3Cb%3E%3Bmemset")
    assert zoomed.status_code == 200
    assert "Callers of memset" in zoomed.text
    assert "/flame?case=0" in client.get("/experiments/first/functions?case=0&from=0&to=1").text


def test_a_frame_says_by_how_much_it_changed_and_the_uppermost_is_no_function(client: TestClient) -> None:
    page = client.get(PAGE).text
    assert re.search(r">memset<tspan[^>]*>\+2</tspan>", page)
    summary = re.search(r'<p class="summary">([^<]*)</p>', page)
    assert summary and summary[1].endswith("(+276.9\u00a0%).")
    report = client.get("/experiments/first/report").text
    assert re.findall(r'data-change="([^"]*)"', report) == ["+2", "+2", "+2"]


def test_the_page_says_where_the_calls_part_below_the_frame_that_is_shown(client: TestClient) -> None:
    for address, title in ((PAGE, "Where the calls part"), (PAGE + "&at=%3Cb%3E", "Where the calls part, below <b>")):
        table = html.fromstring(client.get(address).text).xpath(
            "//h2[@id='parted']/following-sibling::div[1]//tbody/tr"
        )
        assert html.fromstring(client.get(address).text).xpath("//h2[@id='parted']")[0].text_content() == title
        assert [[cell.text_content() for cell in row] for row in table] == [
            ["memset", "0.25", "2.5", "+2.25", "0.06", "itself in <b>"]
        ]


def test_a_search_without_a_hit_and_a_link_that_leads_nowhere_are_told(client: TestClient) -> None:
    assert "No frame here has nosuch in its name." in client.get(PAGE + "&q=nosuch").text
    stray = client.get(PAGE + "&at=%3Cb%3E%3Bnowhere").text
    assert "No such call stack" in stray and 'name="at" value="&lt;b&gt;"' in stray
    whole = client.get(PAGE + "&at=%3Cb%3E").text
    assert "No such call stack" not in whole and "in its name" not in whole


def test_frames_too_narrow_for_a_word_are_no_stops_of_the_tabulator_key() -> None:
    side = replace(counts.profile({"wide": 990, "thin": 10}), stacks="0 0 0 [kernel]\n1 990 1 wide\n1 10 1 thin")
    markup, _ = flame.markup([stack_diff.compared(side, side)], lambda path: f"?{path}")
    stops = [re.search("<title>([a-z]*)", one)[1] for one in markup.split("<a ")[2:] if "tabindex" not in one]  # type: ignore[index]
    assert stops == ["wide"] and markup.count('tabindex="-1"') == 1


@pytest.mark.parametrize(("part", "per"), [("lookup", "lookup"), ("", "operation")])
def test_pages_and_report_count_by_what_the_table_of_results_counts_by(part: str, per: str, tmp_path: Path) -> None:
    """Of path_lookup, a sweep of 205 names, 4666/lookup stood as "4666 instructions per operation"."""
    with filled(tmp_path) as store:
        workload = store.experiment("first").cases[0].workload
        counted = {workload: Definition(metrics=exact_metrics(part, 205 if part else 1))}
        store.redefine("first", lambda one: replace(one, definitions=counted))
        client = TestClient(create_app(store, Access(), lambda _: None), base_url="http://127.0.0.1:8642")
        for page in (PAGE, PAGE.replace("flame", "functions"), "/experiments/first/report"):
            assert set(re.findall(r"instructions per (\w+)", client.get(page).text)) == {per}, page


def test_an_experiment_leads_to_the_call_stacks_of_the_cases_that_have_some(client: TestClient) -> None:
    links = html.fromstring(client.get("/experiments/first").text).xpath("//p[@class='drill']//a/@href")
    (found,) = {link for link in links if "/flame?" in link}
    assert client.get(found).status_code == 200
    assert "/flame" not in client.get("/experiments/second").text


def test_where_no_stacks_are_stored_the_page_says_how_to_count_them(client: TestClient) -> None:
    answer = client.get("/experiments/second/flame?case=0&from=0&to=1")
    assert answer.status_code == 404
    assert "--stacks" in answer.text


def test_the_report_has_the_graph_too_and_zooms_by_style_alone(client: TestClient) -> None:
    answer = client.get("/experiments/first/report")
    text = answer.text
    assert "Call stacks: pidfd_open, instructions, 6.12 to 7.0" in text and "<script" not in text
    assert "could not be followed: 0.5 on 6.12;" in text
    assert "itself in &lt;b&gt;" in text and ">&lt;b&gt;</a>" in text and "<b>" not in text
    marks = re.findall(r'<i id="(flame0-[0-9]+)" hidden', text)
    assert len(marks) == 3 and all(f'href="#{mark}"' in text for mark in marks)
    assert all(f"#flame0-graph:has(#{mark}:target){{--x:" in text for mark in marks[1:])
    assert "Call stacks" not in client.get("/experiments/second/report").text
