# SPDX-License-Identifier: GPL-2.0-or-later
"""--fail-on: what closes the gate, and what it says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.model import CellResult, ExperimentResult, State, plans
from kdelta.results import gates
from kdelta.verdict import CellData, Observation, judge, open_cells
from unit.verdict.verdict_cells import COUNT, RATE, TIME, boots, experiment, noisy, one

SLOWER = one(*noisy(20, 0.1), metric=TIME)
FASTER = one(*noisy(20, 0.1), metric=RATE)


def result(*rows: CellResult, gate: str = "") -> ExperimentResult:
    return ExperimentResult(experiment=experiment(), results=rows, gate=gate)


def test_a_regression_of_at_least_that_size_closes_it() -> None:
    (line,) = gates.hits(result(SLOWER, FASTER), gates.parse("regressed:2%"))
    assert line.startswith(f"{SLOWER.case} {SLOWER.patched_label} +") and line.endswith(" %")
    assert gates.hits(result(SLOWER), gates.parse("regressed:50%")) == []
    quarter = replace(SLOWER, effect_percent=25.0)
    assert gates.hits(result(quarter), gates.parse("regressed:25%")), "of at least that size"
    assert gates.hits(result(FASTER), gates.parse("regressed")) == []


def test_many_regressions_of_many_cells_go_on_until_they_close_it() -> None:
    """Ten facts of five seeds among 160 cells were ten times "(R)", and exit code 0."""

    def measured(seeds: int) -> list[CellData]:
        sides = [(case, kernel, 105.0 if kernel and case < 10 else 100.0) for case in range(160) for kernel in (0, 1)]
        return [
            CellData(case=case, metric="instructions", kernel=kernel, boots=boots([value] * seeds, kernel))
            for case, kernel, value in sides
        ]

    asked = experiment(mode="exact", looks=(5, 8), cases=160)
    gated = replace(asked, plan=plans.Compare(gated=True))
    metrics = {"pipe": (COUNT,)}
    five, eight = (judge(gated, measured(seeds), {}, metrics) for seeds in (5, 8))
    assert sum(row.verdict == "regressed" for row in five) == 10
    assert gates.hits(result(*five), gates.Gate()) == [] and gates.weak(result(*five), gates.Gate()) == 10
    assert open_cells(asked, measured(5), {}, metrics) == ()
    assert {cell.case for cell in open_cells(gated, measured(5), {}, metrics)} == set(range(10))
    assert len(gates.hits(result(*eight), gates.Gate())) == 10 and gates.weak(result(*eight), gates.Gate()) == 0
    assert open_cells(gated, measured(8), {}, metrics) == ()


def test_failed_selftests_close_it_whatever_the_figures() -> None:
    assert gates.hits(result(gate="pidfd:pidfd_test failed on 7.0"), gates.Gate()) == ["pidfd:pidfd_test failed on 7.0"]


def test_a_count_that_was_zero_has_no_percentage() -> None:
    (line,) = gates.hits(result(replace(SLOWER, effect_percent=None)), gates.Gate())
    assert line.endswith("from zero")


def ended(baseline: Mapping[int, State], patched: Mapping[int, State]) -> CellResult:
    """Five seeds of both kernels, some of which ended otherwise than well."""
    data = []
    for kernel, states in enumerate((baseline, patched)):
        bad = {seed: Observation(block=seed, slot=0, state=state, why="no end") for seed, state in states.items()}
        made = tuple(bad.get(boot.block, boot) for boot in boots([9.0] * 5, kernel))
        data.append(CellData(case=0, metric="instructions", kernel=kernel, boots=made))
    (row,) = judge(experiment(mode="exact", looks=(5, 8)), data, {}, {"pipe": (COUNT,)})
    return row


def every(state: State) -> dict[int, State]:
    return dict.fromkeys(range(5), state)


@pytest.mark.parametrize("state", ["panicked", "hung", "failed"])
def test_a_case_that_the_patched_kernel_alone_does_not_end_closes_it_whatever_the_percentage(state: State) -> None:
    all_seeds, one_seed = ended({}, every(state)), ended({}, {3: state})
    for row in (all_seeds, one_seed):
        assert gates.hits(result(row, row), gates.parse("regressed:50%")) == [f"pipe0 b {state}"]
        assert gates.hits(result(replace(row, primary=False)), gates.Gate()) == []
    assert gates.hits(result(ended({2: state}, every(state))), gates.Gate()) == [], "the baseline does so too"
    assert gates.hits(result(ended({2: state}, {3: state})), gates.Gate()) == []
    assert gates.hits(result(ended(every(state), every(state))), gates.Gate()) == []
    assert gates.hits(result(ended(every(state), {})), gates.Gate()) == []


@pytest.mark.parametrize("state", ["lost", "unsupported"])
def test_what_is_the_host_s_or_an_answer_does_not_close_it(state: State) -> None:
    assert gates.hits(result(ended({}, every(state)), ended({}, {3: state})), gates.Gate()) == []


@pytest.mark.parametrize(
    "text", ["improved", "regressed:", "regressed:x%", "regressed:-1%", "regressed:nan%", "regressed:inf%", ""]
)
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError) as error:
        gates.parse(text)
    assert text in str(error.value) and "\n" not in str(error.value)
