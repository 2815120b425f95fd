# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta why: one case is found by its name or its end, and explained without the others."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.cli.main import run
from kdelta.model import Case, MachineOptions, plans
from kdelta.results import answer
from kdelta.store.store import Store
from unit.serve import serve_store

CASES = tuple(Case(workload="pidfd_open", label=f"syscalls/{name}") for name in ("nanosleep", "getpid", "read-1"))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path))
    monkeypatch.delenv("KDELTA_STORE", raising=False)
    with Store() as store:
        store.create(serve_store.experiment("one", ("6.12", "7.0"), cases=CASES))
        for block in range(5):
            for slot in range(2):
                store.save_boot("one", serve_store.boot(block, slot, cases=len(CASES)))
    return tmp_path


def test_a_case_is_explained_without_the_others_as_with_them(state: Path) -> None:
    with Store() as store:
        whole, _ = answer.result(store, "one")
        alone, detail = answer.result(store, "one", only="syscalls/getpid")
    both = list(zip(whole.results, alone.results, strict=True))
    assert len(both) >= len(CASES) and {cell.case for cell, _ in both} == {case.name for case in CASES}
    assert all((one.verdict, one.effect_percent) == (other.verdict, other.effect_percent) for one, other in both)
    assert [one for one, other in both if one.case == "syscalls/getpid" and one != other] == []
    assert {cell.case for cell in alone.results if cell.because} == {"syscalls/getpid"}
    assert {diff.cell.case for diff in detail.functions} == {"syscalls/getpid"}


@pytest.mark.parametrize("word", ["syscalls/nanosleep", "nanosleep"])
def test_the_end_of_a_name_is_enough(state: Path, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "one", word]) == 0
    assert capsys.readouterr().out.startswith("syscalls/nanosleep: 6.12 -> 7.0")


def test_a_program_is_named_by_its_first_word(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = tuple(Case(workload="pidfd_open", label=name) for name in ("git status", "python3 -c 'print(1)...", "git"))
    with Store() as store:
        later = {"created_at": "2027-01-01T10:00:00+00:00"}
        store.create(serve_store.experiment("two", ("6.12", "7.0"), cases=cases, **later))
        for block, slot in product(range(5), range(2)):
            store.save_boot("two", serve_store.boot(block, slot, cases=len(cases)))
    for words in (["why", "two", "python3"], ["why", "python3"]):
        assert run(words) == 0
        assert capsys.readouterr().out.startswith("python3 -c 'print(1)...: 6.12 -> 7.0")
    assert run(["why", "two", "git"]) == 0
    assert capsys.readouterr().out.startswith("git: 6.12 -> 7.0")


def test_a_case_alone_is_of_the_last_experiment_or_it_is_said_which_has_it(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["why", "nanosleep"]) == 0
    assert capsys.readouterr().out.startswith("syscalls/nanosleep: 6.12 -> 7.0")
    with Store() as store:
        store.create(serve_store.experiment("two", ("6.12", "7.0"), created_at="2027-01-01T10:00:00+00:00"))
    assert run(["why", "nanosleep"]) == 1
    assert "kdelta why one nanosleep" in capsys.readouterr().err
    assert run(["why", "fork_vmas"]) == 1
    assert "--case fork_vmas" in capsys.readouterr().err  # it was asked of the store as an experiment


def test_what_has_no_functions_or_no_table_is_refused_with_what_has(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was said that functions come from exact mode, and that an experiment is a leaks."""
    with Store() as store:
        store.create(serve_store.experiment("timed", ("6.12", "7.0"), mode="timed"))
        store.create(serve_store.experiment("lost", ("6.12",), mode="timed", plan=plans.Leaks()))
    assert run(["why", "timed"]) == 1
    assert "functions come from counts: measure it with --exact" in capsys.readouterr().err
    assert run(["report", "lost", "--format", "mail"]) == 1
    assert "is a check for leaks, which is text, or JSON with --json" in capsys.readouterr().err


def test_boots_that_were_left_out_are_not_told_as_made(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store() as store:
        store.create(serve_store.experiment("three", ("6.12", "7.0"), cases=CASES, blocks=3))
        for block, slot in product(range(3), range(2)):
            boot = serve_store.boot(block, slot, cases=len(CASES))
            why = "not booted: under an earlier seed hung"
            out = replace(boot, state="unsupported", why=why, started_at="", runs=())
            store.save_boot("three", out if slot and block else boot)
    assert run(["report", "three"]) == 0
    assert "4 of 6 boots done, 2 left out: earlier ones had no figure" in " ".join(capsys.readouterr().out.split())


def test_an_export_holds_each_kernel_once(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store() as store:
        store.create(serve_store.experiment("alone", ("7.0",), cases=CASES))
        for block in range(5):
            store.save_boot("alone", serve_store.boot(block, 0, cases=len(CASES)))
    for name, titles in (("one", ["6.12", "7.0"]), ("alone", ["7.0"])):
        assert run(["why", name, "getpid", "--export", "json"]) == 0
        found = json.loads(capsys.readouterr().out)["cases"]
        assert list(found) == [f"syscalls/getpid {title}" for title in titles]
    assert run(["why", "alone", "getpid", "--export", "collapsed"]) == 0
    assert capsys.readouterr().out.count(";") > 0


def test_an_unknown_case_is_answered_with_close_ones_only(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "one", "nanosleap"]) == 1
    told = capsys.readouterr().err
    assert "did you mean nanosleep?" in told and "getpid" not in told


def test_each_case_whose_calls_were_followed_says_where_they_part(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store() as store:
        for block, slot in product(range(5), range(2)):
            store.keep_stacks("one", (block, slot), 1, f"0 0 0 [kernel]\n1 20 1 read\n2 {7 + 9 * slot} 1 copy")
    assert run(["why", "one", "--stacks", "--patched", "7.0"]) == 1
    assert "--patched goes with a case" in capsys.readouterr().err
    assert run(["why", "one"]) == 0
    said = capsys.readouterr().out
    assert said.count("by calls copy +") == 1 and "(itself in read)" in said.replace("\n  ", " ")
    for causes in (["--causes"], ["--format", "markdown"], ["--format", "html"]):
        assert run(["report", "one", *causes]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert said.count("by calls copy +") == 1, causes
    assert run(["why", "one", "getpid"]) == 0
    table = capsys.readouterr().out.partition("where the calls part")[2]
    assert table.splitlines()[3].split()[0] == "copy"


def test_calls_that_cannot_be_followed_are_refused_with_the_reason(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels, later = ("6.12", "7.0"), {"created_at": "2027-01-01T10:00:00+00:00"}
    with Store() as store:
        store.create(serve_store.experiment("eight", kernels, machine=MachineOptions(smp=8), **later))
        store.create(serve_store.experiment("swept", kernels, plan=plans.Sweep(), **later))
        for name, block, slot in product(("eight", "swept"), range(5), range(2)):
            store.save_boot(name, serve_store.boot(block, slot))
    assert run(["why", "eight", "pidfd_open", "--stacks"]) == 1
    assert "in guests with one CPU, and eight have 8" in capsys.readouterr().err
    assert run(["why", "swept", "--stacks"]) == 1
    assert "swept is a sweep: --stacks takes a case" in capsys.readouterr().err
