# SPDX-License-Identifier: GPL-2.0-or-later
"""When guests that wait for seeds on a host of the fleet are there, and when they go."""

from __future__ import annotations

import time

from kdelta.experiment.forks import Forks
from kdelta.fleet.waiting import Waiting


class Made:
    """The forks that were made, in order."""

    def __init__(self) -> None:
        self.all: list[Forks] = []

    def __call__(self) -> Forks:
        self.all.append(Forks(4))
        return self.all[-1]

    @property
    def closed(self) -> list[bool]:
        return [forks.is_closed for forks in self.all]


def waiting(idle_s: float = 60.0) -> tuple[Waiting, Made]:
    made = Made()
    return Waiting(idle_s, made), made


def test_units_of_one_experiment_share_them() -> None:
    kept, made = waiting()
    with kept.of("a") as first, kept.of("a") as second:
        assert first is second
    with kept.of("a") as third:
        assert third is first and made.closed == [False]
    kept.rest()
    assert made.closed == [True]


def test_those_of_another_experiment_go_once_no_unit_of_it_is_in_hand() -> None:
    kept, made = waiting()
    with kept.of("a"):
        with kept.of("b"):
            assert made.closed == [False, False]
        kept.rest()
        assert made.closed == [False, True], "a unit of a is in hand"
    with kept.of("c"):
        assert made.closed == [True, True, False]
    with kept.of("a") as again:
        assert again is made.all[-1] and made.closed == [True, True, True, False]


def test_they_go_when_no_unit_came_for_a_while() -> None:
    kept, made = waiting(idle_s=0.05)
    with kept.of("a"):
        time.sleep(0.15)
        assert made.closed == [False]
    deadline = time.monotonic() + 30
    while made.closed != [True]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_unit_that_fails_leaves_them_to_the_next() -> None:
    kept, made = waiting()
    try:
        with kept.of("a"):
            raise OSError("no")
    except OSError:
        pass
    with kept.of("a"):
        assert made.closed == [False]
    kept.rest()
    assert made.closed == [True]
