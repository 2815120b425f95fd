# SPDX-License-Identifier: GPL-2.0-or-later
"""The figure of all effects in text."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from kdelta.model import CellResult, ExperimentResult
from kdelta.report import effects
from kdelta.report.view import build
from unit.report.report_samples import cell, experiment
from unit.report.test_headline import rows


def test_the_figure_in_text_has_a_letter_at_each_estimate_and_dashes_to_its_ends() -> None:
    results = (
        cell("down", effect_percent=-50.0, interval_percent=(-60.0, -40.0)),
        cell("up", effect_percent=40.0, interval_percent=(40.0, 40.0), verdict="regressed"),
        cell("none", effect_percent=0.0, interval_percent=(-5.0, 5.0), verdict="inconclusive"),
    )
    result = ExperimentResult(experiment=experiment("6.12", "7.0"), results=results)
    axis, down, up, none = effects.figure(build(result), width=6 + 101)
    assert axis.split() == ["-60", "%", "0", "+40", "%"]
    zero = axis.index("0", axis.index("%"))
    assert down.index("I") == 6 + 10 and down[6:27] == "-" * 10 + "I" + "-" * 10
    assert up.index("R") == 6 + 100 and down.index("|") == up.index("|") == none.index("?") == zero


def test_an_end_of_the_axis_has_no_exponent_where_the_rows_have_none() -> None:
    """slub_debug was +1101.75 % in its row and +1.11e+03 % above it."""
    up = cell("up", effect_percent=1101.75, interval_percent=(1092.5, 1111.2), verdict="regressed")
    result = ExperimentResult(experiment=experiment("6.12", "7.0"), results=(up, cell("down", effect_percent=-2.01)))
    assert effects.figure(build(result))[0].split()[-2:] == ["+1111", "%"]


def test_the_figure_leaves_out_the_suite_where_names_with_it_would_be_cut() -> None:
    long = [cell(f"contention/{name}", effect_percent=size) for name, size in (("pidfd_open_new", 2.0), ("pipe", 1.0))]
    told = effects.figure(build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=tuple(long))))
    assert [line.split()[0] for line in told[1:]] == ["pidfd_open_new", "pipe"]
    short = (cell("contention/dup", effect_percent=2.0), cell("contention/pipe", effect_percent=1.0))
    told = effects.figure(build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=short)))
    assert [line.split()[0] for line in told[1:]] == ["contention/dup", "contention/pipe"]


def test_of_several_suites_these_give_way_where_cases_would_have_one_name() -> None:
    """A review with --smp 4 had "syscalls/cre…nstructions" three times, of three cases, and "contention/c…" of two."""
    cases = (
        "syscalls/create_exists", "contention/open_separate", "contention/open_one", "syscalls/create_unlink-0",
        "contention/create_separate", "contention/create_one", "syscalls/create_many",
    )  # fmt: skip
    names = [f"{case}, {metric}" for case in cases for metric in ("instructions", "transfers")]
    told = effects.short_names(names, effects.NAME)
    assert len(set(told)) == len(names) and max(map(len, told)) <= effects.NAME
    assert told[:2] == ["create_ex…, instructions", "create_exists, transfers"]
    alike = ["a/pipe_of_many_writers, instructions", "b/pipe_of_many_writers, instructions"]
    assert effects.short_names(alike, effects.NAME) == ["a/pipe_of…, instructions", "b/pipe_of…, instructions"]


def test_of_a_long_name_the_case_is_cut_not_the_metric() -> None:
    found = [
        cell(case, metric, primary=True, effect_percent=size)
        for size, case in enumerate(("context_switch1:tasks=2", "page_fault1:tasks=2"), start=1)
        for metric in ("instructions", "transfers")
    ]
    told = effects.figure(build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=tuple(found))))
    names = [line[:24].strip() for line in told[1:]]
    assert names[:2] == ["context_s…, instructions", "context_swit…, transfers"]
    alone = ExperimentResult(
        experiment=experiment("6.12", "7.0"), results=(*found[2:], cell("pipe", effect_percent=3.0))
    )
    assert [line[:24].strip() for line in effects.figure(build(alone))[1:3]] == names[2:], "also where each is unique"
    assert names[2:] == ["page_faul…, instructions", "page_fault1:…, transfers"]


def test_an_effect_that_can_be_drawn_alone_says_of_which_kernel_it_is() -> None:
    """Where the other of two kernels panicked, the figure had one row, "instructions"."""
    drawn = cell("pidfd_open", effect_percent=2.0, patched_label="7.0")
    dead = cell("pidfd_open", state="panicked", patched_label="tiny", effect_percent=None, interval_percent=None)
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0", "tiny"), results=(drawn, dead)))
    assert [name for name, _ in effects.rows(view)] == [f"{drawn.metric}, 7.0"]


def test_the_legend_of_the_figure_has_each_sign_that_is_in_it() -> None:
    """A comparison of too few blocks drew stars, and the legend spoke of letters and dashes."""
    plain: dict[str, Any] = {"verdict": None, "interval_percent": None}
    stars = (cell("a", effect_percent=2.0, **plain), cell("b", effect_percent=1.0, **plain))
    judged = (cell("c", effect_percent=3.0), cell("d", effect_percent=-3.0))
    told = [
        effects.legend(build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=found)))
        for found in (stars, stars + judged, judged, judged[:1])
    ]
    assert told[0] == "In the figure * is an estimate without a verdict, and | is zero."
    assert "(I, R, =, ? as above, * without a verdict), dashes" in told[1]
    assert "(I, R, =, ? as above), dashes" in told[2]
    assert told[3] == "", "there is no figure"


@given(rows(kernels=1))
def test_the_figure_keeps_to_its_width(found: list[tuple[str, CellResult]]) -> None:
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=tuple(one for _, one in found)))
    assert all(len(line) <= 72 for line in effects.figure(view))
