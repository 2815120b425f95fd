# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of figures: none runs into another, and no line is wider than the terminal."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from kdelta.model import MovedLine, Profile, Waited
from kdelta.report import functions
from kdelta.report.rows import Row, laid_out
from kdelta.results.types import Detail
from unit.report.report_samples import cell

ROWS = (
    Row("function", ("before", "after", "delta"), "note"),
    Row("mod_memcg_lruvec_state", ("0.0", "1657740.0", "+1657740.0"), "new, maybe split out of another of a long name"),
    Row("memset_orig", ("12345678.0", "0.0", "-12345678.0"), "gone"),
)


@pytest.mark.parametrize("width", [None, 40, 72, 100])
def test_figures_stay_apart_however_large_they_are(width: int | None) -> None:
    lines = laid_out(ROWS, 34, width)
    found = [figure for line in lines for figure in re.findall(r"(?<!\S)[+-]?\d+\.\d(?!\S)", line)]
    assert found == [figure for row in ROWS[1:] for figure in row.figures]
    assert width is None or max(map(len, lines)) <= width


def test_in_a_file_no_name_is_cut() -> None:
    """sched_balance_update_blocked_aver is no function."""
    name = "sched_balance_update_blocked_averages"
    lines = laid_out((*ROWS, Row(name, ("4.7", "0.5", "-4.2"), "gone")), 34, None)
    assert lines[-1].split() == [name, "4.7", "0.5", "-4.2", "gone"]
    assert lines[1].index("1657740.0") == lines[0].index("after") - 4


def _profile(cost: int, moves: int) -> Profile:
    named: dict[str, tuple[int, ...]] = {
        f"a_function_with_a_name_that_is_long_{i}": (cost + i, 3, 2, i, 1, 0, 0) for i in range(3)
    }
    by = {"native_queued_spin_lock_slowpath": (moves, moves), "do_exit (_raw_write_lock_irq)": (0, moves)}
    line = MovedLine(name="task_struct.scx.tasks_node", reads=moves, writes=moves, cpus=4, by=by)
    wait = Waited(function="queued_write_lock_slowpath", caller="do_exit", lock="tasklist_lock", times=moves, taken=90)
    total = tuple(map(sum, zip(*named.values(), strict=True)))
    lines = dict.fromkeys(named, cost)
    return Profile(
        ops=1, functions=named, total=total, moved=(line,), waits=(wait,), data_lines=lines, code_lines=lines
    )


@pytest.mark.parametrize("width", [40, 60, 72, 100])
@pytest.mark.parametrize("alone", [False, True])
def test_the_lower_tables_of_why_follow_the_terminal_too(width: int, alone: bool) -> None:
    row = cell("thread_spawn", "instructions", patched_label="" if alone else "7.0")
    text = functions.render(row, _profile(1000, 4), _profile(1200, 9), Detail(), False, width)
    everything = functions.render(row, _profile(1000, 4), _profile(1200, 9), Detail(), True, width)
    assert max(map(len, (text + everything).splitlines())) <= width
    assert "tasks_node" in text and "tasklist_lock" in text and ("data lines" in text) is not alone


def test_of_what_is_the_same_no_function_has_a_share_and_no_share_is_less_than_0_by_nothing() -> None:
    before, after = _profile(1000, 4), _profile(1010, 4)
    changed, same = (
        functions.render(replace(cell("pipe", "instructions"), verdict=word), before, after, Detail(), False)
        for word in ("regressed", "same")
    )
    assert "100%" in changed and "%" not in same.split("locked operations")[0].partition("\n")[2]
    names = dict(zip(before.functions, ((1090, 0), (0, 1090), (10, 20)), strict=True))
    one, other = (
        replace(side, functions={name: (pair[i], *(0,) * 6) for name, pair in names.items()})
        for i, side in enumerate((before, after))
    )
    text = functions.render(cell("pipe", "instructions"), one, other, Detail(), False)
    assert "-0%" not in text and " 0%" in text


def test_a_verdict_that_no_function_explains_is_told_as_one() -> None:
    """Of "improved" by several levels the line said "no verdict"."""
    row = replace(cell("pipe", "instructions"), verdict="improved", because=())
    first = functions.render(row, _profile(1000, 4), _profile(990, 4), Detail(), False).splitlines()[0]
    assert first.endswith("improved, and no function changed by more than it varies between seeds")
