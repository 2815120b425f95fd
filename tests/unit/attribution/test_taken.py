# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a change is that code moved between a function and what it calls."""

from __future__ import annotations

import pytest

from kdelta.attribution.because import differences, held, line
from kdelta.model import Because, Profile
from unit.attribution import counts

CALLS = {"syscall": "exit read", "fork": "exit", "exit": "prepare work"}
# 7.0 has the exit of a system call, which ended in two functions more, in the entry itself.
OLD = counts.profile({"syscall": 54, "fork": 6, "exit": 40, "prepare": 12, "work": 9, "read": 100}, calls=CALLS)
NEW = counts.profile({"syscall": 81, "fork": 6, "work": 9, "read": 140}, calls={"syscall": "work read", "fork": "work"})


def told(before: Profile, after: Profile) -> Because:
    found = held(line(differences(before, after)), before, after)
    assert found is not None
    return found


def test_a_function_that_grew_is_held_against_what_vanished_below_it() -> None:
    found = told(OLD, NEW)
    assert found.changed == (("read", 40.0), ("syscall", 27.0))
    assert dict(found.taken) == {"syscall": pytest.approx(-52 * 0.9)}, "the rest was below fork"
    assert (found.gone_delta, found.gone_kept) == (-52.0, 27.0)


def test_so_is_the_other_way() -> None:
    found = told(NEW, OLD)
    assert dict(found.taken) == {"syscall": pytest.approx(52 * 0.9)}
    assert (found.new_delta, found.new_kept) == (52.0, 27.0)


def test_what_ends_elsewhere_is_not_held_against_it() -> None:
    before = counts.profile({"syscall": 54, "helper": 40, "other": 5}, calls={"other": "helper", "syscall": "read"})
    after = counts.profile({"syscall": 81, "other": 5}, calls={"syscall": "read", "other": "read"})
    assert told(before, after).taken == ()
    assert told(before, after).gone_kept == 0.0


def test_functions_that_call_each_other_are_followed_once() -> None:
    calls = {"syscall": "a", "a": "b", "b": "a"}
    before = counts.profile({"syscall": 10, "a": 20, "b": 5}, calls=calls)
    after = counts.profile({"syscall": 30}, calls={"syscall": "read"})
    ((name, taken),) = told(before, after).taken
    assert name == "syscall" and -25.0 <= taken < 0.0


def test_without_calls_nothing_is_held_against_anything() -> None:
    before, after = counts.profile({"syscall": 54, "exit": 40}), counts.profile({"syscall": 81})
    assert told(before, after) == line(differences(before, after))


def test_what_stands_for_what_vanished_below_the_same_is_not_all_new() -> None:
    calls = {"switch": "update", "update": "clock"}
    before = counts.profile({"switch": 50, "update": 60, "clock": 5}, calls=calls)
    after = counts.profile({"switch": 50, "update_se": 100, "clock": 5}, calls={"switch": "update_se"})
    found = told(before, after)
    assert (found.new, found.new_delta, found.new_kept) == (("update_se",), 100.0, 60.0)
    assert (found.gone, found.gone_delta, found.gone_kept) == (("update",), -60.0, 60.0)
    alone = counts.profile({"switch": 50, "update": 60, "clock": 5, "work": 80}, calls={**calls, "clock": "work"})
    assert told(before, alone).new_kept == 0.0
