# SPDX-License-Identifier: GPL-2.0-or-later
"""The report in terminals of any width: nothing that was measured is lost in a narrow one, a wide one is used."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from kdelta.report import effects, terminal
from kdelta.report.text import PROSE
from kdelta.report.view import View, build
from unit.report import report_samples, sweep_samples
from unit.report.test_heatmap import many

VIEWS = {
    "timed": build(*report_samples.timed()),
    "exact": build(*report_samples.exact()),
    "gaps": build(*report_samples.gaps()),
    "several": build(*report_samples.several()),
    "sweep": build(*sweep_samples.sweep()),
    "many": many(),
}


@pytest.mark.parametrize("width", [1, 40, 47, 60, 80, 100, 200])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_lost(view: View, width: int) -> None:
    text = terminal.render(view, width=width)
    assert max(map(cell_len, text.splitlines())) <= max(width, 40)
    usual = terminal.render(view)
    assert all(text.count(mark) == usual.count(mark) for mark in ("(R)", "(I)"))
    figures = {cell.interval for _, _, cell in view.cells()} | {cell.effect for _, _, cell in view.cells()}
    assert [figure for figure in figures if figure not in text] == []


def test_in_a_wide_terminal_all_kernels_stand_beside_each_other_with_their_intervals() -> None:
    lines = terminal.render(VIEWS["several"], width=200).splitlines()
    row = next(line for line in lines if line.startswith("pidfd_open") and " ns " in line)
    assert row.count(" %") == 4 and row.count("[") == 5  # of which one is of a note
    assert sum(set(line) == {"-"} for line in lines) == 1
    assert sum(set(line) == {"-"} for line in terminal.render(VIEWS["several"]).splitlines()) > 1


def test_sentences_and_narrow_tables_stay_readable_in_a_wide_terminal() -> None:
    lines = terminal.render(VIEWS["exact"], width=200).splitlines()
    assert max(map(cell_len, lines)) <= PROSE
    (rule,) = [line for line in lines if line and set(line) == {"-"}]
    assert cell_len(rule) <= PROSE


def test_the_rule_is_dim_at_any_width() -> None:
    for width in (40, 72, 200):
        assert re.search("\x1b\\[2m-{40,}\x1b", terminal.render(VIEWS["several"], colour=True, width=width))


@pytest.mark.parametrize("width", [40, 72])
def test_names_in_the_figure_are_cut_where_they_stay_apart_and_leave_room_for_it(width: int) -> None:
    _, *drawn = effects.figure(VIEWS["several"], width)
    names = [line[: min(24, width // 3 + 1)] for line in drawn]
    assert len(set(names)) == len(drawn) == 7
