# SPDX-License-Identifier: GPL-2.0-or-later
"""A change that is mostly of what the kernel does later, in batches, is no verdict on a program."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.attribution.entries import TASK
from kdelta.attribution.exact import exact_metrics
from kdelta.errors import UserError
from kdelta.experiment import follow_up
from kdelta.model import (
    CallCount,
    Case,
    CellResult,
    Definition,
    MachineOptions,
    Profile,
    Quiet,
    RunResult,
    Series,
    plans,
)
from kdelta.report.headline import of_cells
from kdelta.report.sentences import sentence
from kdelta.results import answer, deferred, sweep
from kdelta.store.store import Store
from kdelta.verdict.warnings import UNDECIDABLE, Deferred, InBulk, Meanwhile
from unit.attribution import counts
from unit.report.report_samples import cell
from unit.store.store_builders import boot, experiment, kernel

PROGRAM = Case(workload="program", label="stress-ng/null", params={"pack": "0" * 32, "start": "1" * 32})
ROW = replace(cell("stress-ng/null", metric="instructions", verdict="improved", effect_percent=-2.5), baseline=20_000.0)
OPS = 200


def profile(later: int, *, own: int = 19_000, interrupt: int = 0, ops: int = OPS) -> Profile:
    """``own``, ``later`` and ``interrupt`` are instructions of an operation."""
    calls = {"lseek": own, TASK: later, "[timer interrupt]": interrupt}
    rows = {name: CallCount(calls=1, instructions=each * ops, rep_bytes=0) for name, each in calls.items()}
    total = (own + later + interrupt) * ops
    return replace(counts.profile({"rcu_core": total}), ops=ops, system_calls=rows)


@pytest.mark.parametrize(
    ("row", "case", "cpus", "after", "wanted"),
    [
        (ROW, PROGRAM, 1, profile(550), "inconclusive"),
        (ROW, PROGRAM, 1, profile(1000, own=18_500), "improved"),  # what it does itself
        (ROW, PROGRAM, 1, profile(700, own=18_800), "inconclusive"),
        (ROW, PROGRAM, 1, profile(550, ops=2000), "improved"),  # more than batches move
        (replace(ROW, verdict="regressed", effect_percent=2), PROGRAM, 1, profile(1000, interrupt=400), "inconclusive"),
        (ROW, PROGRAM, 2, profile(550), "improved"),
        (ROW, Case(workload="pipe"), 1, profile(550), "improved"),
        (ROW, PROGRAM, 1, replace(profile(550), system_calls={}), "improved"),
        (replace(ROW, verdict="same"), PROGRAM, 1, profile(550), "same"),
        (replace(ROW, metric="locked"), PROGRAM, 1, profile(550), "improved"),
    ],
)  # fmt: skip
def test_what_the_kernel_does_later_is_no_verdict(
    row: CellResult, case: Case, cpus: int, after: Profile, wanted: str
) -> None:
    """A patch that saves 5 instructions of lseek(2) had "improved" stress-ng's null by 2.49 % [-3.29, -0.82]."""
    told = deferred.held(row, case, cpus, [profile(1000)] * 5, [after] * 5)
    assert told.verdict == wanted
    assert any(isinstance(one, UNDECIDABLE) for one in told.warnings) == (wanted == "inconclusive")


FIO = replace(cell("fio/read-libaio", metric="instructions", verdict="regressed", effect_percent=5.1), baseline=2829.0)


def run_of(**functions: int) -> Profile:
    """2000 operations of a program, by functions; nothing of it is deferred."""
    found = {name.replace("start_up", "[start-up]"): n for name, n in functions.items()}
    return replace(counts.profile(found), ops=2000)


