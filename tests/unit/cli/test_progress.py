# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress on a terminal: one line, whatever its width, with how much is done and the time left."""

from __future__ import annotations

import io
import re
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.cli._session import Session
from kdelta.cli.progress import Reporter
from kdelta.store.store import Store
from unit.serve.serve_store import boot, experiment


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [40, 60, 72, 80, 200])
def test_how_much_is_done_and_the_time_left_never_give_way(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Terminal()
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    with Reporter() as reporter:
        reporter.expect(30.0)
        reporter.boots(0, 120, "6.12.117-cloud, seed 1, 7.0.13-cloud, seed 1, 7.2.13-cloud, seed 1")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", told.getvalue())
    lines = {line.strip() for line in re.split(r"[\r\n]+", shown) if "boots" in line}
    assert lines and all("0/120" in line and line.endswith("about 60 min left") for line in lines), lines
    assert all(len(line) <= columns for line in lines)


def test_a_boot_is_expected_to_take_what_the_like_took_here(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/kdelta.sqlite") as store:
        session, asked = Session(store, quiet=True), experiment("20260102-000000-0000", ("6.12", "7.0"))
        guessed_s = session.usual_boot_s(asked, 1)
        assert guessed_s is not None and 0 < guessed_s < 5
        store.create(experiment("20260101-000000-0000", ("6.12", "7.0")))
        for block, slot in ((0, 0), (0, 1), (1, 0), (1, 1)):
            store.save_boot("20260101-000000-0000", boot(block, slot, elapsed_s=400.0))
        expected_s = session.usual_boot_s(asked, 1)
        assert expected_s is not None and expected_s > 2 * guessed_s, "boots of all cases name none"
        several = replace(asked, machine=replace(asked.machine, smp=4))
        assert session.usual_boot_s(several, 1) is None, "ten boots of two CPUs were about 1 s, by one of a system call"


def test_elsewhere_a_step_tells_the_time_left_too(monkeypatch: pytest.MonkeyPatch) -> None:
    told, now = io.StringIO(), [100.0]
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setattr("kdelta.cli.progress.time.monotonic", lambda: now[0])
    with Reporter() as reporter:
        for done in (32, 40, 48):
            reporter.step("mapping 7.0.13", done, 232)
            now[0] += 30.0
    assert told.getvalue().splitlines()[-1] == "mapping 7.0.13 48/232; about 12 min left"


def test_a_terminal_that_obeys_nothing_has_lines_as_a_file_has(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Terminal()
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setenv("TERM", "dumb")
    with Reporter() as reporter:
        reporter.step("mapping 7.0.13")
        reporter.boots(0, 8, "pipe")
    assert told.getvalue() == "mapping 7.0.13\nboots 0/8: pipe\n"


def test_a_step_whose_end_nobody_knows_says_how_long_it_has_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("kdelta.cli.progress.time.monotonic", lambda: now[0])
    with Reporter() as reporter:
        reporter.step("kernel 6.12", 0, 2)
        reporter.step("updating the index")
        now[0] += 43.0
        assert reporter._wait() == "43 s"
        assert reporter._bar is not None and reporter._bar.tasks[0].total is None
        reporter.step("kernel 7.0", 1, 2)
        assert reporter._wait() == ""


def test_elsewhere_a_step_whose_end_nobody_knows_is_told_to_be_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told, now = io.StringIO(), [100.0]
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setattr("kdelta.cli.progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr("kdelta.cli.progress._QUIET_S", 0.02)

    def heard(lines: int) -> list[str]:
        until = time.time() + 10
        while told.getvalue().count("\n") < lines and time.time() < until:
            time.sleep(0.01)
        return told.getvalue().splitlines()

    with Reporter() as reporter:
        reporter.step("updating the index")
        now[0] += 43.0
        assert heard(2) == ["updating the index", "updating the index: 43 s so far"]
        now[0] += 1.0
        reporter.step("mapping 7.0.13", 0, 232)
        now[0] += 430.0
        time.sleep(0.1)
    assert told.getvalue().splitlines()[2:] == ["mapping 7.0.13 0/232"]
    with Reporter(quiet=True) as reporter:
        reporter.step("updating the index")
        now[0] += 43.0
        time.sleep(0.1)
    assert told.getvalue().count("\n") == 3
