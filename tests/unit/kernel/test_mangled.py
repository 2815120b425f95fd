# SPDX-License-Identifier: GPL-2.0-or-later
"""Mangled patches give the tree that the clean ones give, or are refused: never another."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.errors import UserError
from kdelta.kernel.mail import steps
from kdelta.kernel.patch import Applied, apply
from unit.kernel import mangling

SOURCES = sorted((Path(__file__).parents[3] / "guest").glob("*.c"))  # C in kernel style
PATH = "fs/a.c"


def applied(data: bytes, old: str) -> Applied:
    (one,) = steps(data, "p")
    return apply(one, {PATH: old}.get)


def result(data: bytes, old: str) -> str | None:
    return applied(data, old).files[PATH].text


def lines_with_text(text: str | None) -> list[str]:
    return [line for line in (text or "").split("\n") if line.strip()]


def squeezed(text: str | None) -> str:
    return re.sub(r"\s", "", text or "")


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str]:
    """A real C file, and the same with some lines taken out, put in from another file, or replaced."""
    old = draw(st.sampled_from(SOURCES)).read_text().split("\n")[:-1]
    other = draw(st.sampled_from(SOURCES)).read_text().split("\n")[:-1]
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    new = list(old)
    for _ in range(draw(st.integers(1, 5))):
        at, gone = rng.randrange(len(new)), rng.choice((0, 0, 1, 2, 6))
        start = rng.randrange(len(other))
        new[at : at + gone] = other[start : start + rng.choice((0, 1, 1, 3, 8))]
    return "\n".join([*old, ""]), "\n".join([*new, ""])


def _changed(pair: tuple[str, str]) -> bool:
    return pair[0] != pair[1] and bool(pair[1].strip())


@settings(max_examples=120)
@given(edits().filter(_changed), st.lists(st.sampled_from(sorted(mangling.EXACT)), max_size=3, unique=True))
def test_what_loses_nothing_for_good_gives_the_same_bytes(pair: tuple[str, str], names: list[str]) -> None:
    lines = mangling.diff(*pair, PATH)
    for name in sorted(names, key=lambda name: "quoted" in name or "returns" in name):
        lines = mangling.EXACT[name](lines)
    try:
        assert result(mangling.mail(lines), pair[0]) == pair[1]
    except UserError as error:  # two readings: context that begins with a sign, and has lost its blank
        assert "ambiguous" in str(error) and any("blank" in name or "space" in name for name in names), error


@settings(max_examples=60)
@given(edits().filter(_changed), st.sampled_from([mangling.flowed, mangling.undecoded]))
def test_encodings_of_mails_are_undone(pair: tuple[str, str], encode: object) -> None:
    lines = mangling.diff(*pair, PATH)
    if encode is mangling.undecoded and "\n".join(lines).count("=") < 2 and not re.search("(?m)^ $", "\n".join(lines)):
        return  # nothing tells that it is encoded, and little is
    assert result(encode(lines), pair[0]) == pair[1]  # type: ignore[operator]


ALL = mangling.EXACT | mangling.SPACES | mangling.BLANKS | mangling.WRAPS


@settings(max_examples=200)
@given(
    edits().filter(_changed),
    st.lists(st.sampled_from(sorted(ALL)), min_size=1, max_size=4, unique=True),
    st.integers(0, 40),
    st.booleans(),
)
def test_any_mix_gives_the_same_text_but_for_white_space_or_is_refused(
    pair: tuple[str, str], names: list[str], moved: int, cut: bool
) -> None:
    old, new = pair
    lines = mangling.diff(old, new, PATH)
    if cut:  # inside of the last hunk: where a mail ends between two, nothing tells that there was another
        last = max(i for i, line in enumerate(lines) if line.startswith("@@"))
        lines = lines[: max(last + 1, len(lines) - 1 - moved % 7)]
    for name in sorted(names, key=lambda name: "quoted" in name or "returns" in name):
        lines = ALL[name](lines)
    above = "".join(f"/* line {i} */\n" for i in range(moved))  # the tree is not that of the patch
    try:
        made = result(mangling.mail(lines), above + old)
    except UserError as error:
        assert "\n" not in str(error)
        return
    assert squeezed(made) == squeezed(above + new)
    if not set(names) & mangling.SPACES.keys() and "wrapped" not in names:
        assert lines_with_text(made) == lines_with_text(above + new)


def test_lost_blank_lines_beside_added_ones_are_told_of() -> None:
    old = "".join(f"int line_{i};\n\n" for i in range(9))
    new = old.replace("int line_2;\n", "int line_2;\nint a;\n").replace("int line_4;\n", "int b;\nint line_4;\n")
    new = new.replace("int line_5;\n", "int line_5;\nint c;\n")
    lines = mangling.diff(old, new, PATH)
    made = applied(mangling.mail(mangling.BLANKS["blank lines lost"](lines)), old)
    assert lines_with_text(made.files[PATH].text) == lines_with_text(new)
    assert any("lost blank lines; where they belong" in note for note in made.notes)


def test_a_comment_s_own_blank_is_no_sign_and_added_lines_keep_theirs() -> None:
    """A kept `` * text`` that lost its sign looks like one that lost the blank behind it."""
    old = "/* a */\n/*\n * When the plugin counts,\n * and only then.\n */\nint x;\n\nint y;\n"
    new = " * Whether a wake-up does,\n" + old
    lines = mangling.diff(old, new, PATH)
    for name in ("blank ends lost", "no leading blank"):
        lines = ALL[name](lines)
    assert result(mangling.mail(lines), old) == new


def test_context_that_begins_with_a_sign_is_known_though_its_blank_is_lost() -> None:
    old = "a\n-b\n+c\nd\ne\nf\n"
    new = "a\n-b\n+c\nD\ne\nf\n"
    lines = mangling.EXACT["no leading blank"](mangling.diff(old, new, PATH))
    assert result(mangling.mail(lines), old) == new
    one = steps(mangling.mail(lines), "p")[0]
    assert apply(one, {PATH: new}.get, take_out=True).files[PATH].text == old


def test_removed_dashes_above_added_pluses_are_no_file_header() -> None:
    old = "one\n-- two\nthree\n"
    new = "one\n++ zwei\nthree\n"
    assert result(mangling.mail(mangling.diff(old, new, PATH)), old) == new


def test_lines_beyond_the_counts_of_a_hunk_are_refused() -> None:
    old = "a\nb\nc\n"
    lines = ["--- a/fs/a.c", "+++ b/fs/a.c", "@@ -1,3 +1,4 @@", " a", "+x", " b", " c", "+edited in by hand"]
    with pytest.raises(UserError, match="hunk 1"):
        result(("\n".join(lines) + "\n").encode(), old)


THREE = "".join(f"int line_{i};\n" for i in range(60))


def _two_files() -> tuple[list[str], dict[str, str]]:
    new = THREE.replace("line_5;", "line_five;").replace("line_30;", "line_thirty;\nint more;")
    return [*mangling.diff(THREE, new, "fs/a.c"), *mangling.diff(THREE, new, "fs/b.c")], {
        "fs/a.c": THREE,
        "fs/b.c": THREE,
    }


@pytest.mark.parametrize("lost", [4, 5, 6])
def test_a_mail_that_ends_inside_a_hunk_says_where_and_what_is_whole(lost: int) -> None:
    lines, tree = _two_files()
    (one,) = steps(("\n".join(lines[:-lost]) + "\n").encode(), "my.patch")
    with pytest.raises(UserError) as error:
        apply(one, tree.get)
    assert f"patch my.patch: cut off in hunk 2 of fs/b.c: at least {min(lost, 5)} lines of it are missing" in str(
        error.value
    )
    assert re.search(r"(whole before it|could be applied): fs/a\.c \(2 hunks\), fs/b\.c \(hunk 1\)", str(error.value))


def test_lines_all_alike_are_refused_before_they_take_long() -> None:
    lines = ["--- a/fs/a.c", "+++ b/fs/a.c", "@@ -1,2000 +1,2000 @@", *["x"] * 1999, "-y", "+z"]
    with pytest.raises(UserError, match="too many similar lines"):
        result(("\n".join(lines) + "\n").encode(), "x\n" * 50_000)


def test_a_cut_that_could_have_lost_a_change_at_the_end_of_a_file_is_not_mended() -> None:
    old = "".join(f"int line_{i};\n" for i in range(9))
    new = old.replace("line_5;", "line_five;").replace("line_8;", "line_eight;")
    lines = mangling.diff(old, new, PATH)
    assert lines[-2:] == ["-int line_8;", "+int line_eight;"]
    with pytest.raises(UserError, match="cut off in hunk 1"):
        result(("\n".join(lines[:-2]) + "\n").encode(), old)


def test_a_cut_that_left_added_lines_alone_is_refused() -> None:
    """Nothing of the hunk says where they belong: the tree has two lines more above than the patch's own."""
    lines = f"diff --git a/{PATH} b/{PATH}\n--- a/{PATH}\n+++ b/{PATH}\n@@ -1,3 +1,4 @@\n+{{".split("\n")
    with pytest.raises(UserError, match="cut off in hunk 1"):
        result(mangling.mail(lines), "0\n1\na\nb\nc\nd\n")


def test_a_cut_that_left_context_alone_is_refused() -> None:
    lines = f"--- a/{PATH}\n+++ b/{PATH}\n@@ -1,4 +1,4 @@\n a\n b\n c".split("\n")
    with pytest.raises(UserError, match="cut off in hunk 1"):
        result(mangling.mail(lines), "a\nb\nc\nd\n")
