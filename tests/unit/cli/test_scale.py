# SPDX-License-Identifier: GPL-2.0-or-later
"""``kdelta scale --exact`` takes numbers of CPUs and lengths of turns, and says what does not go together."""

from __future__ import annotations

import pytest

from kdelta.cli import common
from kdelta.cli.main import run
from kdelta.errors import UserError


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("--exact", "--tasks", "2"), "say --cpus instead of --tasks"),
        (("--exact", "--smp", "2"), "say --cpus instead of --smp"),
        (("--exact", "--cpus", "1"), "on one CPU nothing crosses"),
        (("--exact", "--cpus", "65"), "--cpus '65': give numbers of CPUs in 1..64"),
        (("--exact", "--case", "thread_spawn:tasks=4"), "each CPU has a task"),
        (("--cpus", "2"), "--cpus is for --exact"),
        (("--turn", "200,400", "--tasks", "2"), "--turn takes one length"),
    ],
)
def test_what_does_not_go_together_is_told(
    argv: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["scale", "debian:6.12", "--case", "thread_spawn", *argv]) == 1
    assert complaint in capsys.readouterr().err


def test_lengths_of_turns_are_one_or_several() -> None:
    assert common.turns("200") == (200,)
    assert common.turns("800, 200") == (800, 200)


@pytest.mark.parametrize("text", ["", "19", "1000001", "200,", "a", "200,200"])
def test_other_lengths_of_turns_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="from 20 to 1000000"):
        common.turns(text)
