# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest says of its programs is read by program; options that cannot work are refused early."""

from __future__ import annotations

import pytest

from kdelta.cli import _patching
from kdelta.errors import UserError
from kdelta.experiment import selftests
from kdelta.guest.ktap import Ended
from kdelta.guest.protocol import Done, Job, Output, Record, Value

PROGRAMS = [("pidfd", "pidfd_test"), ("proc", "read"), ("proc", "self")]


def test_records_are_read_by_program() -> None:
    records: list[Record] = [
        Job(j=0, case="selftest"),
        Output(j=0, text="ok 1 a"),
        Output(j=0, text="ok 2 b"),
        Value(j=0, name="exit", v=0.0),
        Done(j=0, state="ok"),
        Job(j=1, case="selftest"),
        Value(j=1, name="signal", v=11.0),
        Done(j=1, state="ok"),
        Job(j=2, case="selftest"),
        Done(j=2, state="hung", why="no end within 298000 ms"),
    ]
    assert selftests.read(records, PROGRAMS, "") == {
        "pidfd:pidfd_test": Ended(lines=("ok 1 a", "ok 2 b"), exit=0),
        "proc:read": Ended(signal=11),
        "proc:self": Ended(why="no end within 298000 ms"),
    }


def test_a_guest_that_panics_fails_the_programs_that_did_not_end() -> None:
    records: list[Record] = [Value(j=0, name="exit", v=0.0), Done(j=0, state="ok"), Output(j=1, text="ok 1 begun")]
    found = selftests.read(records, PROGRAMS, "the guest panicked: Kernel panic")
    assert found["pidfd:pidfd_test"].result == "ok"
    assert {found[name].why for name in ("proc:read", "proc:self")} == {"the guest panicked: Kernel panic"}


def test_records_of_no_program_are_passed_over() -> None:
    found = selftests.read([Output(j=77, text="x"), Done(j=77, state="ok")], PROGRAMS[:1], "")
    assert found["pidfd:pidfd_test"].result == "not ok"


@pytest.mark.parametrize(("text", "names"), [("pidfd", ("pidfd",)), ("a, b,,a", ("a", "b"))])
def test_suites_are_named_with_commas(text: str, names: tuple[str, ...]) -> None:
    assert selftests.suites(text) == names


def test_no_suite_is_refused() -> None:
    with pytest.raises(UserError, match="name a suite"):
        selftests.suites(" , ")


@pytest.mark.parametrize(
    ("kernels", "selftests", "each", "why"),
    [
        (["debian:6.1", "src:t"], "pidfd", False, "not built from source"),
        (["src:t", "src:t+a.mbox"], "pidfd", True, "cannot be combined"),
        (["src:t", "debian:6.1"], None, True, "not a source with a series"),
        (["src:t", "src:t"], None, True, "not a source with a series"),
        (["src:other", "src:t+a.mbox"], None, True, "the same source without"),
        (["src:t+b.patch", "src:t+a.mbox"], None, True, "the same source without"),
        (["src:t", "src:t@v1", "src:t+a.mbox"], None, True, "the same source without"),
        (["src:t", "src:t+a.mbox"], "../x", False, "a suite is a directory"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_built(
    kernels: list[str], selftests: str | None, each: bool, why: str
) -> None:
    with pytest.raises(UserError, match=why):
        _patching.named(kernels, selftests, each)


@pytest.mark.parametrize(
    "kernels", [["src:t", "src:t+a.mbox"], ["src:t@v1", "src:t@v1+a.mbox+b.patch"], ["src:t+a.mbox"]]
)
def test_a_series_with_or_without_its_tree_before_it_goes_in_steps(kernels: list[str]) -> None:
    _patching.named(kernels, None, True)
