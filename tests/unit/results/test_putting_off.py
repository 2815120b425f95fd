# SPDX-License-Identifier: GPL-2.0-or-later
"""A gain that hands work over to RCU or a work queue is told to be perhaps a delay."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.model import Profile
from kdelta.model.nouns import Word
from kdelta.report.headline import of_cells
from kdelta.report.sentences import sentence
from kdelta.results import putting_off
from kdelta.results.warnings import PutsOff
from unit.attribution import counts
from unit.report.report_samples import cell

ROW = cell("epoll", metric="instructions", unit="instructions/op", verdict="improved", effect_percent=-1.2)
BUSY = {"ep_remove": 500}


def seeds(*cost: int, name: str = "__call_rcu_common") -> list[Profile]:
    return [replace(counts.profile(BUSY | ({name: one} if one else {})), ops=1) for one in cost]


def long(found: list[Profile]) -> list[Profile]:
    return [replace(one, total=(20_000_000, *one.total[1:])) for one in found]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (seeds(0, 0), seeds(60, 61), ("callbacks of RCU",)),
        (seeds(60, 60), seeds(120, 122, name="kvfree_call_rcu"), ("callbacks of RCU",)),
        (seeds(90, 90), seeds(104, 104, name="kvfree_call_rcu"), None),  # as many, by another function
        (seeds(0, 0), seeds(90, 90, name="__queue_work"), ("a work queue",)),
        (seeds(0, 0), seeds(80, 80, name="mod_timer"), ("a timer",)),
        (seeds(90, 90, name="__mod_timer"), seeds(90, 90, name="mod_timer"), None),  # inlined into another
        (long(seeds(90, 90)), long(seeds(190, 190, name="mod_timer")), None),  # a tick more, of a long operation
        (seeds(60, 60), seeds(60, 60, name="call_rcu"), None),  # another name
        (seeds(60, 60), seeds(70, 70), None),  # another compiler
        (seeds(0, 60), seeds(60, 60), None),  # a chance of the seed
        (seeds(0, 0), seeds(2, 2), None),  # once in many operations
        (seeds(60, 60), seeds(0, 0), None),
        ([], seeds(60), None),
    ],
)
def test_a_gain_that_hands_work_over_is_told_so(
    before: list[Profile], after: list[Profile], wanted: tuple[str, ...] | None
) -> None:
    told = putting_off.told(ROW, before, after)
    assert told.verdict == ROW.verdict
    assert [one.to for one in told.warnings if isinstance(one, PutsOff)] == ([wanted] if wanted else [])


def slabs(*each: tuple[int, int]) -> list[Profile]:
    """Seeds by what they spend to make objects and to free them."""
    return [replace(counts.profile(BUSY | {"__kmalloc": made, "kfree": freed}), ops=1) for made, freed in each]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (slabs((340, 446), (341, 446)), slabs((341, 1), (345, 0)), [()]),  # a worker frees a list of pipes
        (slabs((340, 446), (341, 446)), slabs((170, 223), (171, 223)), []),  # half of the objects are not made
        (slabs((340, 446), (341, 446)), slabs((340, 300), (340, 300)), []),  # to free them takes less
        (slabs((340, 446), (340, 0)), slabs((340, 0), (340, 0)), []),  # a chance of the seed
        (slabs((0, 446)), slabs((0, 1)), []),  # what others made
        (slabs((340, 446)), [*slabs((340, 1)), *seeds(90)], []),
    ],
)
def test_objects_that_are_made_and_not_freed_are_freed_later(
    before: list[Profile], after: list[Profile], wanted: list[tuple[str, ...]]
) -> None:
    """The work that frees a list is queued once for dozens of items, which is next to nothing an operation."""
    told = putting_off.told(ROW, before, after)
    assert [one.to for one in told.warnings if isinstance(one, PutsOff)] == wanted
    assert "as many objects are made and fewer freed than on the baseline" in sentence(PutsOff())


def test_what_is_undecided_or_no_count_of_instructions_says_nothing() -> None:
    for row in (replace(ROW, metric="locked"), replace(ROW, verdict="inconclusive")):
        assert putting_off.told(row, seeds(0), seeds(60)) == row


@pytest.mark.parametrize("verdict", ["same", "regressed"])
def test_where_it_is_no_gain_it_may_cost_more_than_is_told(verdict: Word) -> None:
    row = putting_off.told(replace(ROW, verdict=verdict), seeds(0), seeds(60, name="__mod_timer"))
    assert row.warnings == (PutsOff(("a timer",), gain=False),)
    assert "so it may cost more than the figure says (" in sentence(row.warnings[0])
    answer = of_cells([("a", row)], exact=True, unfinished=False).text
    assert ("more is left to be done later: it may cost more than is told." in answer) == (verdict == "same")


def test_the_answer_says_so_too() -> None:
    rows = [("a", putting_off.told(ROW, seeds(0), seeds(60))), ("b", replace(ROW, verdict="same"))]
    assert of_cells(rows, exact=True, unfinished=False).text.endswith(
        "In 1 case more is left to be done later: part of the gain may be a delay."
    )
    assert "delay" not in of_cells(rows[1:], exact=True, unfinished=False).text


def test_the_note_names_who_does_it_later() -> None:
    assert sentence(PutsOff(("callbacks of RCU", "a work queue"))).startswith(
        "more is handed over to callbacks of RCU and a work queue than on the baseline: "
    )
