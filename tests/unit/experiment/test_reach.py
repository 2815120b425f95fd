# SPDX-License-Identifier: GPL-2.0-or-later
"""The map of a kernel goes on where it ended, keeps what is certain, and takes nothing of another image over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kdelta.attribution.reach import Ran, Reach
from kdelta.errors import HostError
from kdelta.experiment import reach as mapping
from kdelta.experiment import reach_rows
from kdelta.guest.protocol import Repetition
from kdelta.machine.boot import RawBoot
from kdelta.model import Case, Quiet, RunResult, State
from unit.attribution import counts
from unit.attribution.test_reach import BASE, table

NAMES = table("read", "write")
PLUGIN = counts.output(counts.interval(0, [(BASE, (4,) + 6 * (0,)), (BASE + 4, (12,) + 6 * (0,))]))


class Guests:
    """Boots that are simulated: each tells what it was asked for."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.states: dict[str, State] = {}
        self.broken = ""

    def boot(self, works: Any) -> list[RawBoot]:
        return [self._one(work) for work in works]

    def _one(self, work: Any) -> RawBoot:
        if work == self.broken:
            raise HostError("disk full")
        self.made.append(work)
        records = (Repetition(j=0, r=0, id=0, ops=2),)
        return RawBoot(
            argv=(), state=self.states.get(work, "ok"), why="", records=records, console=b"", stream=b"",
            counts=(PLUGIN,), elapsed_s=1.0, first_sample_s=None, qemu_log="",
        )  # fmt: skip

    def ready(self, folder: Path, *cases: str) -> list[reach_rows.Counted]:
        return [
            reach_rows.Counted(
                case=Case(workload=name),
                work=cast(Any, name),
                read=lambda raw: RunResult(case=0, state=raw.state, why="no disk" if raw.state != "ok" else ""),
                parts=2,
                path=folder / f"{name}.msgpack",
            )
            for name in cases
        ]


@pytest.fixture
def fill(tmp_path: Path) -> Callable[..., Reach]:
    def run(guests: Guests, *cases: str, together: int = 1, **more: Any) -> Reach:
        return mapping.filled(
            "k", guests.ready(tmp_path, *cases), NAMES, guests.boot, Quiet(), workers=1, together=together, **more
        )

    return run


def test_a_case_is_counted_once_and_a_new_one_alone_is_added(fill: Callable[..., Reach]) -> None:
    guests = Guests()
    first = fill(guests, "a", "b")
    assert first.rows[0].functions == {"read": Ran(4, 16)}
    assert (first.rows[0].ops, first.rows[0].calls_per_op("read")) == (4, 1.0)
    assert fill(guests, "c", "a", "b").rows[1:] == first.rows
    assert guests.made == ["a", "b", "c"]


def test_a_map_ends_with_its_time_between_two_boots_and_goes_on(fill: Callable[..., Reach]) -> None:
    guests = Guests()
    cut = fill(guests, "a", "b", "c", over=lambda: len(guests.made) == 2)
    assert ([row.case for row in cut.rows], cut.no_time) == (["a", "b"], ("c",))
    assert not fill(guests, "a", "b", "c", over=lambda: len(guests.made) == 3).no_time
    assert guests.made == ["a", "b", "c"]
    assert len(fill(guests, "a", "b", "c", over=lambda: True).rows) == 3  # what is there takes no time


def test_rows_that_were_taken_over_are_counted_anew_where_that_is_asked(
    fill: Callable[..., Reach], tmp_path: Path
) -> None:
    guests = Guests()
    first = fill(guests, "a", "b").rows[0]
    reach_rows.keep(tmp_path / "a.msgpack", replace(first, beyond=("x",)), NAMES)
    assert fill(guests, "a", "b").taken_over
    assert fill(guests, "a", "b", anew=True).rows[0] == first
    assert guests.made == ["a", "b", "a"]


def test_a_map_that_broke_off_keeps_what_was_counted(fill: Callable[..., Reach]) -> None:
    guests = Guests()
    guests.broken = "b"
    with pytest.raises(HostError, match="disk full"):
        fill(guests, "a", "b", "c")
    guests.broken = ""
    fill(guests, "a", "b", "c")
    assert guests.made == ["a", "b", "c"]


def test_a_case_that_the_host_killed_is_tried_again_one_that_cannot_run_is_not(fill: Callable[..., Reach]) -> None:
    guests = Guests()
    guests.states = {"a": "lost", "b": "unsupported"}
    found = fill(guests, "a", "b")
    assert [(row.case, row.state, row.why) for row in found.not_mapped] == [
        ("a", "lost", "no disk"),
        ("b", "unsupported", "no disk"),
    ]
    fill(guests, "a", "b")
    assert guests.made == ["a", "b", "a"]


def test_of_a_programs_two_runs_only_what_the_longer_one_does_more_counts(tmp_path: Path) -> None:
    """Its job 0 has twice the operations of job 1, each in a guest of its own; start-up is in both."""

    def guest(read: int, write: int, start: int) -> bytes:
        rows = zip((BASE, BASE + 16, BASE + 32), (read, write, start), strict=True)
        return counts.output(counts.interval(0, [(pc, (n,) + 6 * (0,)) for pc, n in rows if n]))

    def boot(_: Any) -> list[RawBoot]:
        records = (Repetition(j=0, r=0, id=0, ops=1), Repetition(j=1, r=0, id=1 << 32, ops=1))
        return [
            RawBoot(
                argv=(), state="ok", why="", records=records, console=b"", stream=b"",
                counts=(guest(20, 3, 7), guest(10, 0, 7)), elapsed_s=1.0, first_sample_s=None, qemu_log="",
            )
        ]  # fmt: skip

    guests = Guests().ready(tmp_path, "p")
    found = mapping.filled("k", guests, table("read", "write", "start"), boot, Quiet(), workers=1, together=1)
    assert found.rows[0].functions == {"read": Ran(10, 10), "write": Ran(3, 3)}
    assert (found.rows[0].total, found.rows[0].ops) == (13, 2)


def test_a_damaged_row_is_counted_anew(fill: Callable[..., Reach], tmp_path: Path) -> None:
    guests = Guests()
    fill(guests, "a")
    path = tmp_path / "a.msgpack"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert fill(guests, "a").rows[0].functions == {"read": Ran(4, 16)}
    assert guests.made == ["a", "a"]


def test_where_time_ends_single_calls_are_mapped_and_programs_are_not(fill: Callable[..., Reach]) -> None:
    """Of 322 cases 56 were mapped, most of them programs; the one that executes the change was another."""
    guests = Guests()
    found = fill(guests, "a", "b", "c", last={"a", "b"}, over=lambda: len(guests.made) >= 2)
    assert guests.made == ["c", "a"] and found.no_time == ("b",)
    assert [row.case for row in found.rows] == ["a", "c"]


@pytest.mark.parametrize("together", [1, 2, 3, 8])
def test_a_map_is_the_same_however_many_cases_share_a_boot(fill: Callable[..., Reach], together: int) -> None:
    guests = Guests()
    guests.states = {"b": "unsupported"}
    found = fill(guests, "a", "b", "c", together=together)
    assert [(row.case, row.state) for row in found.rows] == [("a", "ok"), ("b", "unsupported"), ("c", "ok")]
    assert guests.made == ["a", "b", "c"]
