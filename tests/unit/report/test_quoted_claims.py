# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures that a series gives itself beside what was measured: what goes the other way is said."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.model import Looked
from kdelta.report import looked
from kdelta.report.claims import quoted
from kdelta.report.tallies import tallied
from unit.report.report_samples import cell

BETTER, WORSE = ("open: 1.2M -> 1.4M ops/s",), ("open: 1.4M -> 1.2M ops/s",)
OTHER = "These get better; what was measured here does not"


@pytest.mark.parametrize(
    ("claims", "verdicts", "said"),
    [
        (BETTER, ("regressed", "same"), True),
        (BETTER, ("regressed", "improved"), False),
        (BETTER, ("same", "same"), False),
        (WORSE, ("regressed", "same"), False),
        ((*BETTER, *WORSE), ("regressed",), False),
    ],
)
def test_a_claim_that_the_result_contradicts_is_named(
    claims: tuple[str, ...], verdicts: tuple[str, ...], said: bool
) -> None:
    """A patch that "gets 8 % faster" had more instructions in all cases: one had to hold both against each other."""
    cells = [cell(f"case{n}", "instructions", verdict=verdict) for n, verdict in enumerate(verdicts)]
    text = " ".join(quoted(claims, tallied(cells, exact=True)).split())
    assert (OTHER in text) is said and claims[0] in text
    assert ("more instructions" in text and "Counts are no times: --timed measures them." in text) is said


def test_where_nothing_was_measured_figures_are_quoted_alone() -> None:
    assert OTHER not in quoted(BETTER)


def test_figures_that_get_better_by_the_same_machine_code_are_named() -> None:
    """A raw spinlock "takes 3 % less time", and without PREEMPT_RT is the same code."""
    same = Looked(functions=9, differ=0, candidates=5)
    assert looked.nothing(same).endswith(f": {looked.IDENTICAL}")
    assert not looked.nothing(replace(same, not_built=("a.c",))).endswith(looked.IDENTICAL)
    told = "These get better; with this config machine code and data are identical."
    assert told in " ".join(quoted(BETTER, identical=True).split())
    assert told not in " ".join(quoted(WORSE, identical=True).split())


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("There is no measurable difference in hackbench (12.41 s before, 12.40 s after).", True),
        ("Overhead is within the noise (<0.1%).", True),
        ("1 CPU: no change, 3.41 s", True),
        ("No functional change.", False),
        ("hackbench: 3 % slower, close(2) costs the same", False),
        ("open: 12 us", False),
    ],
)
def test_a_claim_that_nothing_changes_is_held_against_what_does(claim: str, said: bool) -> None:
    cells = [cell("case", "instructions", verdict="regressed")]
    text = " ".join(quoted((claim,), tallied(cells, exact=True)).split())
    assert ("These say that something stays as it was; what was measured here does not: " in text) is said
    same = quoted((claim,), tallied([cell("case", "instructions", verdict="same")], exact=True))
    assert "stays" not in same


def test_a_claim_that_nothing_changes_is_none_of_some_cases() -> None:
    """A pipe that keeps no pages was "no measurable difference": a byte took half as much again, many took less."""
    cells = [cell(name, "instructions", verdict=name) for name in ("regressed", "improved")]
    assert "something stays as it was" in quoted(("no measurable difference",), tallied(cells, exact=True))
