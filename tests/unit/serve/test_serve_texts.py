# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from kdelta.serve import console, lists, trend
from kdelta.store.rows import HistoryRow


@given(st.binary(max_size=400))
def test_a_console_never_holds_a_character_that_acts(content: bytes) -> None:
    text = console.readable(content)
    assert not [
        c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    ]


def test_a_long_console_is_cut_at_a_line() -> None:
    text, left_out = console.tail(b"first line\nsecond line\nthird\n", limit=15)
    assert (text, left_out) == ("third\n", 23)


def test_colours_are_taken_out_of_a_console() -> None:
    assert console.readable(b"\x1b[1;31mpanic\x1b[0m\r\n") == "panic\n"


@given(st.lists(st.integers(), max_size=30), st.integers(-5, 50), st.integers(1, 7))
def test_the_pages_of_a_list_hold_each_row_once(rows: list[int], number: int, size: int) -> None:
    first = lists.page(rows, 1, size)
    assert [r for n in range(first.pages) for r in lists.page(rows, n + 1, size).rows] == rows
    assert 1 <= lists.page(rows, number, size).number <= first.pages


def row(number: int, kernel: str = "7.0", value: float = 5.0) -> HistoryRow:
    return HistoryRow(
        experiment=f"e{number}",
        created_at=f"2026-01-01T{number // 60:02}:{number % 60:02}:00",
        mode="exact",
        tags=(),
        kernel=kernel,
        release=kernel,
        image_sha256="",
        mitigations="default",
        case="pipe",
        metric="instructions",
        unit="instructions",
        better="lower",
        value=value,
        values=(value, value),
    )


def test_a_trend_too_long_for_its_chart_keeps_the_newest_and_says_so() -> None:
    figure = trend.chart([row(n) for n in range(200)], "time", "pipe")
    assert (
        figure is not None and figure.markup.count("<circle") == trend.MAX_COLUMNS and "The 80 oldest" in figure.caption
    )


def test_kernels_stand_in_the_order_of_their_versions() -> None:
    figure = trend.chart([row(0, "6.12"), row(1, "6.2"), row(2, "6.1")], "kernel", "pipe")
    assert figure is not None
    assert figure.markup.index(">6.1<") < figure.markup.index(">6.2<") < figure.markup.index(">6.12<")


def test_figures_that_no_axis_holds_are_not_drawn() -> None:
    assert trend.chart([row(0, value=float("inf")), row(1, value=float("nan"))], "time", "pipe") is None


def test_a_change_of_a_third_of_a_percent_does_not_look_like_a_cliff() -> None:
    heights = []
    for change in (1.003, 1.3):
        figure = trend.chart([row(0, "6.1", value=1000.0), row(1, "6.2", value=1000.0 * change)], "kernel", "pipe")
        assert figure is not None
        first, second = (float(y) for y in re.findall(r'<circle[^>]* cy="([\d.]+)"', figure.markup))
        heights.append(first - second)
    small, large = heights
    assert 0 < small < large / 8


def test_announced_steps_are_marked_between_the_kernels() -> None:
    rows = [row(n, label) for n, label in enumerate(("6.1", "6.2", "6.12"))]
    marks = {"6.12": "step at 6.12: +4.2 %, open", "7.0": "not drawn"}
    figure = trend.chart(rows, "kernel", "pipe", marks)
    assert figure is not None
    assert figure.markup.count('class="step"') == 1 and "step at 6.12" in figure.markup
    over_time = trend.chart(rows, "time", "pipe", marks)
    assert over_time is not None and 'class="step"' not in over_time.markup


def test_one_experiment_on_several_kernels_is_drawn_by_kernel_unless_asked_otherwise() -> None:
    alone, more = [row(1, "6.12"), row(1, "7.0")], [row(1, "7.0"), row(2, "7.0")]
    assert [trend.axis(rows, "") for rows in (alone, more, alone[:1], [])] == ["kernel", "time", "time", "time"]
    assert [trend.axis(alone, asked) for asked in ("time", "kernel", "<b>")] == ["time", "kernel", "kernel"]
    assert trend.axis(more, "kernel") == "kernel"
