# SPDX-License-Identifier: GPL-2.0-or-later
"""Suites of programs: packed from this machine, each case its two runs, the files once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.cli import common, reach
from kdelta.cli.main import run as kdelta
from kdelta.guest import packing, suite_programs
from kdelta.model import Case
from kdelta.spec import suites
from kdelta.spec.counted import START, Counted
from kdelta.spec.program import PACK, Program
from kdelta.spec.workloads import Workload, catalogue


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    packing.pack.cache_clear()
    packing.pack_alike.cache_clear()


@pytest.fixture
def known() -> dict[str, Workload]:
    """The catalogue, in which perf's cases are of a program that every machine has."""
    found = catalogue()
    for name, workload in found.items():
        if (one := workload.counted) is not None:
            plain = Counted(title=one.title, run=f"seq {{operations}} {len(name)}", operations=one.operations)
            found[name] = replace(workload, counted=plain)
    return found


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_programs, "missing", lambda _suite: ())


@pytest.mark.usefixtures("installed")
def test_the_two_runs_of_all_cases_have_one_set_of_files(known: dict[str, Workload]) -> None:
    asked = [Case(workload=name) for name in ("getppid", "perf/sched-pipe", "perf/syscall-basic")]
    plain, *mine = suite_programs.packed(asked, known)
    assert plain == asked[0]
    digests = [case.params[key] for case in mine for key in (PACK, START)]
    assert len(set(digests)) == 4
    runs = [Case(workload="perf/x", params={PACK: digest}) for digest in digests]
    specs, trees = packing.of_cases(runs)
    assert len(trees) == 1
    words = [path.read_bytes().split(b"\0")[1] for path in specs.values()]
    assert words == [b"arg=2000", b"arg=1000", b"arg=20000", b"arg=10000"]
    assert set(specs) == {f"program/{digest}" for digest in digests}


@pytest.mark.usefixtures("installed")
def test_programs_of_other_files_are_beside_them(known: dict[str, Workload], tmp_path: Path) -> None:
    (case,) = suite_programs.packed([Case(workload="perf/sched-pipe")], known)
    other = packing.pack(Program(argv=("ls", "-l")), tmp_path)
    specs, trees = packing.of_cases([replace(case, params={PACK: case.params[PACK]}), other])
    assert (len(specs), len(trees)) == (2, 2)


@pytest.mark.parametrize("name", [s.name for s in suites.suites().values() if s.programs])
@pytest.mark.parametrize("how", ["--suite", "--case"])
def test_a_program_that_is_not_installed_is_one_line_with_the_way_to_have_it(
    name: str, how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert kdelta(["compare", "debian:6.12", "debian:7.0", how, name if how == "--suite" else f"{name}/*"]) == 1
    said = capsys.readouterr().err
    assert "is not on this machine: " + suites.suites()[name].remedy in said
    assert said.count("\n") == 1


def test_the_cases_of_all_suites_leave_out_programs_that_are_not_here(
    known: dict[str, Workload], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, there, absent = [Case(workload=name) for name in ("getppid", "perf/sched-pipe", "stress-ng/zero")]
    monkeypatch.setattr(suite_programs, "missing", lambda suite: ("seq",) if suite.name == "stress-ng" else ())
    assert suite_programs.at_hand([plain, there, absent], known) == [plain, there]


@pytest.mark.usefixtures("installed")
def test_a_map_counts_the_programs_of_suites_with_their_packs(
    known: dict[str, Workload], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "load_workloads", lambda _folders: known)
    args = common.CaseArgs(cases=(), suites=(), workloads=(), memcg=False, limit=None)
    programs = [case for case in reach.candidates(args) if known[case.workload].counted is not None]
    assert programs and all({PACK, START} <= set(case.params) for case in programs)
