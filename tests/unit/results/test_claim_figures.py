# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment says of a published figure: two kernels, two cases of one kernel, a function's share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from kdelta.model import BootResult, Case, Experiment, PlannedBoot, Profile, RunResult, Series
from kdelta.results import answer, claim_cross, claim_figures, claim_share
from kdelta.results.claims import Measured
from kdelta.spec.recipes import Claim
from kdelta.store.store import Store
from kdelta.verdict.warnings import MixedAccounts
from unit.results.test_explain import row
from unit.store.store_builders import experiment

SMALL, LARGE = Case(workload="pipe", params={"message": "1"}, label="small"), Case(workload="pipe", label="large")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def counted(case: int, **functions: int) -> RunResult:
    vectors: dict[str, tuple[int, ...]] = {name: (n, 0, 0, 0, 0, 0, 0) for name, n in functions.items()}
    total = sum(functions.values())
    series = Series(metric="instructions", unit="instructions/op", better="lower", values=(float(total),))
    profile = Profile(ops=1, functions=vectors, total=(total, 0, 0, 0, 0, 0, 0))
    return RunResult(case=case, state="ok", series=(series,), profile=profile)


def measured(store: Store, runs: Sequence[tuple[RunResult, ...]], seeds: int = 5) -> Experiment:
    """``runs[kernel]``, in every seed alike."""
    made = experiment(mode="exact", cases=(SMALL, LARGE), blocks=seeds)
    store.create(made)
    for block in range(seeds):
        for kernel, found in enumerate(runs):
            plan = PlannedBoot(block=block, slot=kernel, kernel=kernel)
            store.save_boot(made.id, BootResult(plan=plan, state="ok", runs=found))
    return made


RUNS = [
    (counted(0, pipe_write=600, lock=400), counted(1, pipe_write=1600, lock=400)),
    (counted(0, pipe_write=600, lock=300), counted(1, pipe_write=1600, lock=100)),
]


def figures(store: Store, claim: Claim, *cases: Case) -> Measured:
    return claim_figures.measured(claim, cases, answer.result(store, "first")[0], store)


def test_two_kernels_are_the_row_of_the_case(store: Store) -> None:
    measured(store, RUNS)
    found = figures(store, Claim(text="c", case="small"), SMALL)
    assert (found.before, found.after, found.verdict, found.why) == (1000.0, 900.0, "improved", "")
    assert found.counts and (found.columns[0].name, found.columns[0].verdict) == ("instructions", "improved")


def test_two_cases_on_one_kernel_are_paired_by_boot(store: Store) -> None:
    measured(store, RUNS)
    claim = Claim(text="c", from_case="small", case="large", on="patched")
    found = figures(store, claim, SMALL, LARGE)
    assert (found.before, found.after, found.verdict) == (900.0, 1700.0, "regressed")
    assert figures(store, replace(claim, on="baseline"), SMALL, LARGE).before == 1000.0


def test_the_share_of_a_function_is_of_kernel_instructions(store: Store) -> None:
    measured(
        store, [(counted(0, lock=400, read=600), counted(1, x=1)), (counted(0, lock=100, read=900), counted(1, x=1))]
    )
    found = figures(store, Claim(text="c", case="small", function="lock"), SMALL)
    assert [found.before, found.after] == pytest.approx([40.0, 10.0])
    assert found.unit == "% of kernel instructions" and found.verdict == "improved"


def test_a_share_needs_a_measured_row_and_the_names_of_functions(store: Store) -> None:
    measured(store, [(counted(0, **{"[unknown]": 5}), counted(1, x=1))] * 2)
    result = answer.result(store, "first")[0]
    claim = Claim(text="c", case="small", function="lock")
    rows = [one for one in result.results if one.case == "small"]
    assert claim_share.share(claim, SMALL, [], result.experiment, store).why == "small was not measured"
    assert claim_share.share(claim, SMALL, rows, result.experiment, store).why == "the kernel has no function names"


def test_a_function_that_runs_nowhere_is_told_as_that(store: Store) -> None:
    """Its share was "0 -> 0 %", and "a figure of zero has no ratio"."""
    measured(store, [(counted(0, lock=400, read=600), counted(1, x=1))] * 2)
    found = figures(store, Claim(text="c", case="small", function="lok", before=5, after=1), SMALL)
    assert found.before is None
    assert found.why == "lok runs on neither kernel in small: it may be inlined, or named otherwise"


def test_a_count_that_vanishes_in_the_other_case_is_a_hundred_percent_less() -> None:
    """Locked operations of which one case has none were -200 %, relative to the mean of both."""
    some, none = np.array([5.0] * 7 + [6.0]), np.array([0.0] * 8)
    gone = claim_cross.Cross(some, none, "lower", exact=True)
    assert (gone.verdict, gone.percent, gone.interval) == ("improved", -100.0, (-100.0, -100.0))
    new = claim_cross.Cross(none, some, "lower", exact=True)
    assert (new.verdict, new.percent, new.interval) == ("regressed", None, None)


def test_cases_that_no_boot_has_both_of_cannot_be_paired() -> None:
    assert claim_cross.cross(experiment(), [], (0, 1), 0, row()) is None


def test_what_was_not_measured_says_so(store: Store) -> None:
    measured(store, RUNS)
    found = figures(store, Claim(text="c", case="pidfd_open"), Case(workload="pidfd_open"))
    assert (found.state, found.why) == ("failed", "pidfd_open was not measured")


def test_an_undecided_row_says_what_would_help_or_what_stands_against_it() -> None:
    few = row(verdict="inconclusive", boots=(5, 5), detectable_percent=2.51)
    assert (
        claim_figures._undecided(few, exact=True)
        == "inconclusive after 5 seeds; minimum detectable effect 2.5 %: more --seeds"
    )
    mixed = MixedAccounts(-3.0, 2.0)
    assert claim_figures._undecided(replace(few, warnings=(mixed,)), exact=True) is mixed
    assert claim_figures._undecided(row(), exact=False) == ""
