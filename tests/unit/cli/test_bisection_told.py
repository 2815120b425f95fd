# SPDX-License-Identifier: GPL-2.0-or-later
"""How a bisection tells what it found."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.cli import _bisection
from kdelta.experiment import search
from kdelta.experiment.bisect import Answer
from kdelta.experiment.search import END_PAIRS, Reading, Same
from kdelta.kernel.history import Commit
from kdelta.store.store import Store

COMMITS = tuple(
    Commit(hash=letter * 40, parents=(parent * 40,), author="A", date="2026-11-26", subject=f"x: {letter}")
    for parent, letter in ("ab", "bc")
)
FOUND = Answer(
    experiment="1",
    case="getpid",
    metric="instructions",
    unit="",
    good_value=205,
    bad_value=226,
    commits=2,
    suspects=COMMITS,
    parent="a" * 40,
    skipped=(("b" * 40, "does not build"),),
)


def test_of_several_commits_the_one_that_hides_the_culprit_is_named() -> None:
    """It was "its parent", which the last one's is not, and "cannot be measured or the boots are used up"."""
    assert "because bbbbbbbbbbbb cannot be measured (" in _bisection._verdict(FOUND)
    assert "because the boots are used up (" in _bisection._verdict(replace(FOUND, skipped=()))
    assert _bisection._sides(FOUND) == "cccccccccccc against aaaaaaaaaaaa, which lies before them"
    assert _bisection._sides(replace(FOUND, suspects=COMMITS[:1])) == "Against its parent aaaaaaaaaaaa"


def test_the_good_end_is_a_kernel_that_was_tested_and_none_of_the_commits() -> None:
    """It was "4 of 3 commits tested in 32 boots"."""
    tested = tuple((letter * 40, 205.0) for letter in "abc")
    told = _bisection._verdict(replace(FOUND, suspects=COMMITS[:1], tested=tested, boots=24))
    assert "(3 kernels tested to tell 2 commits apart, in 24 boots; 1)" in told
    assert "to tell 1 commit apart" not in _bisection._verdict(replace(FOUND, suspects=COMMITS[:1], commits=1))


def test_where_all_functions_are_told_the_case_is_named() -> None:
    """\"118 others -160; kdelta why ID\": that said \"118 others -160\" again."""
    told = _bisection._further(replace(FOUND, confirmation="2", case="pipe:writers=1|2"))
    assert told == "kdelta report 2; kdelta why 2 'pipe:writers=1|2'"


def test_ends_that_the_boots_do_not_tell_apart_are_not_said_to_be_alike(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """[-21.78 %, +82.46 %] was "GOOD and BAD do not differ. There is nothing to bisect"."""
    values = 100.0, 70.0, 160.0, 90.0, 120.0
    readings = [Reading(commit, values[(2 * n + commit) % 5]) for n in range(END_PAIRS) for commit in (0, 3)]
    step = search.decide_timed(4, readings, {}, 100)
    assert isinstance(step, Same) and step.open
    alike = [Reading(commit, 100.0 + 0.01 * n) for n in range(END_PAIRS) for commit in (0, 3)]
    step = search.decide_timed(4, alike, {}, 100)
    assert isinstance(step, Same) and not step.open
    answer = replace(FOUND, suspects=(), same_why="in 10 pairs ...")
    with Store(f"sqlite:///{tmp_path / 's.sqlite'}") as store:
        for same_open, told in ((True, "is open: in 10 pairs ....\nNothing was searched"), (False, "do not differ in")):
            _bisection.show(store, replace(answer, same_open=same_open), False)
            assert told in capsys.readouterr().out
