# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import json
import re
from importlib import resources
from itertools import product

import pytest
from lxml import html
from msgspec.structs import replace
from starlette.testclient import TestClient

from kdelta.kernel import excerpts
from kdelta.model import CallCount, Case, plans
from kdelta.results import answer
from kdelta.serve.app import create_app
from kdelta.serve.guard import Access
from kdelta.store.store import Store
from unit.kernel.source_texts import Texts
from unit.serve.serve_store import boot, experiment, kernel, sweep

PAGES = [
    "/",
    "/experiments",
    "/history",
    "/history?case=pidfd_open&metric=instructions&by=kernel",
    "/compare",
    "/compare?a=6.12&b=6.1",
    "/steps",
    "/steps?state=open",
    "/watched",
    "/watched?state=failed&page=9",
    *(
        f"/experiments/{name}{part}"
        for name in ("first", "second", "hostile", "empty", "sweep", "hostile-sweep")
        for part in ("", "/report", "/boots")
    ),
    "/experiments/first/functions?case=0&from=0&to=1",
    "/experiments/first/functions?case=0&from=1&to=1&all=1",
    "/experiments/second/functions?case=0&from=0&to=1",
    "/experiments/hostile/functions?all=1",
    "/experiments/sweep/functions?case=0&from=0&to=1&mitigations=off",
    "/experiments/hostile-sweep/functions?all=1",
    "/experiments/sweep/boots/0.2",
    "/experiments/hostile-sweep/boots/0.0",
    "/experiments/first/boots/0.1",
    "/experiments/hostile/boots/0.0",
    "/experiments/hostile/boots/1.0",
    "/nothing",
    "/experiments/%3Cscript%3E",
    "/experiments/..%2f..%2fetc%2fpasswd",
]


def tree(client: TestClient, address: str) -> html.HtmlElement:
    return html.document_fromstring(client.get(address).text)


def links(page: html.HtmlElement) -> list[str]:
    return [a.get("href") for a in page.iter("a")]


@pytest.mark.parametrize("address", PAGES)
def test_a_page_runs_nothing_and_says_nothing_of_the_host(
    client: TestClient, address: str, complaints: list[str]
) -> None:
    answer = client.get(address)
    assert answer.status_code in (200, 404) and not complaints
    page = html.document_fromstring(answer.text)
    assert not list(page.iter("script", "img", "iframe", "object", "embed", "base"))
    assert not [name for element in page.iter() for name in element.attrib if name.startswith("on")]
    assert all(link.startswith(("/", "#", "?", ".")) for link in links(page))
    assert "/secret" not in answer.text and "kdelta.sqlite" not in answer.text and "Traceback" not in answer.text
    assert page.get("lang") == "en" and len(page.findall(".//h1")) == 1 and page.findall(".//main")
    assert "49" not in page.findtext(".//h1")  # no text of the store is a template


@pytest.mark.parametrize("address", PAGES)
def test_every_link_of_a_page_leads_somewhere(client: TestClient, address: str) -> None:
    base = address.split("?")[0]
    for link in {link.split("#")[0] for link in links(tree(client, address))}:
        target = base + link if link.startswith("?") else link
        if target.startswith("/"):
            assert client.get(target).status_code == 200, target


@pytest.mark.parametrize("address", PAGES)
def test_ids_are_unique_and_controls_have_names(client: TestClient, address: str) -> None:
    page = tree(client, address)
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert all(control.getparent().tag == "label" for control in page.iter("select", "input"))
    assert all(th.get("scope") for th in page.iter("th"))
    named = [e.get("aria-labelledby") for e in page.iter() if e.get("aria-labelledby")]
    assert {name for names in named for name in names.split()} <= set(ids)


def test_the_list_shows_the_newest_first_with_tags_and_notes(client: TestClient) -> None:
    page = tree(client, "/experiments")
    order = [link.rsplit("/", 1)[1] for link in links(page.find(".//ol")) if link.startswith("/experiments/")]
    assert [name for name in order if name != "hostile"] == ["second", "first", "empty", "sweep", "hostile-sweep"]
    text = page.text_content()
    assert "nightly" in text and "after the BIOS update" in text and "4 boots" in text and "partial" in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?tag=nightly", {"first"}),
        ("?text=6.1+COMPARE", {"first", "second", "empty"}),
        ("?kind=leaks", set()),
        ("?kind=sweep", {"sweep"}),
        ("?text=bios", {"first"}),
    ],
)
def test_the_list_is_filtered_by_kind_tag_and_text(client: TestClient, query: str, found: set[str]) -> None:
    addresses = links(tree(client, "/experiments" + query).find(".//main"))
    names = {a.removeprefix("/experiments/") for a in addresses if a.startswith("/experiments/")}
    names -= {"hostile", "hostile-sweep"}
    assert names == found


