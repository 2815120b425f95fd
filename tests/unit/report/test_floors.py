# SPDX-License-Identifier: GPL-2.0-or-later
"""What was taken for noise: each case has its floor, or is said to have none."""

from __future__ import annotations

from kdelta.attribution.exact import exact_metrics
from kdelta.model import Definition
from kdelta.report import floors
from unit.report.report_samples import cell


def test_a_floor_is_that_of_its_own_cases_alone() -> None:
    """One case with a floor stood for all: "Noise floor: 0.10 %"."""
    cells = [cell("pipe", "instructions", floor_percent=0.1), cell("git status", "instructions", floor_percent=None)]
    assert floors.told(cells[:1], True) == "Noise floor: 0.10 %."
    assert floors.told(cells, True) == "Noise floor: 0.10 % (pipe); none (git status)."
    assert floors.told(cells[1:], True) == ""


def test_what_is_the_same_on_a_host_that_was_not_calibrated_is_told() -> None:
    """It was "see the notes for what was used", and no note said it."""
    cells = [cell("pipe", floor_percent=None), cell("fork", floor_percent=2.5)]
    none = "Noise floor: not calibrated on this host (kdelta calibrate); what lies within 1 % is the same."
    assert floors.told(cells[:1], False) == none
    some = "Noise floor: 2.50 % (fork); not calibrated (pipe), where what lies within 1 % is the same."
    assert floors.told(cells, False) == some


def test_the_least_of_lines_is_that_of_the_cases_that_were_measured() -> None:
    cells = [cell("pipe", "instructions", floor_percent=0.1), cell("pipe", "data_lines", floor_percent=0.2)]
    pipe, fork = (Definition(metrics=exact_metrics(ops=ops)) for ops in (128, 1))
    some = "Noise floor: 0.10 %; 0.25 lines of data or code an operation."
    assert floors.told(cells, True) == floors.told(cells, True, [pipe]) == some
    files = Definition(metrics=exact_metrics(ops=24))
    assert floors.told(cells, True, [files]) == "Noise floor: 0.10 %; 0.33 lines of data or code an operation."
    both = "Noise floor: 0.10 %; 0.25 to 8 lines of data or code an operation."
    assert floors.told(cells, True, [pipe, fork]) == both
