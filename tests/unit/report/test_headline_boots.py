# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer where a kernel did not come as far as a case."""

from __future__ import annotations

import pytest

from kdelta.model import BOOTING, CellResult, State
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
