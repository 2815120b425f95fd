# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that waits gets no verdict on what the kernel does meanwhile moves as well."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import exact_metrics
from kdelta.errors import UserError
from kdelta.experiment import follow_up
from kdelta.model import Case, Definition, MachineOptions, Profile, Quiet, RunResult, Series, plans
from kdelta.report.sentences import sentence
from kdelta.results import answer, sweep, waiting
from kdelta.store.store import Store
from kdelta.verdict.warnings import UNDECIDABLE, Waited
from unit.attribution import counts
from unit.report.report_samples import cell
from unit.store.store_builders import boot, experiment, kernel

PROGRAM = Case(workload="program", label="sleep 1", params={"pack": "0" * 32})
ROW = cell("sleep 1", metric="instructions", unit="instructions/run", verdict="improved", effect_percent=-1.9)


def seeds(*idle: int) -> list[Profile]:
    return [replace(counts.profile({"nanosleep": 500} | ({"do_idle": one} if one else {})), ops=1) for one in idle]


@pytest.mark.parametrize(
    ("row", "case", "cpus", "after", "wanted"),
    [
        (ROW, PROGRAM, 1, (40, 80), "inconclusive"),
        (replace(ROW, metric="locked", verdict="regressed", effect_percent=3.0), PROGRAM, 1, (40, 80), "inconclusive"),
        (replace(ROW, effect_percent=-9.0), PROGRAM, 1, (40, 80), "improved"),  # more than identical kernels differ by
        (ROW, PROGRAM, 1, (0, 80), "improved"),  # it does not wait under each seed
        (ROW, PROGRAM, 1, (), "improved"),
        (ROW, PROGRAM, 2, (40, 80), "improved"),  # there each seed has a boot of its own
        (ROW, replace(PROGRAM, params=PROGRAM.params | {"start": "1" * 32}), 1, (40, 80), "improved"),
        (ROW, Case(workload="pipe"), 1, (40, 80), "improved"),
        (replace(ROW, verdict="same"), PROGRAM, 1, (40, 80), "same"),
    ],
)
def test_a_small_change_of_a_program_that_waits_is_no_verdict(
    row: object, case: Case, cpus: int, after: tuple[int, ...], wanted: str
) -> None:
    told = waiting.held(row, case, cpus, seeds(40, 40), seeds(*after))  # type: ignore[arg-type]
    assert told.verdict == wanted
    assert any(isinstance(one, UNDECIDABLE) for one in told.warnings) == (wanted == "inconclusive")


@pytest.mark.parametrize(
    ("kernel", "user", "wanted"), [(10, 0, "improved"), (4, 0, "inconclusive"), (4, 9, "inconclusive")]
)
def test_of_a_long_run_the_wait_is_less(kernel: int, user: int, wanted: str) -> None:
    million = 1_000_000
    long = [counts.profile({"do_idle": 40, "x": kernel * million}, user=user * million)] * 2
    assert waiting.held(ROW, PROGRAM, 1, long, long).verdict == wanted


def test_steps_of_a_sweep_know_it_too() -> None:
    made = experiment(mode="exact", machine=MachineOptions())
    sides = {0: seeds(40), 1: seeds(40)}
    (told,) = sweep._held(made, [ROW], (ROW.baseline_label, ROW.patched_label), sides, PROGRAM, False)
    assert told.verdict == "inconclusive"


def _run(cost: int) -> RunResult:
    series = Series(metric="instructions", unit="instructions/run", better="lower", values=(float(cost),))
    return RunResult(case=0, state="ok", series=(series,), profile=seeds(40)[0])


def test_reports_and_verdicts_know_it_and_no_boots_are_asked_for(tmp_path: Path) -> None:
    made = experiment(
        "e1", mode="exact", plan=plans.Compare(), kernels=(kernel("old"), kernel("new")), cases=(PROGRAM,), blocks=5,
        looks=(5, 8), machine=MachineOptions(), definitions={"program": Definition(metrics=exact_metrics())},
    )  # fmt: skip
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.create(made)
        for block in range(5):
            for side in (0, 1):
                store.save_boot(made.id, boot(block, side, kernel_index=side, runs=(_run(10_000 - 190 * side),)))
        result, _ = answer.result(store, "e1")
        for rows in (result.results, answer.verdicts(store, made)):
            assert [one.verdict for one in rows if one.metric == "instructions"] == ["inconclusive"]
        (row,) = (one for one in result.results if one.metric == "instructions")
        assert sentence(next(w for w in row.warnings if isinstance(w, Waited))).startswith("the program waits, and")
        with pytest.raises(UserError, match="no number of boots decides sleep 1, because what the kernel does"):
            follow_up.begin(store, made, Quiet(), None)  # type: ignore[arg-type]
