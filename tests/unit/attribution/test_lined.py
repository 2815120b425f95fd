# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that differ in line numbers alone, told from those with another number."""

from __future__ import annotations

import difflib
import itertools
import shutil

import pytest

from kdelta.attribution import code, lined
from kdelta.attribution.disassembly import Image
from unit.attribution.test_changes import make
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

__all__ = ["make"]
SOURCE = "\n".join(
    (
        "extern void said(int line, int what);",
        "__attribute__((noinline)) void said(int line, int what)",
        "{ __asm__ volatile(\"\" : : \"r\"(line), \"r\"(what)); }",
        *([""] * 300),
        "__attribute__((noinline)) int above(int a) { if (a > 7) said(__LINE__, 1); return a; }",
        *([""] * 9),
        "__attribute__((noinline)) int changed(int a) { return a * 3; }",
        *([""] * 9),
        "__attribute__((noinline)) int below(int a) { if (a > 7) said(__LINE__, 2); return a; }",
        "__attribute__((noinline)) int limit(int a) { if (a > 7) said(__LINE__, 500); return a; }",
        "int all(int a) { return above(a) + changed(a) + below(a) + limit(a); }",
        "",
    )
)  # fmt: skip


def diff(old: str, new: str) -> list[str]:
    return list(difflib.unified_diff(old.split("\n"), new.split("\n"), "a/fs/a.c", "b/fs/a.c", lineterm=""))


def of(make: Maker, *sources: str) -> tuple[set[str], frozenset[str]]:
    """What differs between the first source and the last, and what of it by lines alone."""
    old, new = Image(make(sources[0])), Image(make(sources[-1]))
    steps = itertools.pairwise(sources)
    names = {one.name for one in code.compare(old, new).functions}
    return names, lined.alone(old, new, names, lined.moves(line for pair in steps for line in diff(*pair)))


def test_what_stands_below_an_added_line_hands_on_another_number_and_is_no_change(make: Maker) -> None:
    """Of a patch to ext4 that adds a line 21 of 22 functions "differ", and 14 were "not looked at"."""
    after = SOURCE.replace("return a * 3;", "a++;\nreturn a * 3;")
    names, alone = of(make, SOURCE, after)
    assert names >= {"changed", "below", "limit"} and "above" not in names
    assert alone == {"below", "limit"}


def test_a_number_that_is_no_line_is_a_change(make: Maker) -> None:
    after = SOURCE.replace("return a * 3;", "a++;\nreturn a * 3;").replace("500", "501")
    assert of(make, SOURCE, after)[1] == {"below"}
    by_two = SOURCE.replace("return a * 3;", "a++;\nreturn a * 3;").replace("500", "502")
    assert of(make, SOURCE, by_two)[1] == {"below"}


def test_a_field_that_moves_as_far_as_the_lines_is_a_change(make: Maker) -> None:
    """Eight lines and eight bytes more: offset 72 becomes 80, as line 72 does."""
    before = "struct s { long a[9];\nlong b; };\nlong taken(struct s *s) { return s->b; }\n"
    after = before.replace("long b", "/*\n\n\n\n\n\n*/\nlong more;\nlong b")
    assert of(make, before, after) == ({"taken"}, frozenset())


def test_lines_of_a_series_move_by_each_of_its_patches(make: Maker) -> None:
    one = SOURCE.replace("return a * 3;", "a++;\nreturn a * 3;")
    two = one.replace("extern void", "/* more */\n\n\nextern void").replace("__LINE__, 2);", "__LINE__, 2); \n")
    assert of(make, SOURCE, one, two)[1] >= {"above", "limit"}


def test_a_diff_without_context_and_one_that_takes_lines_out() -> None:
    by = lined.moves(["+++ b/a.c", "@@ -10,0 +11,2 @@", "+x", "+y", "@@ -20,3 +22 @@", "-a", "-b 77", "-c", "+d"])
    assert by.explain(11, 13) and by.explain(19, 21) and by.explain(23, 23 - 0) is False
    assert not by.explain(10, 12) and not by.explain(21, 23) and by.explain(24, 24) is False
    assert by.explain(30, 30) is False and not by.explain(77, 77) and not lined.moves(["no diff"]).files