@pytest.mark.parametrize(
    ("before", "after", "ops", "wanted"),
    [
        (run_of(io_submit=5_956_000, start_up=-298_000), run_of(io_submit=5_956_000, start_up=-7600), 2000, None),
        (run_of(a=5_658_000), run_of(a=5_663_000, __rmqueue_pcplist=215_000, __list_add_valid=68_000), 2000, None),
        (run_of(a=5_658_000), run_of(a=5_946_000), 2000, "regressed"),  # what it does itself
        (run_of(a=5_658_000), run_of(a=5_658_000, __rmqueue_pcplist=288_000), 4000, "regressed"),  # more than a refill
    ],
)
def test_a_refill_of_the_page_lists_in_one_of_two_runs_is_no_verdict(
    before: Profile, after: Profile, ops: int, wanted: str | None
) -> None:
    """Under a longer command line fio's read-libaio was 5 % more, as its shorter run had no such page fault."""
    sides = ([replace(side, ops=ops)] * 5 for side in (before, after))
    told = deferred.held(FIO, PROGRAM, 1, *sides)
    assert told.verdict == (wanted or "inconclusive")
    warnings = [one for one in told.warnings if isinstance(one, InBulk)]
    assert [sentence(one).split(" made")[0][-21:] for one in warnings] == ([] if wanted else ["change of up to 5.3 %"])
    alone = replace(PROGRAM, params={"pack": "0" * 32})
    assert deferred.held(FIO, alone, 1, [before] * 5, [after] * 5).verdict == "regressed", "a whole run has no two"


def test_a_program_that_waits_is_judged_by_that() -> None:
    """A second of sleep has 125,000 more instructions of kernel threads on 7.0 than on 6.12, under every seed."""
    waits = [
        replace(one, functions={**one.functions, **counts.profile({"do_idle": 40 * OPS}).functions})
        for one in (profile(1000), profile(550))
    ]
    alone = replace(PROGRAM, params={"pack": "0" * 32})
    told = deferred.held(ROW, alone, 1, waits[:1], waits[1:])
    assert told.verdict == "improved"
    assert [w.left_percent for w in told.warnings if isinstance(w, Meanwhile)] == [pytest.approx(-0.25)]
    assert deferred.held(ROW, PROGRAM, 1, waits[:1], waits[1:]).verdict == "inconclusive"


def test_what_is_no_chance_and_yet_mostly_of_kernel_threads_is_told_so() -> None:
    """``sleep 1`` was "+20.92 %, because of chacha_permute": the program itself had 1 % more."""
    told = deferred.held(ROW, PROGRAM, 1, [profile(1000, ops=2000)], [profile(550, ops=2000)])
    (warning,) = (one for one in told.warnings if isinstance(one, Meanwhile))
    assert sentence(warning).endswith("without them it is -0.25 %")
    answered = of_cells([("null", told)], True, unfinished=False).text
    assert answered.endswith("in null: -2.50 %, without kernel threads and interrupts -0.25 %."), answered
    own = deferred.held(ROW, PROGRAM, 1, [profile(1000, ops=2000)], [profile(1000, own=18_500, ops=2000)])
    assert own.warnings == ROW.warnings


def test_steps_of_a_sweep_know_it_too() -> None:
    made = experiment(mode="exact", machine=MachineOptions())
    sides = {0: [profile(1000)], 1: [profile(550)]}
    (told,) = sweep._held(made, [ROW], (ROW.baseline_label, ROW.patched_label), sides, PROGRAM, False)
    assert told.verdict == "inconclusive"


def _run(later: int) -> RunResult:
    made = profile(later)
    series = [
        Series(metric=name, unit=f"{name}/op", better="lower", values=(value,))
        for name, value in (("instructions", 19_000.0 + later), ("loads", 5_000.0 + later))
    ]
    return RunResult(case=0, state="ok", series=tuple(series), profile=made)


def test_reports_and_verdicts_know_it_the_other_counts_too_and_no_boots_are_asked_for(tmp_path: Path) -> None:
    made = experiment(
        "e1", mode="exact", plan=plans.Compare(), kernels=(kernel("old"), kernel("new")), cases=(PROGRAM,), blocks=5,
        looks=(5, 8), machine=MachineOptions(), definitions={"program": Definition(metrics=exact_metrics())},
    )  # fmt: skip
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.create(made)
        for block in range(5):
            for side in (0, 1):
                store.save_boot(made.id, boot(block, side, kernel_index=side, runs=(_run(1000 - 450 * side),)))
        result, _ = answer.result(store, "e1")
        for rows in (result.results, answer.verdicts(store, made)):
            known = {one.metric: one.verdict for one in rows}
            assert (known["instructions"], known["loads"]) == ("inconclusive", "inconclusive")
        (row,) = (one for one in result.results if one.metric == "instructions")
        said = sentence(next(w for w in row.warnings if isinstance(w, Deferred)))
        assert "without them -2.25 % of instructions would be 0.00 %, so the count gives no verdict" in said
        with pytest.raises(UserError, match="no number of boots decides stress-ng/null, because most of the change"):
            follow_up.begin(store, made, Quiet(), None)  # type: ignore[arg-type]
