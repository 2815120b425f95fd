# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel instructions by system call: per operation, before and after, in every format that people read."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from kdelta.model import CallCount, Case, ExperimentResult, Profile, plans
from kdelta.report import registry
from kdelta.report import system_calls as calls
from kdelta.report.view import build
from kdelta.results import system_calls
from kdelta.results.types import Detail, SystemCalls
from unit.report.report_samples import cell, experiment


def profile(ops: int = 1, **calls: tuple[int, int, int]) -> Profile:
    counted = {
        name.replace("page_fault", "[page fault]"): CallCount(calls=n, instructions=i, rep_bytes=b)
        for name, (n, i, b) in calls.items()
    }
    return Profile(ops=ops, functions={}, total=(0,) * 7, system_calls=counted)


BEFORE = profile(read=(300, 190_800, 19_200), page_fault=(98, 409_029, 361_328), rseq=(1, 442, 0))
AFTER = profile(read=(300, 183_300, 0), page_fault=(105, 524_281, 218_704), statx=(1, 900, 0))


def tables(*profiles: Profile, workload: str = "program") -> tuple[SystemCalls, ...]:
    asked = experiment("6.12", "7.0", mode="exact") if len(profiles) > 1 else experiment("6.12", mode="exact")
    named = replace(asked, cases=(Case(workload=workload, label="git status"),))
    return system_calls.of_profiles(named, {(0, "default"): dict(enumerate(profiles))})


def rendered(name: str, found: tuple[SystemCalls, ...]) -> str:
    result = ExperimentResult(experiment=experiment("6.12", "7.0", mode="exact"), results=(cell("git status"),))
    text = registry.formats()[name].render(build(result, Detail(system_calls=found)))
    assert isinstance(text, str)
    return text


def test_in_a_sweep_a_version_stands_beside_the_one_before_as_its_step_does() -> None:
    """A step of +1.25 % from 7.0 to 7.3 had a table from 6.12 to 7.3, of -1.3 %."""
    asked = experiment("6.12", "7.0", "lost", "7.3", mode="exact", plan=plans.Sweep())
    asked = replace(asked, cases=(Case(workload="program", label="git status"),))
    cell_profiles = {(0, "default"): {0: BEFORE, 1: AFTER, 3: BEFORE}}
    found = system_calls.of_profiles(asked, cell_profiles)
    assert [(one.baseline_label, one.patched_label) for one in found] == [("6.12", "7.0"), ("7.0", "7.3")]
    assert [row.delta for row in found[1].rows] == [row.delta for row in tables(AFTER, BEFORE)[0].rows]


def test_why_of_a_sweep_compares_calls_of_the_kernels_that_it_compares_functions_of() -> None:
    """From 0/3 to 3/3 pipe_write() cost 6 more, and write(2), from 2/3 to 3/3, the same."""
    asked = experiment("6.12", "7.0", "7.3", mode="exact", plan=plans.Sweep())
    asked = replace(asked, cases=(Case(workload="program", label="git status"),))
    found = system_calls.of_profiles(asked, {(0, "default"): {0: BEFORE, 1: AFTER, 2: AFTER}})
    row = replace(cell("git status"), metric="instructions", patched_label="7.3")
    (table,) = system_calls.of_row(row, BEFORE, AFTER, Detail(system_calls=found)).system_calls
    assert (table.baseline_label, table.patched_label) == ("6.12", "7.3")
    assert table.rows == tables(BEFORE, AFTER)[0].rows
    text = calls.below(row, Detail(system_calls=(table,)), everything=True)
    assert "git status, 6.12 -> 7.3" in text


def test_the_largest_difference_comes_first_and_each_side_may_lack_a_call() -> None:
    (table,) = tables(BEFORE, AFTER)
    assert [(row.name, row.delta) for row in table.rows] == [
        ("[page fault]", 115_252.0),
        ("read", -7_500.0),
        ("statx", 900.0),
        ("rseq", -442.0),
    ]
    assert (table.rows[2].baseline, table.rows[3].patched) == (None, None)


