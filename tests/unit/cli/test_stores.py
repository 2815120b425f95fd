# SPDX-License-Identifier: GPL-2.0-or-later
"""A store that the user named and that is not there: nobody makes it silently, and who only reads does not make it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kdelta.cli import _again, _kernels, _session, _stores
from kdelta.cli.main import run
from kdelta.errors import UserError
from kdelta.store.store import Store
from unit.inbox import stand_ins
from unit.store.store_builders import experiment

Said = Callable[[], tuple[str, str]]


@pytest.fixture
def typo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is not there, in directories that are not there."""
    path = tmp_path / "typo" / "nested" / "x.sqlite"
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{path}")
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def read() -> tuple[str, str]:
        captured = capsys.readouterr()
        return captured.out, captured.err

    return read


@pytest.mark.parametrize(
    "line",
    [
        "report last",
        "why last pipe",
        "export last",
        "findings",
        "publish site",
        "serve --port 0",
        "post patchwork 1 last --url https://x.example --target-url https://y.example",
        "history pipe",
        "history tag last nightly",
        "history note last text",
        "history delete last --yes",
        "triage ab12 fixed",
        "resume last",
        "calibrate --resume last",
        "bisect --resume last",
        "sweep --add last debian:7.0",
    ],
)
def test_who_goes_by_what_is_stored_refuses_a_store_that_is_not_there(line: str, typo: Path, said: Said) -> None:
    assert run(line.split()) == 1
    out, err = said()
    why = "KDELTA_STORE names it, but it is not there; correct the name, or measure into it first"
    assert err == f"kdelta: store {typo}: {why}\n"
    assert not out and not typo.parent.parent.exists()


def test_a_list_of_what_is_not_there_is_empty_and_says_why(typo: Path, said: Said) -> None:
    box = stand_ins.mbox(typo.parents[2] / "box", [])
    note = f"note: store {typo}: KDELTA_STORE names it, but it is not there; it is made by the first measurement\n"
    empty = {
        "history": "No experiment yet",
        "history --tag nightly": "No experiment yet",
        "triage": "",
        f"watch {box} --list": "0 items",
    }
    for line, words in empty.items():
        assert run(line.split()) == 0
        out, err = said()
        assert words in out and err == note
    assert run(["history", "--json"]) == 0
    out, err = said()
    assert (json.loads(out)["experiments"], err) == ([], note)
    assert not typo.parent.parent.exists()


def test_a_path_from_here_is_named_whole_with_how_an_absolute_one_is_written(
    typo: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.setenv("KDELTA_STORE", "sqlite:///srv/lab.sqlite")
    assert run(["report", "last"]) == 1
    err = said()[1]
    assert str(Path.cwd() / "srv" / "lab.sqlite") in err
    assert "(three slashes begin a path from here, four an absolute one)" in err
    assert not Path("srv").exists()


def test_who_measures_makes_it_and_says_so_once(typo: Path, said: Said) -> None:
    with _session.opened() as session:
        session.store.create(experiment())
    assert said()[1] == f"new store: {typo}, as KDELTA_STORE names it\n"
    with _session.opened() as session:
        assert len(session.store.experiments()) == 1
    assert run(["history"]) == 0
    assert said()[1] == ""


def test_a_quiet_one_says_nothing(typo: Path, said: Said) -> None:
    with _session.opened(quiet=True) as session:
        session.store.create(experiment())
    assert said()[1] == "" and typo.exists()


@pytest.mark.parametrize(
    "line",
    [
        "compare debian:6.12 nowhere",
        "run nowhere",
        "sweep",
        "sweep debian:7.0..6.1",
        "bisect debian:6.1 debian:6.12",
        "calibrate debian:six",
        "leaks debian:6.12 nowhere",
        "scale nowhere",
        "trace nowhere --what locks",
        "review nowhere --tree .",
        "import nowhere",
        "import nothing.kdelta",
    ],
)
def test_who_fails_before_it_measures_leaves_none_behind(line: str, typo: Path, tmp_path: Path, said: Said) -> None:
    (tmp_path / "nothing.kdelta").write_text("no experiment")
    assert run(line.split()) == 1
    assert "new store" not in said()[1]
    assert not typo.parent.parent.exists()


def test_until_something_is_kept_it_is_empty_for_every_thread(typo: Path, said: Said) -> None:
    with _session.opened() as session:
        for read in (session.store.experiments, session.store.steps):
            with ThreadPoolExecutor() as pool:
                assert pool.submit(read).result() == read() == []
        assert not typo.parent.parent.exists()
        session.store.create(experiment())
        with ThreadPoolExecutor() as pool:
            assert len(pool.submit(session.store.experiments).result()) == 1


def test_it_is_told_above_the_progress_that_is_shown(typo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    with _session.opened() as session, session.progress() as shown:
        monkeypatch.setattr(shown, "note", told.append)
        session.store.create(experiment())
    assert told == [f"new store: {typo}, as KDELTA_STORE names it"]


def test_one_that_cannot_be_made_is_refused_before_anything_is_fetched(
    tmp_path: Path, typo: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path}/file/x.sqlite")
    monkeypatch.setattr(_kernels, "named", None)
    assert run(["sweep", "debian:6.12", "debian:7.0"]) == 2
    where = f"store {tmp_path}/file/x.sqlite: cannot be made in {tmp_path}/file: Not a directory"
    assert said()[1] == f"kdelta: {where}; set KDELTA_STORE to another\n"


def test_an_import_makes_it_and_says_so(
    typo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    with Store(f"sqlite:///{tmp_path / 'other.sqlite'}") as store:
        store.create(experiment())
        store.export("first", tmp_path / "first.kdelta")
    assert run(["import", str(tmp_path / "first.kdelta")]) == 0
    assert said()[1] == f"new store: {typo}, as KDELTA_STORE names it\n"
    assert run(["report", "nothing"]) == 1
    assert "not in the store" in said()[1]


def test_what_asks_in_passing_makes_none(typo: Path) -> None:
    assert _again.begun(["debian:6.12", "debian:7.0"], each=False) is None
    with pytest.raises(UserError):  # a shell that completes is offered nothing
        _stores.reading()
    assert not typo.parent.parent.exists()


def test_the_default_store_is_made_as_ever(
    typo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    for name in (None, ""):
        if name is None:
            monkeypatch.delenv("KDELTA_STORE")
        else:
            monkeypatch.setenv("KDELTA_STORE", name)
        assert run(["history"]) == 0
        out, err = said()
        assert "No experiment yet" in out and not err
        assert run(["export", "last"]) == 1
        assert "no experiment is stored yet" in said()[1]
    assert (tmp_path / "state" / "kdelta.sqlite").exists()


@pytest.mark.parametrize("name", ["nonsense", "mysql://host/x", "sqlite://", "sqlite:///:memory:"])
def test_what_is_no_file_is_for_who_opens_it(name: str, typo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_STORE", name)
    assert _stores.missing() is None


def test_an_empty_file_and_one_that_is_no_store_are_there(typo: Path, said: Said) -> None:
    typo.parent.mkdir(parents=True)
    typo.touch()
    assert run(["history"]) == 0
    assert said()[1] == ""
    assert sqlite3.connect(typo).execute("SELECT version_num FROM kdelta_revision").fetchone()
    typo.write_text("a text, not a database, of some length" * 100)
    assert run(["history"]) == 1
    assert "not a kdelta store" in said()[1]
