# SPDX-License-Identifier: GPL-2.0-or-later
"""That a figure is the same because system calls that cost less and more cancel out is said."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from kdelta.model import CallCount, Profile
from kdelta.report.headline import of_cells
from kdelta.report.sentences import sentence
from kdelta.results import cancelling
from kdelta.results.warnings import CallMoved, CancelsOut
from unit.attribution import counts
from unit.report.report_samples import cell

ROW = cell(
    "eventfd", metric="instructions", unit="instructions/op", verdict="same", baseline=1090.0, effect_percent=0.0
)
MOVED = CancelsOut(
    fewer=(CallMoved("write", -201.0, 100 * -201 / 614),), more=(CallMoved("read", 201.0, 100 * 201 / 477),)
)


def seeds(*of_each: Mapping[str, tuple[float, float]]) -> list[Profile]:
    """Profiles of ten operations, by (calls, instructions) of each system call in one."""
    return [
        replace(
            counts.profile({"f": 1000}),
            ops=10,
            system_calls={
                name: CallCount(calls=round(10 * calls), instructions=round(10 * spent), rep_bytes=0)
                for name, (calls, spent) in calls_of.items()
            },
        )
        for calls_of in of_each
    ]


WRITE_SLOW = {"write": (1, 614.0), "read": (1, 477.0)}
READ_SLOW = {"write": (1, 413.0), "read": (1, 678.0)}


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ([WRITE_SLOW] * 2, [READ_SLOW] * 2, MOVED),
        ([WRITE_SLOW] * 2, [WRITE_SLOW] * 2, None),
        ([WRITE_SLOW, READ_SLOW], [READ_SLOW] * 2, None),  # a chance of the seed
        ([WRITE_SLOW] * 2, [{**READ_SLOW, "write": (2, 413.0)}] * 2, None),  # of another number of calls
        ([WRITE_SLOW] * 2, [{"write": (1, 604.0), "read": (1, 487.0)}] * 2, None),  # 0.9 % each
        ([WRITE_SLOW] * 2, [{"write": (1, 413.0), "read": (1, 477.0), "[page fault]": (1, 201.0)}] * 2, None),
        ([WRITE_SLOW] * 2, [{"write": (1, 413.0)}] * 2, None),
        ([], [READ_SLOW], None),
    ],
)
def test_calls_that_cancel_out_under_all_seeds_are_told(
    before: list[dict[str, tuple[float, float]]],
    after: list[dict[str, tuple[float, float]]],
    wanted: CancelsOut | None,
) -> None:
    """It was "executes as many instructions", and no word more."""
    told = cancelling.told(ROW, seeds(*before), seeds(*after))
    assert told == (replace(ROW, warnings=(*ROW.warnings, wanted)) if wanted else ROW)


def test_what_is_not_the_same_and_other_counts_say_nothing() -> None:
    for row in (replace(ROW, metric="locked"), replace(ROW, verdict="improved"), replace(ROW, verdict=None)):
        assert cancelling.told(row, seeds(WRITE_SLOW), seeds(READ_SLOW)) == row


def test_the_answer_and_a_note_say_which_calls() -> None:
    row = cancelling.told(ROW, seeds(WRITE_SLOW), seeds(READ_SLOW))
    assert of_cells([("eventfd", row), ("b", ROW)], exact=True, unfinished=False).text == (
        "7.0 executes about as many instructions as 6.12 in both cases. In 1 case system calls that cost less cancel "
        "out others that cost more (write -32.74 %, read +42.14 %)."
    )
    assert sentence(MOVED) == (
        "the same as a sum alone: of its system calls some take fewer instructions an operation, others more: "
        "write -201 (-32.74 %), read +201 (+42.14 %)"
    )
