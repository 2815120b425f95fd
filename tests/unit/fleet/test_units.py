# SPDX-License-Identifier: GPL-2.0-or-later
"""What is queued next, from what is stored alone."""

from __future__ import annotations

from typing import Any

import pytest

from kdelta.errors import UserError
from kdelta.fleet import status, units
from kdelta.fleet.ledger import Asked
from kdelta.model import OpenCell
from kdelta.store.rows import BootRow
from unit.fleet.fleet_builders import ask, asked, host


def row(block: int, slot: int, state: str = "ok", **more: Any) -> BootRow:
    fields = {"kernel": slot, "mitigations": "default", "cases": (), "why": "why", "started_at": "t", "elapsed_s": 2.0}
    return BootRow(block=block, slot=slot, state=state, **{**fields, **more})  # type: ignore[arg-type]


def none_open(_blocks: int) -> tuple[OpenCell, ...]:
    return ()


def test_a_block_of_times_is_one_unit_and_a_boot_of_counts_is() -> None:
    timed = units.next_units(asked(mode="timed"), set(), {}, none_open)
    assert [(u.name, len(u.plans), u.alone) for u in timed] == [("0", 2, True), ("1", 2, True), ("2", 2, True)]
    exact = units.next_units(asked(), {(0, 0), (2, 1)}, {}, none_open)
    assert [unit.name for unit in exact] == ["1.0", "2.0", "0.1", "1.1"] and not any(unit.alone for unit in exact)


def test_units_go_to_the_next_look_and_only_what_is_open_goes_on() -> None:
    experiment = asked(blocks=4, looks=(2, 4))
    first = units.next_units(experiment, set(), {}, none_open)
    assert {unit.plans[0].block for unit in first} == {0, 1}
    done = {(block, slot) for block in (0, 1) for slot in (0, 1)}
    assert units.next_units(experiment, done, {}, none_open) == ()
    more = units.next_units(experiment, done, {}, lambda _: (OpenCell(0, "default", 1),))
    assert [unit.name for unit in more] == ["2.1", "3.1"]


def test_a_begun_block_goes_back_to_its_host_or_is_refused() -> None:
    (back, *_rest) = units.next_units(asked(mode="timed"), {(0, 0)}, {0: "rack3"}, none_open)
    assert back.host == "rack3" and len(back.plans) == 1
    with pytest.raises(UserError, match="was begun on one machine"):
        units.next_units(asked(mode="timed"), {(0, 0)}, {0: ""}, none_open)


def test_a_boot_that_is_lost_again_is_not_made_for_ever() -> None:
    rows = [row(0, 0, "lost", started_at="old"), row(0, 1, "lost", started_at="new")]
    assert units.stored(rows, set(), ("old",)) == {(0, 1)}
    assert units.stored(rows, {(5, 5)}, ()) == {(0, 0), (0, 1), (5, 5)}


def test_counts_that_were_made_otherwise_are_not_kept_beside_new_ones() -> None:
    rows = [row(0, 0, machine={"make": "one"}), row(0, 1, machine={"make": "two"}), row(1, 0), row(1, 1, started_at="")]
    assert units.stale(asked(), rows, "one") == {(0, 1), (1, 0)}
    assert units.stale(asked(mode="timed"), rows, "one") == set()


def test_a_kernel_that_does_not_boot_ends_an_experiment_of_times() -> None:
    rows = [row(0, 0), row(0, 1, "panicked"), row(1, 0), row(1, 1, "panicked")]
    assert units.struck_out(asked(mode="timed"), rows) == [rows[3]]
    assert units.struck_out(asked(mode="timed"), rows[:3]) == []
    assert units.struck_out(asked(), rows) == [], "counts of the other cases go on"
    (left,) = units.given_up(asked(mode="timed"), rows[3], {(0, 0), (0, 1), (1, 0), (1, 1)})
    assert (left.plan.block, left.plan.kernel, left.state) == (2, 1, "panicked") and "given up after 2" in left.why


def test_what_does_not_boot_on_one_host_may_be_that_hosts_fault() -> None:
    timed = asked(mode="timed")
    bad, good = {"host": "bad"}, {"host": "good"}
    once = [row(0, 0, machine=good), row(1, 0, machine=bad)]
    once += [row(block, 1, "panicked", machine=bad) for block in (1, 2)]
    assert units.struck_out(timed, once) == []
    both = [*once, row(3, 1, "panicked", machine=good)]
    assert units.struck_out(timed, both) == [both[-1]]


def test_a_few_bad_hosts_of_many_do_not_end_an_experiment() -> None:
    fleet = [f"h{index}" for index in range(1000)]
    assert units.hopeless(fleet[:3], fleet[:3], fleet[:4]), "three of four"
    assert units.hopeless(fleet[:2], fleet[:2], fleet[:2]), "nobody is left"
    assert not units.hopeless(fleet[:20], fleet[:20], fleet)
    assert units.hopeless(fleet[:100], fleet[:100], fleet)
    assert units.hopeless([], [], []), "nobody can"


def test_time_left_counts_lanes_and_not_hosts() -> None:
    exact = Asked(experiment="first", state="open", why="", ask=ask())
    rows = [row(0, 0), row(0, 1, elapsed_s=4.0)]
    assert status.left_s(exact, 6, rows, [host(slots=2), host(slots=1)]) == 6.0
    timed = Asked(experiment="first", state="open", why="", ask=ask("timed"))
    assert status.left_s(timed, 2, rows, [host(slots=8)]) == 12.0
    assert status.left_s(timed, 2, rows, []) is None and status.left_s(timed, 2, [], [host()]) is None
