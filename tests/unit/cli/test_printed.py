# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta report --printed: what a program printed first, and that more may have come."""

from __future__ import annotations

import json
import zlib

import pytest

from kdelta.cli import report
from kdelta.errors import UserError
from kdelta.model import BootResult, PlannedBoot, RunResult


class Stored:
    def __init__(self, *lines: str, runs: tuple[RunResult, ...] = ()) -> None:
        self._lines, self._runs = lines, runs

    def boot(self, _experiment: str, block: int, slot: int) -> BootResult:
        return BootResult(plan=PlannedBoot(block=block, slot=slot, kernel=0), state="ok", runs=self._runs)

    def stream(self, *_: object) -> bytes:
        found = []
        for number, line in enumerate(self._lines):
            text = f"{number} {json.dumps({'t': 'out', 'j': 0, 'text': line})}"
            found.append(f"kd1 {number} {zlib.crc32(text.encode()):08x} {text.partition(' ')[2]}\n".encode())
        return b"".join(found)


def test_output_that_may_be_cut_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert report._printed(Stored("one", "two"), "last", "0.0") == b"one\ntwo\n"
    assert capsys.readouterr().err == ""
    assert len(report._printed(Stored(*["123"] * 1023, "12"), "last", "0.0")) == 4095
    assert "the last line here may be cut" in capsys.readouterr().err


def test_of_a_program_that_failed_it_is_said_why_nothing_is_there() -> None:
    """It had printed something, and "no program printed anything" was wrong."""
    failed = RunResult(case=0, state="failed", why="a ended with exit status 3, not 0: no room")
    with pytest.raises(UserError, match=r"only of what ends well is it kept; there: failed: a ended with .*: no room"):
        report._printed(Stored(runs=(failed,)), "last", "0.0")
    with pytest.raises(UserError, match="no program printed anything in that boot of last"):
        report._printed(Stored(), "last", "0.0")
