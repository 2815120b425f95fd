# SPDX-License-Identifier: GPL-2.0-or-later
"""The first sentence: of other metrics of a sweep, and of guests that are not those that were asked for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.model import Case, Looked, Remark
from kdelta.model.experiment import SHARED, UNLIKE
from kdelta.report import terminal
from kdelta.report.headline import of_cells, of_sweeps
from kdelta.report.view import build
from kdelta.results.warnings import Carried, FewerCpus, Grows, IsolatedCpus
from kdelta.verdict.warnings import Strings
from unit.report.report_samples import cell, exact
from unit.report.sweep_samples import sweep


def test_steps_of_transfers_are_more_and_fewer_transfers() -> None:
    _, detail = sweep()
    steps = replace(detail.sweeps[0], cell=replace(detail.sweeps[0].cell, metric="transfers"), unit="transfers/op")
    kernels = [point.kernel for point in steps.points]
    text = of_sweeps([("a", steps)], kernels, exact=True, unfinished=False).text
    assert text.startswith(f"2 steps over {len(kernels)} kernels, {kernels[0]} to {kernels[-1]}, in 1 case: ")
    assert " case: 1 to fewer transfers, 1 to more. " in text


def test_cases_of_a_sweep_without_a_figure_are_counted_apart() -> None:
    """Of 111 cases of files, Debian's kernels run the 17 of tmpfs: "98 steps in 111 cases"."""
    _, detail = sweep()
    one = detail.sweeps[0]
    none = replace(one, steps=(), points=tuple(replace(p, value=None, state="unsupported") for p in one.points))
    kernels, rows = [point.kernel for point in one.points], [("a", one), ("b", none), ("c", none)]
    text = of_sweeps(rows, kernels, exact=True, unfinished=False).text
    assert ", in 1 case: " in text and "; 2 have no figure" in text
    for other in (of_sweeps(rows, kernels, True, unfinished=True), of_sweeps(rows[1:], kernels, True, False)):
        assert "no figure" not in other.text and other.text.count("case") == 1


def test_that_a_guest_had_fewer_cpus_is_part_of_the_answer() -> None:
    result, detail = exact()
    told = (FewerCpus("a", 1, 4, 8, 8), FewerCpus("b", 3, 4, 1, 8), IsolatedCpus("c", "isolcpus=1"))
    view = build(replace(result, warnings=(*told, *result.warnings)), detail)
    assert ". a had 1 of 4 CPUs; b had 3 of 4 CPUs; c kept tasks off some CPUs" in view.headline.text
    text = " ".join(terminal.render(view).split())
    assert "a came up with 1 of 4 CPUs: by its command line" in text


def test_that_kernels_have_other_configs_is_part_of_the_answer() -> None:
    """Debian's 7.3 against the same source with our config: "executes fewer instructions, -27.96 %", and no more."""
    result, detail = exact()
    told = Remark(UNLIKE, "b was built here, a was not: 5,210 options of their configs differ, and part")
    view = build(replace(result, warnings=(told, *result.warnings)), detail)
    assert ". b was built here, a was not: part of each effect may be the config's" in view.headline.text
    assert "5,210 options of their configs differ" in " ".join(terminal.render(view).split())


