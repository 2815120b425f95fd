# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose tree a diff's paths begin in, however it was made."""

from __future__ import annotations

import pytest

from kdelta.errors import UserError
from kdelta.kernel.diff import parse
from kdelta.kernel.mail import steps

HUNK = "@@ -1,3 +1,4 @@\n one\n+new\n two\n three\n"


def changes(text: str) -> list[tuple[str | None, str | None]]:
    (mail,) = steps(text.encode(), "p")
    return [(one.old, one.new) for one in parse(mail)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a/fs/x.c", "b/fs/x.c"),
        ("i/fs/x.c", "w/fs/x.c"),  # diff.mnemonicPrefix
        ("w/fs/x.c", "i/fs/x.c"),
        ("fs/x.c", "fs/x.c"),  # --no-prefix
        ("old/fs/x.c", "new/fs/x.c"),
        ("linux.orig/fs/x.c", "linux/fs/x.c"),  # quilt
        ("fs/x.c.orig", "fs/x.c"),  # diff -u of a file and the copy that was kept of it
        ("fs/x.c~", "fs/x.c"),
        ("fs/x.c", "fs/x.c.new"),
        ("linux-7.3.orig/fs/x.c\t2026-01-01 00:00:00.000000000 +0000", "linux-7.3/fs/x.c\t2026-01-02 00:00:00 +0000"),
    ],
)
def test_paths_are_of_the_tree_whoever_made_the_diff(old: str, new: str) -> None:
    """``i/fs/dcache.c is not in this tree`` was said of a patch by git with diff.mnemonicPrefix."""
    header = f"--- {old}\n+++ {new}\n"
    assert changes(header + HUNK) == [("fs/x.c", "fs/x.c")]
    if "\t" not in old:
        assert changes(f"diff --git {old} {new}\nindex 1..2 100644\n{header}{HUNK}") == [("fs/x.c", "fs/x.c")]


@pytest.mark.parametrize(("a", "b"), [("a/", "b/"), ("i/", "w/"), ("", "")])
def test_files_without_lines_are_changes_too(a: str, b: str) -> None:
    moved = "similarity index 100%\nrename from fs/x.c\nrename to lib/x.c\n"
    mode = "old mode 100644\nnew mode 100755\n"
    said = f"diff --git {a}fs/x.c {b}lib/x.c\n{moved}diff --git {a}fs/y.c {b}fs/y.c\n{mode}"
    assert changes(said) == [("fs/x.c", "lib/x.c"), ("fs/y.c", "fs/y.c")]


def test_a_file_that_moves_between_directories_is_no_prefix() -> None:
    moved = "similarity index 90%\nrename from fs/x.c\nrename to lib/x.c\n--- fs/x.c\n+++ lib/x.c\n" + HUNK
    other = "diff --git fs/y.c fs/y.c\n--- fs/y.c\n+++ fs/y.c\n" + HUNK
    assert changes(f"diff --git fs/x.c lib/x.c\n{moved}{other}") == [("fs/x.c", "lib/x.c"), ("fs/y.c", "fs/y.c")]


def test_what_is_no_path_of_the_tree_is_no_prefix() -> None:
    new = "--- /dev/null\n+++ b/dev/null\n@@ -0,0 +1 @@\n+n\n"
    assert changes(new + new.replace("dev/null\n@@", "fs/n.c\n@@")) == [(None, "dev/null"), (None, "fs/n.c")]
    with pytest.raises(UserError, match="outside the kernel tree"):
        changes("--- x/../../etc/passwd\n+++ y/../../etc/passwd\n" + HUNK)


def test_files_that_diff_n_finds_on_one_side_are_new_or_gone() -> None:
    both = "--- o.orig/fs/x.c\t2026-01-01 10:00:00 +0000\n+++ o/fs/x.c\t2026-01-02 10:00:00 +0000\n" + HUNK
    new = "--- o.orig/fs/n.c\t1970-01-01 01:00:00 +0100\n+++ o/fs/n.c\t2026-01-02 10:00:00 +0000\n@@ -0,0 +1 @@\n+n\n"
    gone = "--- o.orig/fs/g.c\t2026-01-01 10:00:00 +0000\n+++ /dev/null\t1970-01-01 01:00:00 +0100\n@@ -1 +0,0 @@\n-g\n"
    assert changes(both + new + gone) == [("fs/x.c", "fs/x.c"), (None, "fs/n.c"), ("fs/g.c", None)]
