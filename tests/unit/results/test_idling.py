# SPDX-License-Identifier: GPL-2.0-or-later
"""That operations wait on one kernel and not on the other is said, whatever becomes of the instructions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.model import Profile
from kdelta.report.headline import of_cells
from kdelta.report.sentences import sentence
from kdelta.results import idling
from kdelta.results.warnings import Idles
from unit.attribution import counts
from unit.report.report_samples import cell

ROW = cell("pipe", metric="instructions", unit="instructions/op", verdict="same", effect_percent=0.3)
BUSY = {"pipe_release": 500}


def seeds(*idle: int, name: str = "do_idle") -> list[Profile]:
    return [replace(counts.profile(BUSY | ({name: one} if one else {})), ops=1) for one in idle]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (seeds(0, 0), seeds(38, 40), Idles(more=True, anew=True)),
        (seeds(38, 38), seeds(0, 0), Idles(more=False, anew=True)),
        (seeds(38, 38), seeds(76, 78), Idles(more=True, anew=False)),
        (seeds(0, 0), seeds(40, 40, name="cpu_startup_entry"), Idles(more=True, anew=True)),
        (seeds(38, 39), seeds(41, 42), None),  # another compiler
        (seeds(0, 38), seeds(38, 38), None),  # a chance of the seed
        (seeds(0, 0), seeds(1, 1), None),  # once in many operations
        (seeds(0, 0), seeds(0, 0), None),
        (seeds(0, 0), seeds(48, 48, name="synchronize_rcu_normal"), Idles(more=True, anew=True, grace=True)),
        (seeds(48, 48, name="__wait_rcu_gp"), seeds(0, 0), Idles(more=False, anew=True, grace=True)),
        (seeds(48, 48, name="synchronize_rcu"), seeds(120, 120, name="__wait_rcu_gp"), None),  # of another release
        ([], seeds(38), None),
    ],
)
def test_a_wait_is_told_that_all_seeds_have(before: list[Profile], after: list[Profile], wanted: Idles | None) -> None:
    told = idling.told(ROW, before, after)
    assert told.verdict == ROW.verdict
    assert [one for one in told.warnings if isinstance(one, Idles)] == ([wanted] if wanted else [])


def test_other_metrics_and_rows_without_figures_say_nothing() -> None:
    for row in (replace(ROW, metric="locked"), replace(ROW, state="hung", verdict=None)):
        assert idling.told(row, seeds(0), seeds(38)) == row


def test_the_answer_says_so_too() -> None:
    rows = [("a", idling.told(ROW, seeds(0), seeds(38))), ("b", idling.told(ROW, seeds(38), seeds(0))), ("c", ROW)]
    assert of_cells(rows, exact=True, unfinished=False).text == (
        "7.0 executes about as many instructions as 6.12 in all 3 cases. Operations wait more often in 1 case "
        "and less often in 1 case: for how long, counts do not tell."
    )
    assert "wait" not in of_cells(rows[2:], exact=True, unfinished=False).text
    assert sentence(Idles(more=True, anew=False)).startswith("operations wait more often than on the baseline: ")
    assert sentence(Idles(more=False, anew=True)).startswith("operations no longer wait, where ")
    assert "for a grace period of RCU, which is soon over on one CPU" in sentence(
        Idles(more=True, anew=True, grace=True)
    )
