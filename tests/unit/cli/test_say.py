# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing that came from outside acts on a terminal, on standard error neither."""

from __future__ import annotations

import pytest

from kdelta.cli._say import harmless, say
from kdelta.cli.main import run
from kdelta.cli.progress import Reporter

EVIL = "a\x1b]0;owned\x07\x1b[2J\u202egpj\x9b31m\rz"


def test_lines_and_tabs_stay_and_nothing_else_acts() -> None:
    assert harmless("one\n\ttwo é 10 µs → ✓") == "one\n\ttwo é 10 µs → ✓"
    shown = harmless(EVIL)
    assert shown.isprintable() and "\\x1b]0;owned\\x07" in shown and "\\u202e" in shown


def test_errors_progress_and_notes_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    run(["compare", "debian:6.12", f"/nowhere/{EVIL}"])
    run([EVIL])
    with Reporter() as reporter:
        reporter.step(EVIL)
        reporter.boots(0, 1, EVIL)
        reporter.note(EVIL)
    say(EVIL)
    out, err = capsys.readouterr()
    assert len(err.splitlines()) >= 5
    assert all(line.isprintable() for line in (out + err).split("\n"))
