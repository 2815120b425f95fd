# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta publish: every page of a store with strangers' texts as a file, and no link that leads nowhere."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from lxml import html

from kdelta.cli.main import run
from kdelta.serve import page, site
from kdelta.serve.app import create_app
from kdelta.serve.guard import Access
from kdelta.serve.site import file_name
from kdelta.store.store import Store
from unit.serve.serve_store import experiment, filled


def test_every_link_of_the_site_leads_to_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path).close()
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    made = tmp_path / "site"
    assert run(["publish", str(made), "--quiet"]) == 0
    pages = sorted(made.rglob("*.html"))
    names = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    assert {"index.html", "style.css", "experiments/first.html", "experiments/first.json"} <= names
    assert f"{len(names) - 1} files" in capsys.readouterr().out
    followed = 0
    styles = {html.parse(path).xpath("string(//link[@rel='stylesheet']/@href)").split("/")[-1] for path in pages}
    assert styles == {"", f"style.css?{page.style_digest()}"}  # the reports have their style inside
    for path in pages:
        tree = html.fromstring(path.read_bytes())
        assert not tree.findall(".//script") and not tree.findall(".//form"), path
        for link in (a.get("href") for a in tree.iter("a", "link")):
            if link.startswith(("#", "data:")):
                continue
            parts = urlsplit(link)
            assert not parts.scheme and not parts.netloc and not link.startswith("/"), (path, link)
            assert (path.parent / unquote(parts.path)).resolve().is_file(), (path, link)
            followed += 1
    assert followed > 100
    assert all(len(part) < 200 and part.isascii() and "<" not in part for name in names for part in name.split("/"))


def test_how_many_pages_there_will_be_is_told_once_an_experiment_was_gone_through(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        said: list[tuple[int, int | None]] = []
        made = list(site.files(create_app(store, Access(), print), print, lambda *at: said.append(at)))
    assert [done for done, _ in said] == list(range(len(made)))
    assert said[0] == (0, 1) and said[1][1] is None, "the first experiment is open"
    told = [total for _, total in said if total]
    assert said[-1][1] == len(made) and len(told) > len(said) / 3
    assert all(total >= done for done, total in said if total)


def test_one_experiment_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 's.sqlite'}")
    with Store(f"sqlite:///{tmp_path / 's.sqlite'}") as store:
        store.create(experiment("e", ("6.12", "7.0")))
    assert run(["publish", str(tmp_path / "site")]) == 0
    assert "making the pages of 1 experiment\n" in capsys.readouterr().err


def test_a_second_run_replaces_its_own_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'empty.sqlite'}")
    Store().close()
    made = tmp_path / "site"
    assert run(["publish", str(made), "-q"]) == 0
    (made / "CNAME").write_text("kernels.example\n")
    (made / "gone.html").touch()
    with (made / ".kdelta-site").open("a") as listed:
        listed.write("gone.html\n../kept\n")
    (tmp_path / "kept").touch()
    assert run(["publish", str(made), "-q"]) == 0
    assert not (made / "gone.html").exists() and (made / "CNAME").exists() and (tmp_path / "kept").exists()
    capsys.readouterr()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    assert run(["publish", str(tmp_path / "other"), "-q"]) == 1
    assert "has other files in it: name a new directory" in capsys.readouterr().err


def test_where_nothing_can_be_written_no_page_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'empty.sqlite'}")
    monkeypatch.setattr(site, "files", lambda *_: pytest.fail("pages were made"))
    assert run(["publish", "/proc/kdelta-site", "-q"]) == 1
    assert "/proc/kdelta-site: cannot be written" in capsys.readouterr().err


def test_addresses_become_names_that_differ_where_they_do() -> None:
    assert file_name("/experiments") == file_name("/") == "index.html"
    assert file_name("/style.css") == file_name("/style.css?0123456789ab") == "style.css"
    assert file_name("/experiments/a1") == "experiments/a1.html"
    assert file_name("/experiments/a1/report.csv") == "experiments/a1/report.csv"
    assert file_name("/experiments/a1/boots/0.1") == "experiments/a1/boots/0.1.html"
    asked = ["?case=a/b", "?case=a b", "?case=a%2Fb", "?case=a-b", ""]
    assert len({file_name("/history" + query) for query in asked}) == len(asked) - 1  # one is another's spelling
    assert ".." not in file_name("/experiments/%2e%2e/%2e%2e%2fx").split("/")
