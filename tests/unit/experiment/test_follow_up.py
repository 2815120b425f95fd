# SPDX-License-Identifier: GPL-2.0-or-later
"""What was left undecided is asked again with fresh boots, as many as the report asked for."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from kdelta.experiment import follow_up
from kdelta.model import Annotations, CellResult, plans
from kdelta.stats.paired import MIN_PAIRS
from kdelta.verdict import CellData, judge
from kdelta.verdict import fresh as fresh_blocks
from unit.verdict.verdict_cells import COUNT, TIME, boots, experiment


def answers(plan: dict[str, object], effect: float, sd: float, n: int) -> tuple[CellResult, ...]:
    """Two cases judged from n simulated boots: one that differs by ``effect``, one by 20 %."""
    rng = np.random.default_rng(11)
    data = []
    for case, by in enumerate((effect, 0.2)):
        for kernel in (0, 1):
            level = 1000 * np.exp(rng.normal(0, sd, n) + kernel * np.log1p(by))
            data.append(CellData(case=case, metric=TIME.name, kernel=kernel, boots=boots(level.tolist(), kernel)))
    asked = experiment(cases=2, **plan)  # type: ignore[arg-type]
    return judge(asked, data, {}, {"pipe": (TIME,)})


@pytest.mark.parametrize("boots_asked", [8, 9, 14, 20, 33, 400])
def test_a_plan_looks_at_eight_boots_or_later_and_ends_with_the_last(boots_asked: int) -> None:
    looks = fresh_blocks.looks(boots_asked)
    assert looks[-1] == boots_asked and looks[0] >= MIN_PAIRS and list(looks) == sorted(set(looks))
    assert fresh_blocks.looks(20) == (8, 12, 16, 20)


def test_only_what_is_undecided_is_asked_again_with_the_boots_that_it_needs() -> None:
    plan: dict[str, object] = {"looks": (8,), "blocks": 8}
    rows = answers(plan, 0.02, 0.02, 8)
    assert [row.verdict for row in rows] == ["inconclusive", "regressed"]
    asked = replace(experiment(cases=2), folders=("x",), annotations=Annotations(gate="closed", followed_by="y"))
    fresh = follow_up.follow_up(asked, rows)
    assert fresh is not None and [case.name for case in fresh.cases] == ["pipe0"]
    assert fresh.blocks == rows[0].boots_needed and fresh.looks == fresh_blocks.looks(fresh.blocks)
    assert (fresh.folders, fresh.plan, fresh.annotations) == (("x",), plans.Compare(follows=asked.id), Annotations())


@pytest.mark.full
def test_the_boots_that_were_asked_for_decide_it_mostly() -> None:
    decided, asked_for = 0, []
    for seed in range(60):
        rng = np.random.default_rng(seed)

        def cells(n: int, rng: np.random.Generator = rng) -> CellResult:
            data = [
                CellData(case=0, metric=TIME.name, kernel=k, boots=boots(
                    (1000 * np.exp(rng.normal(0, 0.02, n) + k * np.log1p(0.025))).tolist(), k
                ))
                for k in (0, 1)
            ]  # fmt: skip
            (row,) = judge(experiment(looks=fresh_blocks.looks(n), blocks=n), data, {}, {"pipe": (TIME,)})
            return row

        row = cells(8)
        if row.verdict == "inconclusive":
            asked_for.append(row.boots_needed or 0)
            row = cells(asked_for[-1])
        decided += row.verdict == "regressed"
    assert decided >= 48  # five in six, less what is noise over 60 searches


def test_kernels_that_are_decided_are_not_booted_again_and_a_grid_gets_twelve() -> None:
    asked = experiment(kernels=3, cases=2)
    row = answers({"looks": (8,), "blocks": 8}, 0.02, 0.02, 8)[0]
    one = follow_up.follow_up(asked, [replace(row, patched_label="c", boots_needed=8)])
    assert one is not None and [kernel.label for kernel in one.kernels] == ["a", "c"] and one.blocks == 8
    both = follow_up.follow_up(asked, [replace(row, patched_label=label, boots_needed=8) for label in "bc"])
    assert both is not None and len(both.kernels) == 3 and both.blocks == 12


def test_what_no_reasonable_number_of_boots_decides_is_not_begun() -> None:
    row = answers({"looks": (8,), "blocks": 8}, 0.02, 0.02, 8)[0]
    hopeless = replace(row, boots_needed=follow_up.MOST_BOOTS + 1)
    assert follow_up.follow_up(experiment(cases=2), [hopeless]) is None
    assert follow_up.undecided([hopeless]) == (hopeless,)


def test_nothing_undecided_asks_for_nothing() -> None:
    asked = experiment(cases=2)
    assert follow_up.follow_up(asked, answers({"looks": (20,)}, 0.2, 0.01, 20)) is None


def test_seeds_of_exact_counts_are_asked_for_alike() -> None:
    rng = np.random.default_rng(3)
    sides = [np.round(1000 * np.exp(rng.normal(0.005 * k, 0.015, 20))).tolist() for k in (0, 1)]
    data = [CellData(case=0, metric=COUNT.name, kernel=k, boots=boots(counts, k)) for k, counts in enumerate(sides)]
    asked = experiment(mode="exact", blocks=20, looks=(5, 8, 12, 16, 20))
    rows = judge(asked, data, {}, {"pipe": (COUNT,)})
    assert rows[0].verdict == "inconclusive"
    fresh = follow_up.follow_up(asked, rows)
    assert fresh is not None and fresh.effort.seeds == fresh.blocks >= MIN_PAIRS