def test_a_long_list_has_pages(tmp_path_factory: pytest.TempPathFactory) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('long') / 'kdelta.sqlite'}"
    with Store(url) as store:
        for number in range(45):
            store.create(experiment(f"e{number:02}", ("6.12",), created_at=f"2026-01-01T00:{number:02}:00"))
        client = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
        assert "1 to 40 of 45" in client.get("/").text
        assert "41 to 45 of 45" in client.get("/?page=2").text
        assert "41 to 45 of 45" in client.get("/?page=99999999").text
        assert "1 to 40 of 45" in client.get("/?page=-1").text


def test_the_page_of_findings_works_no_sweep_out_twice(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    sweeps = answer.sweeps

    def counted(store: Store, name: str, *, placed: bool) -> object:
        made.append(name)
        return sweeps(store, name, placed=placed)

    monkeypatch.setattr(answer, "sweeps", counted)
    first = client.get("/findings").text
    assert "sweep" in made
    made.clear()
    assert client.get("/findings").text == first and not made
    assert re.search(r"kernels in (1 stored sweep|[2-9] stored sweeps), largest first", first)


def test_the_page_of_findings_takes_the_sweeps_of_results_that_are_known(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = client.get("/findings").text
    for name in ("sweep", "hostile-sweep"):
        assert client.get(f"/experiments/{name}").status_code == 200
    monkeypatch.setattr(answer, "sweeps", pytest.fail)
    assert client.get("/findings").text == found


def test_the_page_of_a_sweep_judges_no_rows_that_its_steps_stand_for(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
    assert client.get("/experiments/sweep.json").status_code == 200
    whole = client.get("/experiments/sweep").text  # of the rows that were worked out for JSON
    monkeypatch.setattr(answer, "result", pytest.fail)
    assert fresh.get("/experiments/sweep").text == whole


def test_the_page_of_a_sweep_shows_rows_that_no_step_stands_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    cases = (Case(workload="pidfd_open"), Case(workload="pidfd_open", label="bare"))
    with Store(f"sqlite:///{tmp_path_factory.mktemp('bare') / 'kdelta.sqlite'}") as store:
        store.create(sweep("bare", [kernel("6.1"), kernel("6.6")], cases=cases))
        for block, slot in product(range(5), range(2)):
            whole, other = boot(block, slot, cases=2).runs
            bare = replace(other, series=tuple(replace(one, metric="rep_bytes") for one in other.series))
            store.save_boot("bare", replace(boot(block, slot), runs=(whole, bare)))
        page = tree(
            TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost"), "/experiments/bare"
        )
    assert [one.text_content() for one in page.xpath("//tr[@class='case']")] == ["bare"]
    assert len(page.xpath("//caption[starts-with(., 'Sweep of')]")) == 1


@pytest.mark.parametrize("name", ["first", "sweep", "hostile-sweep", "second"])
def test_pages_are_the_same_whether_or_not_hidden_rows_were_explained(client: TestClient, name: str) -> None:
    pages = [client.get(f"/experiments/{name}{part}").text for part in ("", "/report", "/report.markdown")]
    whole = client.get(f"/experiments/{name}.json").text
    assert [client.get(f"/experiments/{name}{part}").text for part in ("", "/report", "/report.markdown")] == pages
    assert client.get(f"/experiments/{name}.json").text == whole


def test_findings_show_what_became_of_functions_where_sources_are_at_hand(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "{{\n\ta({});\n\tb();\n}}\n"
    sources = {
        "6.1": Texts({"fs/a.c": "int pidfd_create(void)\n" + body.format('"<b>"')}),
        "6.6": Texts({"fs/a.c": "int pidfd_create(void)\n" + body.format('"</pre><b>"')}),
    }
    assert not tree(client, "/findings").findall(".//pre")
    monkeypatch.setattr(excerpts, "version_of", lambda kernel: kernel.release)
    monkeypatch.setattr(excerpts, "at_hand", sources.get)
    page = tree(client, "/findings")
    assert [one.text for one in page.xpath("//pre/ins | //pre/del")] == [
        '-        a("<b>");',
        '+        a("</pre><b>");',
    ]
    assert [one.text_content() for one in page.findall(".//pre")] == [
        ' {\n-        a("<b>");\n+        a("</pre><b>");\n         b();'
    ]
    assert "pidfd_create changed in fs/a.c: 1 line out, 1 in" in page.text_content()


def test_a_program_has_its_system_calls_on_its_page(tmp_path_factory: pytest.TempPathFactory) -> None:
    program = Case(workload="program", params={"pack": "0" * 32}, label="git status")
    calls = {"openat": CallCount(calls=32, instructions=16_000, rep_bytes=320)}
    made = boot(0, 0)
    runs = tuple(replace(one, profile=replace(one.profile, system_calls=calls)) for one in made.runs if one.profile)
    with Store(f"sqlite:///{tmp_path_factory.mktemp('program') / 'kdelta.sqlite'}") as store:
        store.create(experiment("p", ("6.12",), cases=(program,), blocks=1, plan=plans.Run()))
        store.save_boot("p", replace(made, runs=runs))
        page = tree(TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost"), "/experiments/p")
    (table,) = page.xpath("//table[contains(caption, 'system call')]")
    assert [one.text_content() for one in table.xpath("./tbody/tr/*")] == ["openat", "2", "1000", "20"]


def test_an_empty_store_says_how_to_begin(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Store(f"sqlite:///{tmp_path_factory.mktemp('none') / 'kdelta.sqlite'}") as store:
        client = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
        for address in ("/", "/history", "/compare"):
            assert "kdelta compare" in client.get(address).text
        assert client.get("/experiments/last").status_code == 404


def test_an_experiment_leads_to_its_functions(client: TestClient) -> None:
    page = tree(client, "/experiments/first")
    assert "-10.00 %" in page.text_content() and "improved" in page.text_content()
    assert page.xpath("string(//*[@class='legend']/p)") == "(I) improved, (R) regressed, = same, ? inconclusive"
    [where] = [link for link in links(page) if "/functions" in link]
    text = tree(client, where).text_content()
    assert "kernel_0" in text and "kernel_1" in text and "-50" in text and "cost the same on both: 1" in text
    assert "do_syscall_64" not in text and "do_syscall_64" in client.get(where + "&all=1").text


def test_lines_that_move_between_cpus_are_drawn_beside_the_functions(client: TestClient) -> None:
    page = tree(client, "/experiments/second/functions?case=0&from=0&to=1")
    (picture,) = page.xpath("//figure[@id='flow1']")
    assert "do_exit 2.00 -> 2.00" in picture.text_content() and picture.xpath(".//*[local-name()='path']")
    assert not tree(client, "/experiments/first/functions?case=0&from=0&to=1").xpath("//figure[@id='flow1']")


def test_a_sweep_shows_steps_and_gaps_and_leads_to_the_functions_behind_a_step(client: TestClient) -> None:
    page = tree(client, "/experiments/sweep")
    rows = [[cell.text_content().strip() for cell in row] for row in page.findall(".//table[@class='results']//tr")]
    assert ["6.6", "900/op", "-10.00 % (I)"] in rows and ["7.0", "1200/op", "+33.33 % (R)"] in rows
    assert ["6.9", "failed", ""] in rows and ["6.12", "panicked", ""] in rows
    text = page.text_content()
    assert text.count("'x' undeclared") >= 3  # in both sweeps and in the note
    assert "6.6 was built by gcc 14, 6.1 by gcc 12" in text
    assert len(page.xpath("//*[local-name()='svg']")) == 2
    steps = [link for link in links(page) if "/functions" in link]
    assert len(steps) == 3 and [link for link in steps if "mitigations=off" in link] == steps[2:]
    assert "900" in tree(client, steps[0]).text_content() and "1200" in tree(client, steps[1]).text_content()
    assert "800" in tree(client, steps[2]).text_content() and "700" in tree(client, steps[2]).text_content()
    assert "/experiments/sweep/boots/0.2" in links(page)  # the console of a version that panicked


def test_an_experiment_has_its_json_and_every_report(client: TestClient) -> None:
    answer = client.get("/experiments/first.json")
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.text)["schema"] == "kdelta/1"
    mail = client.get("/experiments/first/report.mail")
    assert mail.headers["content-type"].startswith("text/plain") and "7.0" in mail.text
    assert client.get("/experiments/first/report.exe").status_code == 404
    assert client.get("/experiments/none.json").status_code == 404


def test_a_beginning_of_an_id_is_enough_unless_it_fits_several(client: TestClient) -> None:
    assert client.get("/experiments/fir").status_code == 200
    assert client.get("/experiments/last").status_code == 200
    assert client.get("/experiments/nope").status_code == 404


def test_boots_are_listed_with_their_states_and_lead_to_consoles(client: TestClient) -> None:
    page = tree(client, "/experiments/hostile/boots")
    assert "panicked" in page.text_content()
    assert "/experiments/hostile/boots/1.0" in links(page)
    only = links(tree(client, "/experiments/hostile/boots?state=panicked"))
    assert "/experiments/hostile/boots/1.0" in only and "/experiments/hostile/boots/0.0" not in only


def test_a_console_is_shown_as_text_whatever_it_holds(client: TestClient) -> None:
    page = tree(client, "/experiments/first/boots/0.0")
    text = page.find(".//pre").text
    assert "<script>alert(3)</script>red␀␇��\\u202e</pre>\nBye" in text
    plain = client.get("/experiments/first/boots/0.0.txt")
    assert (
        plain.headers["content-type"].startswith("text/plain") and plain.headers["x-content-type-options"] == "nosniff"
    )
    assert plain.text in ("\n" + text, text.lstrip("\n"), text)


@pytest.mark.parametrize("place", ["7.0", "99999999999999999999.0", "0.99999999999999999999", "-1.0", "x.y", "0"])
def test_a_boot_that_is_not_there_is_a_page(client: TestClient, place: str) -> None:
    assert client.get(f"/experiments/first/boots/{place}").status_code == 404


@pytest.mark.parametrize("query", ["case=9", "from=9", "to=9"])
def test_functions_that_are_not_there_are_a_page(client: TestClient, query: str) -> None:
    assert client.get(f"/experiments/first/functions?{query}").status_code == 404


@pytest.mark.parametrize("query", ["case=-1", "case=x", "case=²", "from=1e9", "mitigations=<b>", "all=<script>"])
def test_odd_numbers_in_a_query_count_as_not_given(client: TestClient, query: str) -> None:
    assert client.get(f"/experiments/empty/functions?{query}").status_code == 404  # no profile yet
    assert client.get("/experiments/first/functions", params={"case": "²"}).status_code == 200


def test_any_two_kernels_are_compared_without_a_verdict(client: TestClient) -> None:
    text = tree(client, "/compare?a=6.12&b=7.0&bx=second").text_content()
    assert "-10.00 %" in text and "not interleaved" in text and "improved" not in text
    together = tree(client, "/compare?a=6.12&ax=first&b=7.0&bx=first").text_content()
    assert "its page has the verdict" in together
    assert "same image" in tree(client, "/compare?a=6.12&ax=first&b=6.12&bx=first").text_content()


def test_a_hostile_name_can_be_chosen_from_the_forms(client: TestClient) -> None:
    page = tree(client, "/compare")
    names = [o.get("value") for o in page.find(".//select").iter("option") if "script" in (o.get("value") or "")]
    assert len(names) == 2
    for name in names:
        sent = client.get("/compare", params={"a": name.replace("\n", "\r\n"), "b": "7.0"})
        assert sent.status_code == 200 and "0.00 %" not in sent.text and "Kernels</h2>" in sent.text
    cases = [o.get("value") for o in tree(client, "/history").find(".//select").iter("option")]
    [hostile] = [case for case in cases if "script" in case]
    assert "<circle" in client.get("/history", params={"case": hostile.replace("\n", "\r\n")}).text


def test_a_failure_of_the_host_keeps_its_paths_to_the_terminal(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("broken")
    complaints: list[str] = []
    with Store(f"sqlite:///{folder / 'kdelta.sqlite'}") as store:
        app = create_app(store, Access(), complaints.append)
        client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        store.close()
        (folder / "kdelta.sqlite").write_bytes(b"not a database" * 1000)
        answer = client.get("/experiments")
    assert answer.status_code == 500 and str(folder) not in answer.text and "Traceback" not in answer.text
    assert any(str(folder) in text for text in complaints)


def test_steps_stand_with_what_became_of_them_and_open_ones_first(client: TestClient) -> None:
    page = tree(client, "/steps")
    facts = [one.text_content() for one in page.iter("p") if one.get("class") == "facts"]
    assert [text.split()[0] for text in facts] == ["open", "fixed"]
    text = page.text_content()
    assert "pipe: instructions +4.20 % [+4.10, +4.30]" in text and "The compiler changed too" in text
    assert "fixed" not in "".join(p.text_content() for p in tree(client, "/steps?state=open").iter("ol"))


def test_watched_items_lead_to_their_reviews(client: TestClient) -> None:
    page = tree(client, "/watched")
    assert links(page).count("/experiments/first") == 2
    assert "by v2" in page.text_content()
    assert "bad" in tree(client, "/watched?state=failed").text_content()


def test_what_the_pages_add_restyles_no_class_of_the_report() -> None:
    alone = re.compile(r"(?:^|[,}\n])\s*\.([a-z][\w-]*)\s*(?=[,{])")

    def classes(*parts: str) -> set[str]:
        found = (resources.files("kdelta").joinpath(f"{part}.css").read_text(encoding="utf-8") for part in parts)
        return {name for text in found for name in alone.findall(text)}

    shared = classes(*(f"report/templates/{name}" for name in ("report", "heat", "flame")))
    added = classes("serve/templates/serve")
    assert "key" in shared and "frame" in added and not added & shared


@pytest.mark.parametrize("page", ["", "/report"])
def test_the_charts_of_a_sweep_stand_before_its_rows(client: TestClient, page: str) -> None:
    """They came after thousands of pixels of text."""
    text = client.get(f"/experiments/hostile-sweep{page}").text
    assert 0 < text.index('id="sweep0"') < text.index("<table")
