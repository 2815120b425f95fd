# SPDX-License-Identifier: GPL-2.0-or-later
"""--fail-on: what closes the gate, and what it says."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.model import CellResult, ExperimentResult
from kdelta.results import gates
from unit.verdict.verdict_cells import RATE, TIME, experiment, noisy, one

SLOWER = one(*noisy(20, 0.1), metric=TIME)
FASTER = one(*noisy(20, 0.1), metric=RATE)


def result(*rows: CellResult, gate: str = "") -> ExperimentResult:
    return ExperimentResult(experiment=experiment(), results=rows, gate=gate)


def test_a_regression_of_at_least_that_size_closes_it() -> None:
    (line,) = gates.hits(result(SLOWER, FASTER), gates.parse("regressed:2%"))
    assert line.startswith(f"{SLOWER.case} {SLOWER.patched_label} +") and line.endswith(" %")
    assert gates.hits(result(SLOWER), gates.parse("regressed:50%")) == []
    assert gates.hits(result(FASTER), gates.parse("regressed")) == []


def test_failed_selftests_close_it_whatever_the_figures() -> None:
    assert gates.hits(result(gate="pidfd:pidfd_test failed on 7.0"), gates.Gate()) == ["pidfd:pidfd_test failed on 7.0"]


def test_a_count_that_was_zero_has_no_percentage() -> None:
    (line,) = gates.hits(result(replace(SLOWER, effect_percent=None)), gates.Gate())
    assert line.endswith("from zero")


@pytest.mark.parametrize(
    "text", ["improved", "regressed:", "regressed:x%", "regressed:-1%", "regressed:nan%", "regressed:inf%", ""]
)
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError) as error:
        gates.parse(text)
    assert text in str(error.value) and "\n" not in str(error.value)
