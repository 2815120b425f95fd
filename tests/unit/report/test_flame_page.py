# SPDX-License-Identifier: GPL-2.0-or-later
"""The flame graph of a page that is alone."""

from __future__ import annotations

import re

import pytest

from kdelta.model import Profile
from kdelta.report import flame_page
from kdelta.report.charts import Figure
from kdelta.results.types import CellName, StackDiff


def drawn(before: str, after: str, most: int = 1000) -> Figure | None:
    sides = [Profile(ops=1, functions={}, total=(0,) * 7, stacks=text) for text in (before, after)]
    cell = CellName(case="pipe", metric="instructions")
    item = StackDiff(cell=cell, baseline_label="6.12", patched_label="7.0", before=sides[0], after=sides[1])
    return flame_page.figure(item, 3, most)


def edges(figure: Figure) -> list[tuple[float, float]]:
    return [(float(left), float(wide)) for left, wide in re.findall(r"--l:([-\d.e]+);--w:([-\d.e]+);", figure.markup)]


def test_frames_stand_within_their_callers_and_those_that_changed_are_listed() -> None:
    figure = drawn("0 10 0 [kernel]\n1 60 1 a\n2 30 1 b", "0 10 0 [kernel]\n1 60 1 a\n2 10 1 b\n1 20 1 c")
    assert figure is not None
    root, a, b, c = sorted(edges(figure), key=lambda place: (-place[1], place[0]))
    assert root == (0.0, 100.0)
    assert a == pytest.approx((0.0, 75.0), abs=0.01)  # 60 of its own and b's 30, of 120 at most
    assert b[0] >= a[0] and b[0] + b[1] <= a[0] + a[1] + 0.01 <= c[0] + 0.02
    assert figure.rows == (("b", "30", "10", "-20", "1", "itself in a"), ("c", "0", "20", "+20", "0->1", "now called"))
    assert "Every call was followed" in figure.caption
    assert sorted(re.findall(r'data-change="([^"]*)"', figure.markup)) == ["+20", "-20", "-20"]  # the whole is the same


def test_a_deep_and_wide_tree_is_cut_to_its_widest_frames() -> None:
    text = "0 1 0 [kernel]\n" + "\n".join(f"1 {100 - n} 1 f{n:02}\n2 {n} 1 g{n:02}" for n in range(90))
    figure = drawn(text, text, 20)
    assert figure is not None
    assert len(edges(figure)) == 20 and "161 frames are too narrow" in figure.caption
    assert len(figure.style.splitlines()) == 19  # the uppermost shows all again


def test_without_any_instruction_there_is_no_graph() -> None:
    assert drawn("0 0 0 [kernel]", "0 0 0 [kernel]") is None
