# SPDX-License-Identifier: GPL-2.0-or-later
"""A change that is mostly of how often tasks that switch start a timer is told to be so."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.model import Profile
from kdelta.report.sentences import sentence
from kdelta.results import rearmed
from kdelta.results.warnings import Rearms
from unit.attribution import counts
from unit.report.report_samples import cell

# syscalls/eventfd_pingpong of 7.3 and of a patch to eventfd_write(), per 100 operations
ROW = cell(
    "eventfd_pingpong", metric="instructions", unit="instructions/op", verdict="regressed", baseline=9778.0,
    patched=9986.0, effect_percent=2.13,
)  # fmt: skip


def of(outer: int, inner: int, switches: int = 13210) -> list[Profile]:
    named = {"hrtimer_start_range_ns": outer, "__hrtimer_start_range_ns": inner, "finish_task_switch": switches}
    return [replace(counts.profile({name: n for name, n in named.items() if n}), ops=100)] * 5


def test_starts_of_hrtick_at_its_limit_are_told() -> None:
    told = rearmed.told(ROW, of(4890, 9230), of(9350, 17660))
    assert told.verdict == "regressed"
    (warning,) = (one for one in told.warnings if isinstance(one, Rearms))
    assert warning.left_percent == pytest.approx(0.81, abs=0.01)
    assert "started 1.9 times as often, without which it is +0.81 %" in sentence(warning)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (of(4890, 9230), of(4890, 20000)),  # its code is another
        (of(0, 0), of(9350, 17660)),  # it was not started before
        (of(2000, 3775), of(9350, 17660)),  # much more often: another way to switch tasks
        (of(4890, 9230), of(5500, 10381)),  # a small part of the change
        (of(4890, 9230, switches=0), of(9350, 17660, switches=0)),  # a timer of the operation
        ([], of(9350, 17660)),
    ],
)
def test_other_changes_are_not(before: list[Profile], after: list[Profile]) -> None:
    assert rearmed.told(ROW, before, after) == ROW


@pytest.mark.parametrize("verdict", ["same", "inconclusive", None])
def test_nothing_is_said_where_nothing_is_called(verdict: str | None) -> None:
    row = replace(ROW, verdict=verdict)
    assert rearmed.told(row, of(4890, 9230), of(9350, 17660)) == row