def test_of_calls_that_did_not_change_the_largest_comes_first() -> None:
    before = profile(close=(1, 300, 0), read=(1, 500, 0), write=(1, 900, 0))
    (table,) = tables(before, profile(close=(1, 300, 0), read=(1, 501, 0), write=(1, 900, 0)))
    assert [row.name for row in table.rows] == ["read", "write", "close"]
    (alone,) = tables(before)
    assert [row.name for row in alone.rows] == ["write", "read", "close"]


def test_figures_are_per_operation() -> None:
    (table,) = tables(profile(ops=4, read=(6, 1000, 40)))
    assert table.rows[0].baseline is not None
    assert (table.rows[0].baseline.calls, table.rows[0].before, table.rows[0].patched) == (1.5, 250.0, None)


@pytest.mark.parametrize("name", ["terminal", "mail"])
def test_the_table_of_a_program_fits_the_page(name: str) -> None:
    text = rendered(name, tables(BEFORE, AFTER))
    assert "Kernel instructions by system call: git status, 6.12 -> 7.0 (median seed)" in " ".join(text.split())
    (line,) = (line for line in text.splitlines() if line.startswith("[page fault]"))
    assert line.split()[2:] == ["98->105", "409029", "524281", "+115252", "353K->214K"]
    assert all(len(line) <= 72 for line in text.splitlines())


def test_a_name_is_whole_where_its_figures_leave_little_room() -> None:
    long = {"[kernel threads and new tasks]": CallCount(calls=0, instructions=5_223_000, rep_bytes=14_060)}
    sides = [replace(profile(), system_calls=BEFORE.system_calls | long) for _ in range(2)]
    found = rendered("terminal", tables(*sides)).splitlines()
    at = found.index("[kernel threads and new tasks]")
    assert found[at + 1].split() == ["0", "5223000", "5223000", "0", "14K"]


def test_markdown_and_pages_have_the_table() -> None:
    assert "| read | 300 | 190800 | 183300 | \\-7500 | 19K-\\>0 |" in rendered("markdown", tables(BEFORE, AFTER))
    assert '<th scope="row">[page fault]</th><td class="number">98-&gt;105</td>' in rendered(
        "html", tables(BEFORE, AFTER)
    )


def test_json_has_every_call_of_every_case() -> None:
    (table,) = json.loads(rendered("json", tables(BEFORE, AFTER, workload="pipe")))["system_calls"]
    assert table["patched_kernel"] == "7.0"
    assert table["rows"][2] == {
        "name": "statx",
        "baseline": None,
        "patched": {"calls": 1.0, "instructions": 900.0, "rep_bytes": 0.0},
    }


def test_only_programs_have_the_table_in_the_report() -> None:
    assert "system call" not in rendered("terminal", tables(BEFORE, AFTER, workload="pipe"))


def test_the_small_ones_of_many_are_one_row() -> None:
    many = {f"call_{i}": CallCount(calls=1, instructions=1000 - i, rep_bytes=0) for i in range(30)}
    text = rendered("terminal", tables(replace(profile(), system_calls=many)))
    assert "call_14" in text and "call_15" not in text
    assert "15 others" in text and str(sum(1000 - i for i in range(15, 30))) in text


@pytest.mark.parametrize("name", ["terminal", "mail"])
def test_no_figure_is_too_wide_for_the_page(name: str) -> None:
    calls = dict.fromkeys(("epoll_wait", "page_fault"), (23_120, 121_995_490, 14_060_000_000))
    rose = {call: (row[0] + 10, row[1] + 2_072_749, row[2] * 2) for call, row in calls.items()}
    for times in (1, 30):  # beside the names, and below them
        sides = [{c: tuple(times * n for n in row) for c, row in side.items()} for side in (calls, rose)]
        text = rendered(name, tables(*(profile(**side) for side in sides)))  # type: ignore[arg-type]
        assert f"+{2_072_749 * times}" in text and "[page fault]" in text
        assert max(map(len, text.splitlines())) <= 72
