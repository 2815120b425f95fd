# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer where a kernel did not come as far as a case, or where none came to a figure."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.model import BOOTING, UNBOOTED, CellResult, State
from kdelta.report.headline import of_cells
from unit.report.report_samples import cell


def ended(name: str, state: State, why: str = BOOTING) -> CellResult:
    return cell(name, verdict=None, state=state, why=f"7.0: {state}: {why}x")


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([ended("a", "panicked"), ended("b", "panicked")], "7.0 does not boot, it panics; 6.12 does."),
        ([ended("a", "hung")], "7.0 does not boot, it hangs; 6.12 does."),
        ([ended("a", "panicked"), ended("b", "panicked", "")], "7.0 panics in both cases, which 6.12 runs."),
    ],
)
def test_a_kernel_that_does_not_boot_is_not_said_to_panic_in_a_case(cells: list[CellResult], told: str) -> None:
    assert of_cells([(one.case, one) for one in cells], True, False).text == told


def fails(name: str, why: str, patched: str = "7.0") -> CellResult:
    lost = cell(name, verdict=None, state="failed", why=why, baseline=None, patched=None)
    return replace(lost, patched_label=patched, sides=("failed", "failed"))


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (
            [fails("a", "6.12, 7.0: failed: y")],
            "a could be measured neither on 6.12 nor on 7.0. 6.12, 7.0: failed: y.",
        ),
        (
            [fails("a", "6.12, 7.0: failed: the words of a program.")],
            "a could be measured neither on 6.12 nor on 7.0. 6.12, 7.0: failed: the words of a program.",
        ),
        (
            [fails("a", "x: failed: y"), fails("b", "x: failed: y")],
            "Nothing could be measured on 7.0 against 6.12. x: failed: y.",
        ),
        (
            [fails("a", "x: failed: y"), fails("b", "x: failed: z")],
            "Nothing could be measured on 7.0 against 6.12. In a: x: failed: y.",
        ),
        (
            [fails("a", "6.12, 7.0: failed: y"), fails("a", "6.12, 7.1: failed: y", "7.1")],
            "a could be measured on no kernel. 6.12, 7.0, 7.1: failed: y.",
        ),
        ([fails("a", "6.12: failed: y", "")], "Nothing could be measured on 6.12: failed: y."),
        (
            [fails("a", "6.12: failed: y", ""), fails("b", "6.12: failed: z", "")],
            "Nothing could be measured on 6.12: in a failed: y.",
        ),
        (
            [fails("a", "6.12, 7.0: failed: y"), cell("b", verdict="same")],
            "7.0 is as fast as 6.12 in 1 of 2 cases; not measured in 1.",
        ),
    ],
)
def test_where_no_kernel_comes_to_a_figure_the_answer_says_why(cells: list[CellResult], told: str) -> None:
    assert of_cells([(one.case, one) for one in cells], exact=False, unfinished=False).text == told


def test_what_is_not_booted_yet_has_no_reason() -> None:
    waiting = replace(fails("a", f"6.12: {UNBOOTED}", patched=""), state="lost")
    assert of_cells([("a", waiting)], exact=True, unfinished=True).text == "So far: nothing is measured yet on 6.12."


def test_a_case_of_several_figures_fails_once() -> None:
    """With --smp 2 one of two cases failed, and it was "fails in 2 of 3 cases": it has instructions and transfers."""
    exact = {"metric": "instructions", "unit": "instructions/op"}
    failed = [
        cell("a", **exact, verdict=None, state="failed"),
        cell("a", metric="transfers", unit="transfers/op", verdict=None, state="failed"),
    ]
    rows = [(one.case, one) for one in (*failed, cell("b", **exact))]
    assert of_cells(rows, True, False).text == (
        "7.0 fails in 1 of 2 cases, which 6.12 runs; it executes fewer instructions than 6.12 in 1 of 2 cases, "
        "more in none. Largest: b -28.60 %."
    )
