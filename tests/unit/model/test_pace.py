# SPDX-License-Identifier: GPL-2.0-or-later
"""Time left: told from the first moment where it is known how long the like takes, and never negative."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kdelta.model.pace import Pace, words


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_is_known_before_the_first_is_done_where_the_like_was_done_before() -> None:
    clock = Clock()
    pace = Pace(clock, usual_s=3.0)
    pace.at(0, 10)
    assert words(pace.left_s()) == "about 30 s left"
    clock.now = 2.0
    assert words(pace.left_s()) == "about 28 s left"


def test_it_follows_the_pace_that_is_seen() -> None:
    clock = Clock()
    pace = Pace(clock, usual_s=3.0)
    pace.at(4, 10)  # four were done in an earlier run: they say nothing
    clock.now = 60.0
    pace.at(5, 10)
    assert words(pace.left_s()) == "about 5 min left"


def test_what_the_first_makes_for_all_is_no_pace() -> None:
    """A program's guest was restored and rehearsed in 20 s: "about 3 min left" of nine boots that took 8 s."""
    clock = Clock()
    pace = Pace(clock, usual_s=0.5, shared=True)
    pace.at(0, 10)
    clock.now = 20.0
    pace.at(1, 10)
    assert words(pace.left_s()) == "about 4 s left"
    clock.now = 21.0
    pace.at(2, 10)
    assert words(pace.left_s()) == "about 8 s left"
    pace.at(10, 10)
    assert pace.left_s() is None


def test_a_new_wait_begins_anew() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.at(0, 2)
    clock.now = 5.0
    pace.at(2, 2)
    assert pace.left_s() is None
    pace.at(0, 3)
    assert pace.left_s() is None and words(None) == ""


def test_what_was_done_before_a_wait_says_nothing_of_its_pace() -> None:
    """32 of 232 cases of a map were kept: 32 in two seconds promised 11 s, and it took 11 minutes."""
    clock = Clock()
    pace = Pace(clock)
    pace.at(0, 1)  # the kernel is fetched
    clock.now = 2.0
    pace.at(32, 232)
    assert pace.left_s() is None
    clock.now = 28.0
    pace.at(40, 232)
    assert words(pace.left_s()) == "about 10 min left"


def test_the_first_few_of_many_promise_nothing() -> None:
    """Two of the 1818 objects of a build, begun beside other work, were "about 334 min left"."""
    clock = Clock()
    pace = Pace(clock)
    pace.at(0, 1818)
    clock.now = 22.0
    pace.at(2, 1818)
    assert pace.left_s() is None
    clock.now = 40.0
    pace.at(64, 1818)
    assert words(pace.left_s()) == "about 18 min left"


def test_a_plan_that_grows_is_the_same_wait_where_that_is_said() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.at(0, 4, grows=True)
    clock.now = 8.0
    pace.at(4, 8, grows=True)
    assert pace.left() == "; about 8 s left"
    clock.now = 20.0
    assert pace.left() == "", "it took longer than was thought"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(0, 1e6)), max_size=20))
def test_it_is_never_negative(told: list[tuple[int, int, float]]) -> None:
    clock = Clock()
    pace = Pace(clock, usual_s=1.0)
    for done, total, passed_s in told:
        pace.at(done, total)
        clock.now += passed_s
        left_s = pace.left_s()
        assert left_s is None or left_s >= 0
