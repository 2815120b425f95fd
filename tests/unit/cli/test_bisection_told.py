# SPDX-License-Identifier: GPL-2.0-or-later
"""How a bisection tells what it found."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.cli import _bisection, _git_bisect
from kdelta.errors import UserError
from kdelta.experiment import search
from kdelta.experiment.bisect import Answer
from kdelta.experiment.search import END_PAIRS, Reading, Same
from kdelta.kernel.history import Commit
from kdelta.model import Case, PlannedBoot, RunResult, Series
from kdelta.store.store import Store
from unit.report.report_samples import cell
from unit.store.store_builders import boot
from unit.store.store_builders import experiment as stored

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


def test_counts_that_the_seeds_do_not_tell_apart_are_not_said_to_be_alike() -> None:
    """Counts from 100 to 150 at both ends, or four seeds of them, were "GOOD and BAD do not differ"."""
    wide = [Reading(commit, 100.0 + 10 * ((5 * seed + commit * seed) % 6)) for seed in range(8) for commit in (0, 3)]
    for readings, told in ((wide, "under 8 seeds the difference is ["), (wide[:8], "too few")):
        step = search.decide_exact(4, readings, {}, 0.5)
        assert isinstance(step, Same) and step.open and told in step.why, step
    same = [Reading(commit, 100.0) for _ in range(8) for commit in (0, 3)]
    step = search.decide_exact(4, same, {}, 0.5)
    assert isinstance(step, Same) and not step.open


def test_the_levels_of_a_step_are_those_of_guests_as_its_own(tmp_path: Path) -> None:
    """Of a comparison with mitigations on and off the middle lay between the four, and a lost boot was a figure."""

    def counted(value: float) -> RunResult:
        series = Series(metric="instructions", unit="instructions/op", better="lower", values=(value,))
        return RunResult(case=0, state="ok", series=(series,))

    cells = [(k, off, value) for off, sides in ((False, (100, 110)), (True, (50, 55))) for k, value in enumerate(sides)]
    with Store(f"sqlite:///{tmp_path / 's.sqlite'}") as store:
        store.create(stored("e1", mode="exact", cases=(Case(workload="getpid"),), mitigations=("default", "off")))
        for slot, (kernel, off, value) in enumerate(cells):
            plan = PlannedBoot(block=0, slot=slot, kernel=kernel, mitigations="off" if off else "default")
            store.save_boot("e1", replace(boot(0, slot), plan=plan, runs=(counted(value),)))
        lost = PlannedBoot(block=1, slot=0, kernel=0)
        store.save_boot("e1", replace(boot(1, 0), plan=lost, state="lost", runs=(counted(400),)))
        assert _git_bisect.like(store, "e1", "exact", "getpid", "instructions", 1) == (100, 110)
        with pytest.raises(UserError, match="its guests have 1 CPU, those of this step 4: give --smp 1"):
            _git_bisect.like(store, "e1", "exact", "getpid", "instructions", 4)


def test_what_vanishes_can_be_searched_for() -> None:
    """Dentries an object, 0 on GOOD and 1 on BAD: "math domain error", and a traceback, after twenty boots."""
    ends = [Reading(commit, float(commit > 1)) for _ in range(END_PAIRS) for commit in (0, 3)]
    step = search.decide_timed(4, ends, {}, 100)
    assert isinstance(step, search.Measure)
    middle = [Reading(commit, float(commit > 1)) for _ in range(6) for commit in (1, 2, 0, 3)]
    found = search.decide_timed(4, [*ends, *middle], {}, 100)
    assert isinstance(found, search.Found) and (found.first, found.last) == (2, 2)
    alike = search.decide_timed(4, [Reading(commit, 0.0) for _ in range(END_PAIRS) for commit in (0, 3)], {}, 100)
    assert isinstance(alike, Same) and "[+0.00 %, +0.00 %]" in alike.why


def test_what_the_comparison_did_not_decide_is_not_said_to_be_alike() -> None:
    """ "NOT CONFIRMED: these two do not differ beyond the noise" was said of a guest that hung, too."""
    row = cell("getpid", "instructions", verdict="regressed", effect_percent=10.0)
    undecided = (replace(row, verdict="inconclusive"), replace(row, verdict=None, state="hung"))
    assert {_bisection._doubt(FOUND, one) for one in undecided} == {"whether these two differ is not decided"}
    assert "do not differ" in _bisection._doubt(FOUND, replace(row, verdict="same", effect_percent=0.1))
    other = replace(row, verdict="improved", effect_percent=-10.0)
    assert "the other way round" in _bisection._doubt(FOUND, other)
    assert (_bisection._doubt(FOUND, row), _bisection._doubt(replace(FOUND, bad_value=190), other)) == ("", "")


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
    answer = replace(FOUND, suspects=(), same_why="in 10 pairs ...", mode="timed")
    with Store(f"sqlite:///{tmp_path / 's.sqlite'}") as store:
        for same_open, told in ((True, "is open: in 10 pairs ....\nNothing was searched"), (False, "do not differ in")):
            _bisection.show(store, replace(answer, same_open=same_open), False)
            assert told in capsys.readouterr().out
