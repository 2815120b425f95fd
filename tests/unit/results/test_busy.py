# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions of a loop that waits by a clock are told to be a time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.model import Profile
from kdelta.report.headline import of_cells
from kdelta.report.sentences import sentence
from kdelta.results import busy
from kdelta.results.warnings import BusyWaits
from unit.attribution import counts
from unit.report.report_samples import cell

ROW = cell("getrusage", metric="instructions", unit="instructions/op", verdict="regressed", effect_percent=1972.57)


def seeds(*cost: int, name: str = "delay_tsc") -> list[Profile]:
    return [replace(counts.profile({"getrusage": 500} | ({name: one} if one else {})), ops=1) for one in cost]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (seeds(0, 0), seeds(19860, 19864), 19862),
        (seeds(19860, 19864), seeds(0, 0), -19862),
        (seeds(1000, 1000), seeds(3000, 3000, name="delay_halt_tpause"), 2000),
        (seeds(0, 0), seeds(400, 400, name="memset_orig"), None),
        (seeds(0, 400), seeds(400, 400), None),  # a chance of the seed
        (seeds(0, 0), seeds(2, 2), None),  # once in many operations
        ([], seeds(400), None),
    ],
)
def test_a_wait_by_the_clock_is_told(before: list[Profile], after: list[Profile], wanted: float | None) -> None:
    told = busy.told(ROW, before, after)
    assert told.warnings == ((BusyWaits(wanted),) if wanted is not None else ())


def test_other_counts_and_what_was_lost_say_nothing() -> None:
    for row in (replace(ROW, metric="locked"), replace(ROW, state="lost")):
        assert busy.told(row, seeds(0), seeds(400)) == row


def test_the_note_says_that_they_are_a_time() -> None:
    said = sentence(BusyWaits(19862.0))
    assert said.startswith("operations wait longer in a loop that ends by the clock (udelay() and the like): +19862 of")
    assert sentence(BusyWaits(-80.0)).startswith("operations wait less long in a loop")


def test_the_answer_says_so_too() -> None:
    row = busy.told(ROW, seeds(0), seeds(19862))
    told = of_cells([("a", row)], exact=True, unfinished=False).text
    assert told.endswith("In 1 case part of the change is a loop that waits by the clock.")
