# SPDX-License-Identifier: GPL-2.0-or-later
"""Test output is read as KTAP says, and two kernels are compared subtest by subtest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.guest import ktap
from kdelta.guest.ktap import Ended

NESTED = """\
KTAP version 1
1..2
  KTAP version 1
  # Subtest: vma
  1..2
    # Subtest: deep
    1..1
    ok 1 leaf
  ok 1 deep
  not ok 2 split
not ok 1 vma
ok 2 - io # SKIP no io_uring
"""


def test_nested_results_get_the_name_of_the_test_around_them() -> None:
    assert ktap.subtests(NESTED.splitlines()) == {
        "vma > deep > leaf": "ok",
        "vma > deep": "ok",
        "vma > split": "not ok",
        "vma": "not ok",
        "io": "skip",
    }


@pytest.mark.parametrize(
    ("line", "name", "result"),
    [
        ("ok 1 pidfd poll test: pass", "pidfd poll test: pass", "ok"),
        ("ok 1 - name", "name", "ok"),
        ("not ok 3 name", "name", "not ok"),
        ("ok", "test 1", "ok"),
        ("ok 2 # SKIP needs root", "test 2", "skip"),
        ("not ok 1 hope # TODO later", "hope", "skip"),
        ("ok 1 expected # XFAIL", "expected", "skip"),
        ("ok 1 slow # TIMEOUT 45 seconds", "slow", "not ok"),
        ("ok 1 child 4711 exited", "child N exited", "ok"),
    ],
)
def test_a_result_line_is_read(line: str, name: str, result: str) -> None:
    assert ktap.subtests([line]) == {name: result}


@pytest.mark.parametrize("line", ["okay 1 x", "# ok 1 comment", "not okay", "Bail out!", ""])
def test_other_lines_are_no_results(line: str) -> None:
    assert ktap.subtests([line]) == {}


def test_results_that_the_plan_announces_and_that_never_come_are_missing() -> None:
    assert ktap.subtests(["1..3", "ok 1 a"]) == {
        "a": "ok",
        "test 2 of the plan": "missing",
        "test 3 of the plan": "missing",
    }


def test_equal_names_are_told_apart_by_their_order() -> None:
    assert ktap.subtests(["ok 1 same", "not ok 2 same"]) == {"same": "ok", "same (2)": "not ok"}


@given(st.lists(st.text(max_size=40), max_size=30))
def test_any_output_is_read_without_an_error(lines: list[str]) -> None:
    ktap.subtests(lines)


@pytest.mark.parametrize(
    ("ended", "result"),
    [
        (Ended(exit=0), "ok"),
        (Ended(exit=4), "skip"),
        (Ended(exit=1), "not ok"),
        (Ended(signal=11), "not ok"),
        (Ended(why="no end within 300000 ms"), "not ok"),
    ],
)
def test_a_program_without_results_counts_by_how_it_ended(ended: Ended, result: str) -> None:
    assert ktap.results({"proc:read": ended}) == {"proc:read": result}


def test_a_subtest_that_fails_anew_is_named_and_not_also_the_program_around_it() -> None:
    before = ktap.results({"p:a": Ended(lines=("ok 1 x", "ok 2 y"), exit=0)})
    after = ktap.results({"p:a": Ended(lines=("ok 1 x", "not ok 2 y"), exit=1)})
    assert ktap.newly_failing(before, after) == ["p:a > y"]


@pytest.mark.parametrize(
    ("before", "after", "worse"),
    [
        ("ok", "ok", False),
        ("ok", "not ok", True),
        ("ok", "skip", True),
        ("ok", "missing", True),
        ("not ok", "not ok", False),
        ("not ok", "ok", False),
        ("skip", "skip", False),
        ("skip", "ok", False),
        ("skip", "not ok", True),
        ("missing", "not ok", False),
    ],
)
def test_the_baseline_is_the_measure(before: ktap.Result, after: ktap.Result, worse: bool) -> None:
    assert bool(ktap.newly_failing({"t": before}, {"t": after})) == worse


def test_a_new_test_that_fails_counts_and_one_that_passes_does_not() -> None:
    assert ktap.newly_failing({}, {"a": "ok", "b": "not ok"}) == ["b"]


def test_a_test_that_is_gone_counts() -> None:
    assert ktap.newly_failing({"a": "ok"}, {}) == ["a"]


def test_the_kept_document_reads_back_as_the_same_results() -> None:
    programs = {
        "p:a": Ended(lines=("1..1", "ok 1 x"), exit=0),
        "p:b": Ended(exit=4),
        "p:c": Ended(signal=9, lines=("dying",)),
    }
    again = ktap.subtests(ktap.text(programs).splitlines())
    assert again == {"p:a > x": "ok", "p:a": "ok", "p:b": "skip", "p:c": "not ok"}


def test_many_results_of_one_name_and_nesting_without_end_are_read_at_once() -> None:
    assert list(ktap.subtests(["ok 1 x"] * 50_000))[-1] == "x (50000)"
    nested = ktap.subtests(" " * (2000 - n) + f"ok {n} x" for n in range(2000))
    assert len(nested) == 2000 and max(map(len, nested)) < 1000


def test_a_plan_of_more_results_than_numbers_have_digits_is_no_error() -> None:
    assert len(ktap.subtests(["1.." + "9" * 5000, "ok 1 x"])) == 10_001