def test_that_one_cpu_shows_nothing_of_what_a_patch_shares_is_part_of_the_answer() -> None:
    """A lock put beside what all read: "as many instructions in all 12 cases", and that was the answer."""
    result, detail = exact()
    told = Remark(SHARED, "struct foo, spin_lock")
    notes = replace(result.experiment.annotations, notes=(told,))
    one = replace(result.experiment, cases=(Case(workload="pipe"),), annotations=notes)
    view = build(replace(result, experiment=one, warnings=(told, *result.warnings)), detail)
    assert ". What moves between CPUs (struct foo, spin_lock) was not looked at: --smp 8 does." in view.headline.text
    assert any("the same command with --smp 8 does" in line for line in view.looked)
    assert told.text not in view.footnotes
    arm = replace(one, kernels=tuple(replace(kernel, arch="arm64") for kernel in one.kernels))
    view = build(replace(result, experiment=arm), detail)
    assert view.headline.text.endswith("was not looked at.") and not any("--smp" in line for line in view.looked)
    for quiet in (replace(one, machine=replace(one.machine, smp=4)), replace(one, cases=())):
        view = build(replace(result, experiment=quiet), detail)
        assert "between CPUs" not in view.headline.text
    shifted = replace(notes, looked=Looked(functions=9, differ=0, candidates=0, shifted=True, elsewhere=("foo",)))
    view = build(replace(result, experiment=replace(one, cases=(), annotations=shifted), results=()), detail)
    assert "at other addresses" in view.headline.text
    assert view.headline.text.endswith("looked at: kdelta compare BASELINE PATCHED --smp 8 --case CASE does.")


def test_of_as_many_cases_the_larger_hidden_change_is_told() -> None:
    """Of fork_vmas, with twelve times the locked operations, nothing was told beside -30 % of those of pipe."""
    rows = [
        cell(
            name, metric="instructions", unit="instructions/op", verdict=word, effect_percent=instructions,
            warnings=(Carried(instructions, (("locked", locked),), "f"),),
        )
        for name, word, instructions, locked in (("a", "same", 0.1, -30.0), ("b", "improved", -42.8, 1139.5))
    ]  # fmt: skip
    text = of_cells([(row.case, row) for row in rows], exact=True, unfinished=False).text
    assert "More locked operations: +1139.50 % in b" in text


def test_what_string_instructions_move_makes_a_difference_the_largest() -> None:
    """64 KiB more to clear in each call is one instruction: another case had the largest difference."""
    rows = [
        cell(
            name, metric="instructions", unit="instructions/op", verdict="regressed", effect_percent=percent, warnings=w
        )
        for name, percent, w in (("a", 23.7, ()), ("b", 5.0, (Strings(779.8, "clear"),)), ("c", 9.0, (Strings(8.0),)))
    ]
    text = of_cells([(row.case, row) for row in rows], exact=True, unfinished=False).text
    assert "b +5.00 % (+779.80 % with string instructions by what they move, most of it in clear)" in text


@pytest.mark.parametrize(("better", "interval", "word"), [
    ("lower", (0.0, 14.0), "more"), ("lower", (-14.0, 0.0), "fewer"), ("lower", (-1.0, 9.0), "more"),
])  # fmt: skip
def test_what_is_undecided_is_asked_on_the_side_of_its_interval(
    better: str, interval: tuple[float, float], word: str
) -> None:
    """0.00 % [0.00, +14.02] was "undecided whether 7.0 executes fewer instructions"."""
    one = cell(
        "pipe",
        verdict="inconclusive",
        effect_percent=0.0,
        interval_percent=interval,
        better=better,
        metric="instructions",
        unit="instructions/op",
    )
    assert f"whether {one.patched_label} executes {word} instructions" in of_cells([("pipe", one)], True, False).text


@pytest.mark.parametrize(
    ("growing", "told"),
    [
        (["6.9"], True),
        (["6.8", "6.9"], False),  # so does the baseline: it is the case
        (["6.8"], False),
    ],
)
def test_a_patched_kernel_that_does_more_each_time_is_told(growing: list[str], told: bool) -> None:
    """A patch that walks a list of all calls before was +330 %, which hangs on how often the case ran."""
    grows = Grows(tuple((label, 18.2) for label in growing))
    row = cell(
        "uname", metric="instructions", verdict="regressed", effect_percent=330.0, warnings=(grows,),
        baseline_label="6.8", patched_label="6.9",
    )  # fmt: skip
    answer = of_cells([("uname", row)], exact=True, unfinished=False).text
    assert answer.endswith("In 1 case each repetition costs more than the one before.") == told
