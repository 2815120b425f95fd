# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta history, export and import as a user types them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.cli.main import run
from kdelta.model import RunResult, Series, plans
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment, kernel


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path / 'cli.sqlite'}"
    monkeypatch.setenv("KDELTA_STORE", url)
    monkeypatch.chdir(tmp_path)
    with Store(url) as store:
        store.create(experiment())
        store.save_boot("first", boot(0, 0))
        store.save_boot("first", boot(0, 1, base=400.0))
        yield store


def test_history_lists_experiments_with_tags_and_notes(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history", "tag", "last", "nightly"]) == 0
    assert run(["history", "note", "fir", "a note"]) == 0
    assert run(["history", "--tag", "nightly"]) == 0
    out = capsys.readouterr().out
    assert "2026-05-01 10:00" in out
    assert "2/4 partial" in out
    assert "6.12 7.0  [nightly]" in out
    assert "a note" in out
    assert all(len(line) <= 72 for line in out.splitlines())


def test_history_of_a_case_shows_figures_and_says_that_they_are_no_verdict(
    filled: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["history", "pidfd_open", "--metric", "ns_per_op"]) == 0
    out = capsys.readouterr().out
    assert "502.0 ns" in out
    assert "402.0 ns" in out
    assert "a trend, not a verdict" in out
    assert all(len(line) <= 72 for line in out.splitlines())


def test_history_as_json(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["experiments"][0]["id"] == "first"
    assert run(["history", "--json", "pipe"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "kdelta-history/1"
    assert [row["value"] for row in found["history"]] == [1002.0, 802.0]


def test_an_empty_store_says_how_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'empty.sqlite'}")
    Store().close()
    assert run(["history"]) == 0
    assert "kdelta compare" in capsys.readouterr().out
    assert run(["export", "last"]) == 1
    assert "no experiment is stored yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["history", "pidfd_opn"], "did you mean 'pidfd_open'?"),
        (["history", "pidfd_open", "--metric", "none"], "has no metric"),
        (["history", "--metric", "ns_per_op"], "needs a case"),
        (["history", "pipe", "--kind", "sweep"], "--kind"),
        (["history", "tag", "first", "two words"], "tag"),
        (["history", "tag", "nothing", "x"], "not in the store"),
        (["history", "delete", "nothing", "--yes"], "not in the store"),
        (["export", "nothing"], "not in the store"),
        (["import", "nothing"], "cannot read"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(
    filled: Store, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    assert run(args) == 1
    err = capsys.readouterr().err
    assert said in err
    assert err.startswith("kdelta: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("answer", "said"), [("", "--yes deletes without asking"), ("n\n", "nothing is deleted")])
def test_what_nobody_confirms_is_not_deleted(
    filled: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, said: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert run(["history", "delete", "last"]) == 1
    assert said in capsys.readouterr().err
    assert filled.done("first")


def test_the_next_command_takes_a_name_with_spaces(
    filled: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "last", "-o", str(tmp_path / "a b.kdelta")]) == 0
    assert f"kdelta import '{tmp_path}/a b.kdelta'" in capsys.readouterr().out


def test_an_experiment_goes_out_and_comes_in(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "last"]) == 0
    assert "first.kdelta: first, 2 boots" in capsys.readouterr().out
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'theirs.sqlite'}")
    assert run(["import", "first.kdelta"]) == 0
    assert "first: 2 boots added; show it with: kdelta report first" in capsys.readouterr().out
    assert run(["import", "first.kdelta"]) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert run(["history", "delete", "last", "--yes"]) == 0
    with Store() as theirs:
        assert theirs.experiments() == []
    assert filled.done("first") == {(0, 0), (0, 1)}


def test_a_history_begins_with_what_the_case_is_about(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """By their letters, code lines stood before instructions, and 26 experiments of them."""
    names = ("instructions", "code_lines")
    series = tuple(Series(metric=name, unit=f"{name}/op", better="lower", values=(1.0,)) for name in names)
    filled.create(experiment("second", created_at="2027", mode="exact"))
    filled.save_boot("second", boot(runs=(RunResult(case=0, state="ok", series=series),)))
    assert run(["history", "pidfd_open"]) == 0
    heads = [line.split()[1] for line in capsys.readouterr().out.splitlines() if "is better)" in line]
    assert heads[-2:] == list(names)


def test_hostile_names_reach_no_terminal(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    nasty = "\x1b[31mred\n\u202e" + "x" * 10_000
    filled.create(experiment("second", kernels=(kernel(nasty),), created_at="2027", plan=plans.Compare(follows=nasty)))
    filled.save_boot("second", boot())
    assert run(["history"]) == 0
    assert run(["history", "pidfd_open"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert all(len(line) <= 72 for line in out.splitlines())


@pytest.mark.parametrize("args", [["history"], ["history", "show"], ["history", "tag"], ["export"], ["import"]])
def test_help_is_there(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*args, "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: kdelta ")


def test_history_says_how_a_kernel_was_started(store: Store) -> None:
    store.create(experiment("a", kernels=(kernel("6.12", arch="arm64"), kernel("7.0", cmdline="init_on_alloc=0"))))
    store.save_boot("a", boot(0, 0))
    store.save_boot("a", boot(0, 1))
    rows = store.history("pidfd_open", "ns_per_op")
    assert {(r.kernel, r.arch, r.cmdline) for r in rows} == {
        ("6.12", "arm64", ""),
        ("7.0", "x86_64", "init_on_alloc=0"),
    }
    assert {r.guests for r in rows} == {", arm64", ""}
