# SPDX-License-Identifier: GPL-2.0-or-later
"""Widths, wrapping and cleaning."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from kdelta.report import prose
from kdelta.report.figures import absolute, change, effect, interval
from kdelta.report.scrub import TEXT_LIMIT, Scrubber, clean
from kdelta.report.text import note_numbers, wrap, wrap_command
from kdelta.results.types import CellName, Sweep, SweepPoint, SweepStep
from unit.report.report_samples import kernel


@pytest.mark.parametrize(
    ("numbers", "told"),
    [((), ""), ((3,), "3"), ((1, 2, 3), "1,2,3"), ((1, 2, 3, 4), "1-4"), ((1, *range(3, 96), 99), "1,3-95,99")],
)
def test_many_notes_in_a_row_are_told_by_their_ends(numbers: tuple[int, ...], told: str) -> None:
    assert note_numbers(numbers) == told


@settings(derandomize=True)
@given(st.text(max_size=300), st.integers(20, 80))
def test_wrapped_lines_fit_and_lose_no_word(text: str, width: int) -> None:
    text = clean(text)
    lines = wrap(text, width, first="- ")
    assert all(cell_len(line) <= width for line in lines)
    joined = "".join(line[2:] for line in lines)
    assert joined.replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("figure", ["+17.93 %", "4.783 KiB", "232.0 B,", "661.3 ns", "-0.06 %)", "1.2 ms;", "5 s"])
def test_no_line_ends_between_a_figure_and_its_unit(figure: str) -> None:
    text = f"with as many calls it would be {figure} of what the baseline takes"
    for width in range(20, 60):
        assert any(figure in line for line in wrap(text, width))


@settings(derandomize=True)
@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=120), min_size=1))
def test_a_wrapped_command_can_still_be_pasted(words: list[str]) -> None:
    lines = wrap_command(shlex.join(words))
    assert all(cell_len(line) <= 72 for line in lines)
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == words


@settings(derandomize=True)
@given(st.text())
def test_clean_text_is_one_printable_line(text: str) -> None:
    result = clean(text)
    assert len(result) <= TEXT_LIMIT
    assert len(result.splitlines()) <= 1
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char in "\u202e\u200f\u2028" for char in result)
    assert clean(result) == result


def test_commands_that_follow_each_other_begin_a_line_each() -> None:
    assert wrap_command("kdelta compare a b && kdelta resume last") == ["kdelta compare a b", "kdelta resume last"]
    quoted = "kdelta compare a 'b,cmdline=\"x && y\"'"
    assert wrap_command(quoted) == [quoted]


def test_control_characters_become_visible() -> None:
    assert clean("a\x1b[31m\nb\u202ec\ud800") == "a\\x1b[31m\\nb\\u202ec\\ud800"


def test_long_labels_that_differ_stay_different() -> None:
    scrubber = Scrubber()
    first, second = (scrubber.struct(kernel("x" * 40 + middle + "y" * 40)).label for middle in "ab")
    assert first != second
    assert max(len(first), len(second)) <= 64
    assert scrubber.struct(kernel("x" * 40 + "a" + "y" * 40)).label == first


def test_a_struct_without_hostile_text_is_unchanged() -> None:
    name = CellName(case="pipe (memcg)", metric="latency_p50")
    assert Scrubber().struct(name) == name


def test_figures_are_short_whatever_the_value() -> None:
    for value in (0.0, 1e-300, 1e300, -1e300, 123456.0, 0.1):
        for unit in ("ns", "B", "ops/s", "instructions", ""):
            assert len(absolute(value, unit)) <= 25
    assert absolute(float("nan"), "ns") == "-"
    assert absolute(5569.0, "instructions", "instructions") == "5569"
    assert effect(1e300) == "+1.00e+300 %"
    assert change(None, 0.0, 5569597.0) == "now 5569597" and change(None, 0.0, 0.0078) == "now 0.0078"
    assert interval((1.0, 1.0), exact=True) == "exact"
    assert interval((1.0, float("inf")), exact=False) == ""


def test_bytes_that_read_the_same_before_and_after_a_step_are_not_told() -> None:
    """A sweep said "REP bytes 191.3 KiB before, 191.3 KiB from here on"."""
    step = SweepStep(last="6.1", first="6.12", baseline=10.0, patched=9.0, effect_percent=-10.0, verdict="improved")
    cell = CellName(case="pipe", metric="instructions")

    def told(before: float, after: float) -> str:
        points = tuple(
            SweepPoint(kernel=name, value=1.0, rep_bytes=moved) for name, moved in (("6.1", before), ("6.12", after))
        )
        return prose.moved(step, Sweep(cell=cell, unit="instructions", better="lower", points=points, steps=(step,)))

    assert told(195_890.0, 195_891.0) == ""
    assert told(195_890.0, 291.0) == "REP bytes 191.3 KiB before, 291.0 B from here on"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("src:debian:7.3+/home/me/.local/state/kdelta/reviews/1/fix.mbox", "src:debian:7.3+fix.mbox"),
        ("src:./linux@v6.12+/a/one.patch+b/two.patch", "src:./linux@v6.12+one.patch+b/two.patch"),
        ("/boot/vmlinuz-6.12+", "/boot/vmlinuz-6.12+"),
        ("/srv/c++/vmlinuz", "/srv/c++/vmlinuz"),
    ],
)
def test_the_table_names_patches_without_the_folders_of_whoever_measured(spec: str, told: str) -> None:
    assert told in prose.kernel(replace(kernel("patched"), spec=spec)).split(", ")
