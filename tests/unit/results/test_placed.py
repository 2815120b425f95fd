# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program's tasks do on several CPUs hangs on where the scheduler puts them: no verdict is made of that."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import exact_metrics
from kdelta.model import Case, CellResult, Definition, MachineOptions, MovedLine, Profile, RunResult, Series, plans
from kdelta.report.sentences import sentence
from kdelta.results import answer, placed
from kdelta.store.store import Store
from kdelta.verdict.warnings import BelowDelta, Placed
from unit.attribution import counts
from unit.report.report_samples import cell
from unit.store.store_builders import boot, experiment, kernel

PROGRAM = Case(workload="program", label="make", params={"pack": "0123"})
SUITES = Case(workload="hackbench/thread", params={"pack": "0123", "start": "4567"})
PINNED = Case(workload="pipe")


def side(**called: int) -> list[Profile]:
    return [replace(counts.profile({"f": 100}), ops=1, called={"read": 9, **called})]


ALONE, SEVERAL = side(), side(clone3=8)


def row(metric: str, percent: float, verdict: str = "regressed") -> CellResult:
    return cell("make", metric=metric, effect_percent=percent, verdict=verdict, warnings=(BelowDelta(1.0),))


@pytest.mark.parametrize(
    ("case", "cpus", "after", "found", "undecided"),
    [
        (PROGRAM, 4, SEVERAL, row("transfers", 80.0), True),
        (PROGRAM, 4, SEVERAL, row("instructions", 2.0), True),
        (PROGRAM, 4, SEVERAL, row("locked", -4.0, "improved"), True),
        (PROGRAM, 4, SEVERAL, row("instructions", 9.0), False),  # more than identical kernels ever had
        (PROGRAM, 4, ALONE, row("transfers", 80.0), False),  # it has one task
        (PROGRAM, 1, SEVERAL, row("instructions", 2.0), False),
        (SUITES, 2, ALONE, row("transfers", 80.0), True),  # its tasks began before the operations that are counted
        (PINNED, 4, SEVERAL, row("transfers", 80.0), False),
        (PROGRAM, 4, SEVERAL, row("transfers", 0.1, "same"), False),
    ],
)
def test_a_verdict_falls_that_placement_alone_could_make(
    case: Case, cpus: int, after: list[Profile], found: CellResult, undecided: bool
) -> None:
    told = placed.held(found, case, cpus, ALONE, after)
    if not undecided:
        assert told == found
        return
    assert (told.verdict, told.p_value, told.warnings) == ("inconclusive", None, (Placed(cpus),))
    assert told.effect_percent == found.effect_percent
    assert f"on {cpus} CPUs the scheduler places the program's tasks" in sentence(told.warnings[0])


def _run(transfers: int) -> RunResult:
    moved = (MovedLine(name="futex_queues", reads=0, writes=transfers),)
    profile = replace(SEVERAL[0], moved=moved)
    figures = {"instructions": 100.0, "transfers": float(transfers), "waits": 0.0}
    series = tuple(Series(metric=m, unit=f"{m}/run", better="lower", values=(v,)) for m, v in figures.items())
    return RunResult(case=0, state="ok", series=series, profile=profile)


@pytest.mark.parametrize(
    ("case", "booted", "wanted"),
    [
        (PROGRAM, False, "inconclusive"),
        (PROGRAM, True, "regressed"),  # each seed had placed its tasks anew
        (replace(PROGRAM, params={}), False, "regressed"),
    ],
)
def test_reports_verdicts_and_lines_know_it(tmp_path: Path, case: Case, booted: bool, wanted: str) -> None:
    workload = Definition(metrics=exact_metrics(cpus=4), moved_floor_percent=5.0, one_task=True, booted_seeds=booted)
    made = experiment(
        "e1", mode="exact", plan=plans.Compare(), kernels=(kernel("old"), kernel("new")), cases=(case,), blocks=5,
        looks=(5, 8), machine=MachineOptions(smp=4),
        definitions={"program": workload},
    )  # fmt: skip
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.create(made)
        for block in range(5):
            for side in (0, 1):
                runs = (_run(1900 + 1600 * side + block),)
                store.save_boot(made.id, boot(block, side, kernel_index=side, runs=runs))
        result, _ = answer.result(store, "e1")
        for rows in (result.results, answer.verdicts(store, made)):
            assert [one.verdict for one in rows if one.metric == "transfers"] == [wanted]
    (told,) = (one for one in result.results if one.metric == "transfers")
    assert any("has one task" in sentence(w) for w in told.warnings) == ("pack" not in case.params)
    assert bool(result.counts) == (wanted == "regressed"), "lines have no verdicts either"
