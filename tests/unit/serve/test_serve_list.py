# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of experiments as a team reads it: verdict chips, filters that are addresses, ways to any comparison."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import html
from msgspec.structs import replace
from starlette.testclient import TestClient

from kdelta.cli.main import run
from kdelta.model import CallCount, Case, MachineOptions, RunResult
from kdelta.results.outcomes import Outcome, Outcomes
from kdelta.serve import history_pages
from kdelta.serve.app import create_app
from kdelta.serve.guard import Access
from kdelta.store.rows import ExperimentRow
from kdelta.store.store import Store
from unit.serve.serve_store import boot, experiment, fill_sweep

SEEDS = 5  # enough for a verdict on counts that do not vary


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with Store(f"sqlite:///{tmp_path_factory.mktemp('list') / 'kdelta.sqlite'}") as store:
        for day, (name, case, labels, costs) in enumerate(
            (
                ("better", "pidfd_open", ("6.12", "7.0"), (1000, 900)),
                ("worse", "pipe", ("6.1", "7.0"), (1000, 1100)),
                ("equal", "pipe", ("6.1", "6.1-again"), (1000, 1000)),
            ),
            1,
        ):
            when = f"2026-05-0{day}T10:00:00+00:00"
            store.create(experiment(name, labels, blocks=SEEDS, cases=(Case(workload=case),), created_at=when))
            for block in range(SEEDS):
                for slot, cost in enumerate(costs):
                    store.save_boot(name, boot(block, slot, cost=cost))
        fill_sweep(store)
        yield TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")


def main(client: TestClient, address: str) -> html.HtmlElement:
    answer = client.get(address)
    assert answer.status_code == 200
    return html.fromstring(answer.text).find(".//main")


def addresses(page: html.HtmlElement) -> list[str]:
    return [link.get("href") for link in page.findall(".//a")]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?verdict=improved", {"better", "sweep"}),
        ("?verdict=regressed", {"worse", "sweep"}),
        ("?verdict=same", {"equal"}),
        ("?kernel=7.0&verdict=regressed", {"worse", "sweep"}),
        ("?kernel=6.12&kind=compare", {"better"}),
        ("?case=pipe", {"worse", "equal"}),
        ("?case=pipe&verdict=improved", set()),
        ("?verdict=nonsense", set()),
    ],
)
def test_a_filter_by_verdict_kernel_or_case_is_an_address(client: TestClient, query: str, names: set[str]) -> None:
    found = addresses(main(client, "/experiments" + query))
    assert {one.removeprefix("/experiments/") for one in found if one.startswith("/experiments/")} == names


