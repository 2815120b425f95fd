# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of where the calls part."""

from __future__ import annotations

from kdelta.model import Profile
from kdelta.report.parted import parted_lines, told


def _profile(stacks: str) -> Profile:
    return Profile(ops=2, functions={}, total=(0,) * 7, stacks=stacks)


BEFORE = _profile(
    "0 0 0 [kernel]\n1 20 2 read\n2 1500 2 mem\x1bset" + "".join(f"\n2 40 2 f{at:02}" for at in range(20))
)
AFTER = _profile("0 0 0 [kernel]\n1 20 2 read\n2 160 2 mem\x1bset\n2 9 1 check")


def test_the_largest_places_are_shown_and_the_rest_is_summed() -> None:
    lines = parted_lines(BEFORE, AFTER, everything=False)
    assert lines[1].startswith("where the calls part: instructions per operation of a function itself where")
    shown = [line.split(None, 5) for line in lines[4:-1]]
    assert shown[0] == ["mem\\x1bset", "750.0", "80.0", "-670.0", "1", "itself in read"]
    assert shown[1] == ["f00", "20.0", "0.0", "-20.0", "1->0", "no longer called by read"]
    assert len(shown) == 15 and lines[-1] == "7 other places: -115.5 (--all)"
    everything = parted_lines(BEFORE, AFTER, everything=True)
    assert everything[-1].split(None, 5)[3:] == ["+4.5", "0->0.5", "now called by read"] and len(everything) == 4 + 22


def test_a_narrow_terminal_gets_lines_of_its_width() -> None:
    assert max(map(len, parted_lines(BEFORE, AFTER, everything=False, width=60))) <= 60


def test_without_call_stacks_there_is_no_table() -> None:
    assert parted_lines(BEFORE, _profile(""), everything=False) == []


def test_in_a_line_the_three_largest_are_told_and_the_rest_is_summed() -> None:
    said = "mem\\x1bset -670 (itself in read), f00 -20 (no longer called by read), f01 -20 (no longer called by read)"
    assert told(BEFORE, AFTER) == f"{said}, 19 others -355.5"


def test_a_kernel_against_itself_parts_nowhere() -> None:
    assert parted_lines(BEFORE, BEFORE, everything=True) == [] and told(BEFORE, BEFORE) == ""
