# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts of two experiments: exact, within the spread across seeds, different, or not to be compared."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.model import Case
from kdelta.report.agreement import remarks
from kdelta.results.agreement.common import Measured, shared
from kdelta.results.agreement.counts import count_pairs
from kdelta.results.agreement.types import CountPair
from kdelta.store.rows import BootRow
from unit.results.test_cells import number
from unit.store.store_builders import experiment, kernel

MADE = experiment(mode="exact", kernels=(kernel("6.1"),), cases=(Case(workload="pipe"),), blocks=2)


def side(
    *values: float | None, unit: str = "instructions/op", taken_from: str = "", floor: float = 0.0, **more: Any
) -> Measured:
    numbers = [
        number(block=seed, slot=0, kernel=0, metric="instructions", unit=unit, value=value, **more)
        for seed, value in enumerate(values)
    ]
    machine = {"taken_from": taken_from} if taken_from else {}
    boots = [
        BootRow(block=seed, slot=0, kernel=0, mitigations="default", cases=(0,), state="ok", machine=machine)
        for seed in range(len(values))
    ]
    return Measured(experiment=MADE, boots=boots, numbers=numbers, floors={"pipe": floor})


def only(here: Measured, there: Measured) -> CountPair:
    (pair,) = count_pairs(here, there, shared(MADE, MADE), all_metrics=False)
    return pair


@pytest.mark.parametrize(
    ("there", "call"),
    [((1000.0, 1000.0), "exact"), ((1010.0, 1000.0), "within"), ((1010.0, 1010.0), "differs"), ((0.0, 0.0), "differs")],
)
def test_counts_are_held_against_the_larger_spread(there: tuple[float, ...], call: str) -> None:
    assert only(side(1000.0, 1000.0, taken_from="a 0.0"), side(*there)).call == call


@pytest.mark.parametrize(
    ("there", "call"),
    [((1000.5, 1000.5), "within-floor"), ((999.5, 999.5), "within-floor"), ((1001.5, 1001.5), "differs")],
)
def test_another_layout_of_memory_may_move_counts_as_far_as_the_floor(there: tuple[float, ...], call: str) -> None:
    pair = only(side(1000.0, 1000.0, taken_from="a 0.0", floor=0.05), side(*there, floor=0.1))
    assert (pair.call, pair.floor_percent) == (call, 0.1)


def test_the_same_boots_agree_with_nothing_but_themselves() -> None:
    assert only(side(1.0, taken_from="a 0.0"), side(1.0, taken_from="a 0.0")).call == "same-boots"


def test_boots_of_one_among_those_of_the_other_are_no_second_measurement() -> None:
    """A sweep took five of a comparison's eight boots over, and "agreed exactly" with it."""
    few, more = side(1.0), side(1.0, 2.0)
    assert [only(*pair).call for pair in ((few, more), (more, few))] == ["same-boots"] * 2
    assert only(few, side(1.0, 2.0, taken_from="b 0.0")).call == "within"


def test_boots_that_both_have_are_told_where_each_has_others_too() -> None:
    """Two sweeps that had taken over the same two boots of a comparison, and made three more each, "agreed exactly"."""
    here, there = side(1.0, 2.0), side(1.0, 2.0)
    others = [replace(boot, machine={"taken_from": f"b 0.{boot.block}"}) for boot in there.boots[1:]]
    pair = only(here, replace(there, boots=[there.boots[0], *others]))
    assert (pair.call, pair.shared_boots) == ("exact", 1)
    assert "1 boot in both: only the others say anything" in remarks(pair)


def test_a_count_that_is_missing_or_in_another_unit_does_not_compare() -> None:
    lost = only(side(1.0, taken_from="a 0.0"), side(None, state="lost", why="no end record"))
    assert (lost.call, lost.percent, lost.why) == ("not-comparable", None, "there: lost: no end record")
    unlike = only(side(1.0, taken_from="a 0.0"), side(1.0, unit="instructions/lookup"))
    assert unlike.call == "not-comparable" and "instructions/lookup there" in unlike.why


def test_a_run_in_a_boot_that_failed_later_is_no_count() -> None:
    assert only(side(1.0, taken_from="a 0.0"), side(1.0, boot_state="panicked")).there.state == "panicked"