def test_a_filter_of_many_experiments_shows_what_is_known_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a store of 3,000 the first page by verdict took three minutes."""
    gate, asked = threading.Event(), []
    made = Outcomes._made

    def slow(self: Outcomes, row: ExperimentRow) -> Outcome:
        asked.append(row.id)
        assert row.id == "new" or gate.wait(60)
        return made(self, row)

    monkeypatch.setattr(Outcomes, "_made", slow)
    monkeypatch.setattr(history_pages, "PATIENCE_S", 0.2)
    with Store(f"sqlite:///{tmp_path / 'kdelta.sqlite'}") as store:
        for day, name in enumerate(("oldest", "old", "new"), 1):
            store.create(experiment(name, ("6.12", "7.0"), blocks=SEEDS, created_at=f"2026-05-0{day}T10:00:00+00:00"))
            for block in range(SEEDS):
                for slot in (0, 1):
                    store.save_boot(name, boot(block, slot, cost=1000 - 100 * slot))
        client = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
        for _ in range(2):
            page = main(client, "/experiments?verdict=improved")
            assert len(page.findall(".//li")) == 1 and "2 others not yet looked at" in page.text_content()
        page = main(client, "/experiments?verdict=regressed")
        assert "No experiment matches so far." in page.text_content()
        gate.set()
        monkeypatch.setattr(history_pages, "PATIENCE_S", None)
        page = main(client, "/experiments?verdict=improved")
        assert len(page.findall(".//li")) == 3 and "not yet" not in page.text_content()
    assert sorted(asked) == ["new", "old", "oldest"], "each is worked out once"


def test_each_verdict_has_a_chip_and_a_sweep_its_steps(client: TestClient) -> None:
    page = main(client, "/experiments")
    chips = {item.find("h2/a").get("href"): item.findall("p[@class='chips']/a") for item in page.findall(".//ol/li")}
    told = {name.removeprefix("/experiments/"): [one.text for one in found] for name, found in chips.items()}
    assert told == {
        "better": ["1 improved"],
        "worse": ["1 regressed"],
        "equal": ["1 same"],
        "sweep": ["1 regressed", "2 improved"],
    }
    (steps,) = page.xpath("//li[h2/a/@href='/experiments/sweep']/p[@class='chips']/span")
    assert steps.text == "3 steps"
    assert "3 steps over 4 kernels" in main(client, "/experiments/sweep").text_content()
    (chip,) = chips["/experiments/worse"]
    assert chip.get("href") == "/experiments?verdict=regressed" and "v-regressed" in chip.get("class")


def test_a_chip_says_what_the_page_says_of_a_program_that_makes_other_calls(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'kdelta.sqlite'}") as store:
        store.create(experiment("spun", ("6.12", "7.0"), blocks=SEEDS))
        for block in range(SEEDS):
            for slot, calls in enumerate((10, 90 + block)):
                made = boot(block, slot, cost=100 * calls)
                (run,) = made.runs
                assert run.profile is not None
                one = {"access": CallCount(calls=calls * run.profile.ops, instructions=1600 * calls, rep_bytes=0)}
                told = replace(run, profile=replace(run.profile, system_calls=one))
                store.save_boot("spun", replace(made, runs=(told,)))
        client = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
        (chip,) = main(client, "/experiments").findall(".//p[@class='chips']/a")
        assert chip.text == "1 inconclusive"
        said = "made other calls (access 10 -> 92 per operation, the mean of all seeds)"
        assert said in main(client, "/experiments/spun").text_content()


def test_a_kernel_that_hangs_in_every_case_has_a_chip_a_filter_and_a_line_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    with Store() as store:
        store.create(experiment("stuck", ("6.12", "7.0"), blocks=SEEDS))
        store.create(experiment("fine", ("6.12", "6.13"), blocks=SEEDS, created_at="2026-05-02T10:00:00+00:00"))
        for block in range(SEEDS):
            store.save_boot("stuck", boot(block, 0))
            hung = RunResult(case=0, state="hung", why="no answer")
            store.save_boot("stuck", replace(boot(block, 1), runs=(hung,)))
            for slot in (0, 1):
                store.save_boot("fine", boot(block, slot, cost=1000))
        client = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
        chips = main(client, "/experiments").findall(".//p[@class='chips']/a")
        assert [chip.text for chip in chips] == ["1 same", "1 hung"]
        assert "/experiments/fine" not in addresses(main(client, chips[1].get("href")))
        words = main(client, "/experiments").xpath("//select[@name='verdict']/option/@value")
        assert words == ["", "hung", "regressed", "improved", "inconclusive", "same", "descriptive"]
    assert run(["list"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[2] == "  6.12 6.13" and told[3] == "  pidfd_open: 1 same" and told[6] == "  pidfd_open: 1 hung"


def test_a_case_that_gets_no_verdict_is_not_left_out(tmp_path: Path) -> None:
    """The list's counts did not add up to its cases."""
    with Store(f"sqlite:///{tmp_path / 'kdelta.sqlite'}") as store:
        store.create(experiment("short", ("6.12", "7.0"), blocks=1))
        for slot in (0, 1):
            store.save_boot("short", boot(0, slot, cost=1000 + slot))
        client = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
        (chip,) = main(client, "/experiments").findall(".//p[@class='chips']/a")
        assert chip.text == "1 descriptive"
        assert "/experiments/short" in addresses(main(client, chip.get("href")))


def test_any_two_kernels_are_compared_from_an_experiments_page(client: TestClient) -> None:
    found = [one for one in addresses(main(client, "/experiments/better")) if one.startswith("/compare?")]
    assert found == ["/compare?a=6.12&ax=better", "/compare?a=7.0&ax=better"]
    chosen = main(client, found[0] + "&b=6.1").findall(".//option[@selected]")
    assert {"6.12", "6.1"} <= {one.get("value") for one in chosen}
    assert "/compare?a=7.0&ax=better" in addresses(main(client, "/history?case=pidfd_open"))


