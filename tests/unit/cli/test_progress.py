# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress on a terminal: one line, whatever its width, with how much is done and the time left."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

from kdelta.cli.progress import Reporter


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
