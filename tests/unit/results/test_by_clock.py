# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that runs for a time gets no verdict on the kernel's part of that time."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import exact_metrics
from kdelta.model import CallCount, Case, CellResult, Definition, MachineOptions, Profile, RunResult, Series, plans
from kdelta.report.sentences import sentence
from kdelta.results import answer, by_clock
from kdelta.store.store import Store
from kdelta.verdict.warnings import UNDECIDABLE, OtherCalls
from unit.attribution import counts
from unit.report.report_samples import cell
from unit.store.store_builders import boot, experiment, kernel

PROGRAM = Case(workload="program", label="faults", params={"pack": "0" * 32})
ROW = cell("faults", metric="instructions", unit="instructions/run", verdict="same", effect_percent=-0.4)
MILLION = 1_000_000


def seeds(*parts: tuple[float, ...]) -> list[Profile]:
    """By the kernel's part, the program's own and that of its end, in millions of instructions."""
    return [_seed(*(int(part * MILLION) for part in one)) for one in parts]


def _seed(kernel: int, own: int, end: int = 2 * MILLION) -> Profile:
    ends = CallCount(calls=1, instructions=end, rep_bytes=0)
    return replace(counts.profile({"x": kernel, "y": end}, user=own), system_calls={"exit_group": ends})


BEFORE = seeds((90.0, 10.0), (90.01, 9.99))


@pytest.mark.parametrize(
    ("after", "row", "case", "wanted"),
    [
        (seeds((89.5, 10.5), (89.51, 10.49)), ROW, PROGRAM, "inconclusive"),
        (seeds((89.5, 10.5), (89.51, 10.49)), replace(ROW, metric="locked"), PROGRAM, "inconclusive"),
        (seeds((89.5, 10.5), (89.51, 10.49)), replace(ROW, metric="user_instructions"), PROGRAM, "same"),
        (seeds((89.5, 10.0), (89.51, 9.99)), ROW, PROGRAM, "same"),  # the kernel alone does less
        (seeds((89.5, 10.5), (90.01, 9.99)), ROW, PROGRAM, "same"),  # by chance, under one seed
        (seeds((90.0, 10.5), (90.0, 10.5)), ROW, PROGRAM, "same"),  # the program alone does more
        (seeds((89.5, 10.5, 4.0), (89.51, 10.49, 5.0)), ROW, PROGRAM, "inconclusive"),  # what it left costs more
        (seeds((89.95, 10.05), (89.96, 10.04)), ROW, PROGRAM, "same"),  # so little may be the kernel's doing
        ([], ROW, PROGRAM, "same"),
        (seeds((89.5, 10.5), (89.51, 10.49)), ROW, Case(workload="pipe"), "same"),
        (seeds((89.5, 10.5)), ROW, replace(PROGRAM, params=PROGRAM.params | {"start": "1" * 32}), "same"),
    ],
)
def test_a_part_of_a_fixed_time_is_no_verdict(after: list[Profile], row: CellResult, case: Case, wanted: str) -> None:
    told = by_clock.held(row, case, 1, BEFORE, after)
    assert told.verdict == wanted
    assert any(isinstance(one, UNDECIDABLE) for one in told.warnings) == (wanted == "inconclusive")


def by(*shares: float) -> list[Profile]:
    return [replace(_seed(90 * MILLION, 10 * MILLION), faster_clock_cpu=share) for share in shares]


@pytest.mark.parametrize(
    ("shares", "case", "cpus", "wanted"),
    [
        ((0.909, 0.911, 0.91, 0.909), PROGRAM, 1, "inconclusive"),
        ((0.909, 0.911, 0.91, 0.909), PROGRAM, 4, "inconclusive"),
        ((0.955, 0.95, 0.95, 0.955), PROGRAM, 1, "inconclusive"),  # half of it
        ((0.909, 0.911, 0.91, 0.0), PROGRAM, 1, "same"),  # one seed does not say
        ((0.909, 0.911, 0.91, 1.0), PROGRAM, 1, "same"),
        ((0.7, 0.7, 0.7, 0.7), PROGRAM, 1, "same"),  # what no clock explains
        ((1.0, 1.0, 1.0, 1.0), PROGRAM, 1, "same"),
        ((0.909, 0.911, 0.91, 0.909), Case(workload="pipe"), 1, "same"),
    ],
)
def test_what_takes_less_time_by_a_faster_clock_runs_by_it(
    shares: tuple[float, ...], case: Case, cpus: int, wanted: str
) -> None:
    told = by_clock.held(ROW, case, cpus, by(*shares[:2]), by(*shares[2:]))
    assert told.verdict == wanted
    if wanted == "inconclusive":
        assert "where the clock goes 10 % faster, it takes" in sentence(told.warnings[-1])


def test_one_that_is_held_against_as_many_calls_keeps_its_verdict_and_is_told() -> None:
    row = replace(ROW, verdict="improved", warnings=(OTHER,))
    told = by_clock.held(row, PROGRAM, 1, BEFORE, seeds((89.5, 10.5), (89.51, 10.49)))
    assert told.verdict == "improved"
    said = sentence(told.warnings[-1])
    assert said.startswith(
        "the program runs until the clock says so: its own instructions, 9,995,000 -> 10,495,000, make"
    )


OTHER = OtherCalls(effect_percent=-2.0, same_calls_percent=-7.0, calls=(("getppid", 1.0, 2.0),), more=0, why="seed")


def test_verdicts_alone_know_it_too(tmp_path: Path) -> None:
    """Lists of experiments had a verdict that the report had taken away."""
    made = experiment(
        "e1", mode="exact", plan=plans.Compare(), kernels=(kernel("old"), kernel("new")), cases=(PROGRAM,), blocks=5,
        machine=MachineOptions(), definitions={"program": Definition(metrics=exact_metrics())},
    )  # fmt: skip
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.create(made)
        for block in range(5):
            for side in (0, 1):
                series = Series(
                    metric="instructions", unit="instructions/run", better="lower", values=(90.0 * MILLION,)
                )
                one = RunResult(case=0, state="ok", series=(series,), profile=by(0.91)[0])
                store.save_boot(made.id, boot(block, side, kernel_index=side, runs=(one,)))
        for rows in (answer.result(store, "e1")[0].results, answer.verdicts(store, made)):
            assert [one.verdict for one in rows if one.metric == "instructions"] == ["inconclusive"]