def test_a_kernel_or_experiment_that_is_gone_is_named_where_it_was_to_be_compared(client: TestClient) -> None:
    """Another experiment stood in its place, or nothing, without a word."""
    for address, told in (
        ("/compare?a=5.4&b=7.0", ["No experiment has measured 5.4, or it was deleted: choose another kernel."]),
        (
            "/compare?a=6.12&ax=deleted&b=7.0",
            [
                "Experiment deleted has no figures of 6.12, or it was deleted: "
                "its newest experiment stands here instead."
            ],
        ),
        ("/compare?a=6.12&b=7.0&bx=better", []),
        ("/compare?a=&b=7.0", []),
    ):
        assert [one.text for one in main(client, address).xpath(".//p[@role='alert']")] == told


def test_guests_of_other_sizes_are_told_where_two_kernels_are_compared(tmp_path: Path) -> None:
    """Guests of 4 and of 24 CPUs stood side by side, +88 %, with "both are the same image"."""
    with Store(f"sqlite:///{tmp_path / 'kdelta.sqlite'}") as store:
        for name, cpus in (("small", 4), ("large", 24)):
            store.create(experiment(name, ("6.12",), blocks=1, machine=MachineOptions(smp=cpus)))
            store.save_boot(name, boot(0, 0))
        client = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
        told = main(client, "/compare?a=6.12&ax=small&b=6.12&bx=large").text_content()
        assert "measured otherwise, too: 4 CPUs in the first, 24 CPUs in the second." in told
        assert "otherwise" not in main(client, "/compare?a=6.12&ax=small&b=6.12&bx=small").text_content()


def test_last_has_a_link_that_stays_the_same(client: TestClient) -> None:
    assert "/experiments/equal" in addresses(main(client, "/experiments/last"))


def test_the_list_tells_experiments_on_the_same_kernels_apart_by_their_cases() -> None:
    def told(*names: str) -> str:
        return Outcome(cases=frozenset(names)).told

    assert told("pipe", "fork_vmas") == "fork_vmas, pipe"
    assert told("a/x", "a/y", "a/z", "a/w") == "4 cases of a"
    assert told("a/x", "b/y", "a/z", "a/w") == told("a/x", "pipe", "a/z", "a/w") == "4 cases"
    assert told() == ""


def test_of_a_patch_that_no_case_executes_the_list_says_that_nothing_was_measured(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'kdelta.sqlite'}") as store:
        store.create(experiment("one", ("6.12", "6.12+fix"), blocks=SEEDS, cases=()))
        pages = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
        (row,) = html.fromstring(pages.get("/").text).xpath("//ol[@class='experiments']/li")
        assert row.xpath("string(.//span[@class='cases'])") == "nothing was measured"


def test_an_experiment_is_counted_in_the_list_as_on_its_own_page(tmp_path: Path) -> None:
    """Figures beside the primary metric stand in no table: nine "improved" stood in the list, one on the page."""
    with Store(f"sqlite:///{tmp_path / 'kdelta.sqlite'}") as store:
        store.create(experiment("one", ("6.12", "7.0"), blocks=SEEDS))
        for block in range(SEEDS):
            for slot, cost in enumerate((1000, 900)):
                done = boot(block, slot, cost=cost)
                beside = replace(done.runs[0].series[0], metric="loads", unit="loads/op")
                run = replace(done.runs[0], series=(*done.runs[0].series, beside))
                store.save_boot("one", replace(done, runs=(run,)))
        pages = TestClient(create_app(store, Access(), pytest.fail), base_url="http://localhost")
        (row,) = html.fromstring(pages.get("/").text).xpath("//ol[@class='experiments']/li")
        assert [chip.text_content() for chip in row.xpath(".//a[starts-with(@class, 'chip')]")] == ["1 improved"]
        assert row.xpath("string(.//span[@class='cases'])") == "pidfd_open"
        assert "1 improved" in pages.get("/experiments/one").text
