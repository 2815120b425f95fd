# SPDX-License-Identifier: GPL-2.0-or-later
"""What is printed follows the terminal; to a file or a pipe it is the same whatever the window is."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from kdelta.cli import _terminal
from kdelta.cli.main import run
from kdelta.kernel import cache
from kdelta.model import Case, plans
from kdelta.store.store import Store
from unit.serve import serve_store

LONG = "6.12+0001-a-patch-with-a-name-that-is-long"
COMMANDS = (
    ["report", "one"],
    ["report", "one", "--causes"],
    ["why", "one"],
    ["why", "one", "pidfd_open"],
    ["history"],
    ["history", "pidfd_open"],
    ["report", "one", "--against", "two"],
    ["kernels", "list"],
    ["report", "leaking"],
    ["report", "traced"],
    ["cases", "show", "pipe"],
    ["cases", "show", "path_lookup"],
    ["check", "--list"],
    ["cases"],
    ["triage"],
)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path))
    monkeypatch.delenv("KDELTA_STORE", raising=False)
    monkeypatch.setattr(cache, "entries", lambda: [_cached("6.12.117+deb13-amd64"), _cached(LONG)])
    with Store() as store:
        for name in ("one", "two"):
            store.create(serve_store.experiment(name, ("6.12", LONG)))
            for block, slot in product(range(5), range(2)):
                store.save_boot(name, serve_store.boot(block, slot, cost=1000 if name == "two" else 0))
        cases = (Case(workload="pidfd_open", label="pidfd_open"), Case(workload="pipe", label=f"pipe:{LONG}"))
        named = {"kernels": (serve_store.kernel("6.12"), serve_store.kernel(LONG)), "cases": cases, "mode": "timed"}
        store.create(serve_store.experiment("leaking", (), plan=plans.Leaks(), **named))
        store.create(serve_store.experiment("traced", (), plan=plans.Trace(sets=("locks",)), **named))
    return tmp_path


def _cached(release: str) -> cache.Stored:
    entry = cache.Entry(sha256="ab" * 32, release=release, arch="x86_64", form="bzImage", origin="Debian x")
    return cache.Stored(entry=entry, folder=Path("/cache"), size_bytes=1 << 30, used_s=0.0)


def terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)


@pytest.mark.parametrize("columns", [40, 60, 72, 100, 200])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_line_is_broken_by_the_terminal(
    state: Path, command: list[str], columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(monkeypatch, columns)
    assert run(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > columns and " " in line.strip()] == []


@pytest.mark.parametrize("command", COMMANDS[:-2], ids=" ".join)
def test_a_pipe_gets_the_same_whatever_the_window(
    state: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = set()
    for columns in ("40", "72", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        assert run(command) == 0
        found.add(capsys.readouterr().out)
    assert len(found) == 1


def test_a_wide_terminal_shows_a_kernels_whole_name(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for columns, shown in ((72, False), (120, True)):
        terminal(monkeypatch, columns)
        assert run(["history", "pidfd_open"]) == 0
        assert (LONG in capsys.readouterr().out) is shown


def test_figures_of_a_history_stand_below_their_heading(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history", "pidfd_open"]) == 0
    _, heads, *rows = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert rows and heads.endswith("boots") and {len(row) for row in rows} == {len(heads)}


@pytest.mark.parametrize(("size", "columns"), [(0, 72), (20, 40), (90, 90)])
def test_a_terminal_that_is_too_narrow_or_does_not_know_its_width(
    size: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((size, size)))
    assert _terminal.columns() == columns
