# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails with several diffs, and text between these; diffs as git shows them."""

from __future__ import annotations

import pytest

from kdelta.errors import UserError
from kdelta.kernel.mail import steps
from kdelta.kernel.patch import Applied, apply
from unit.kernel.test_patch import NEW, OLD, diff


def applied(text: str, files: dict[str, str]) -> Applied:
    return apply(steps(text.encode(), "my.patch")[0], files.get)


@pytest.mark.parametrize("between", ["-- \n2.39.5\n\nAndrew, please fold this as well:\n\n", "\nAnd this:\n\n", "\n"])
def test_text_between_two_diffs_of_one_mail_is_no_part_of_either(between: str) -> None:
    """A fixup below the signature made the whole mail "hunk 1 does not apply ... the patch has '-'"."""
    other = diff(OLD.replace("a", "b"), NEW.replace("a", "b"), "fs/b.c")
    files = {"fs/a.c": OLD, "fs/b.c": OLD.replace("a", "b")}
    found = applied(diff(OLD, NEW) + between + other, files).files
    assert {path: file.text for path, file in found.items()} == {"fs/a.c": NEW, "fs/b.c": NEW.replace("a", "b")}
    assert not applied(diff(OLD, NEW) + other, files).notes


def test_an_end_without_newline_is_kept_where_another_file_follows() -> None:
    cut = diff(OLD, OLD.rstrip("\n")) + "\n\\ No newline at end of file\n" + diff("x\n", "y\n", "fs/b.c")
    assert applied(cut, {"fs/a.c": OLD, "fs/b.c": "x\n"}).files["fs/a.c"].text == OLD.rstrip("\n")


def test_a_diff_with_the_colours_of_a_terminal_is_one() -> None:
    text = "".join(f"\x1b[36m{line}\x1b[m\n" for line in diff(OLD, NEW).splitlines())
    assert applied(text, {"fs/a.c": OLD}).files["fs/a.c"].text == NEW


def test_colours_within_colours_end() -> None:
    with pytest.raises(UserError, match="no diff found"):
        steps(b"\x1b[" * 5000 + b"m" * 5000, "p")


def test_the_combined_diff_of_a_merge_is_named_as_that() -> None:
    text = "diff --cc fs/a.c\n--- a/fs/a.c\n+++ b/fs/a.c\n@@@ -1,2 -1,2 +1,3 @@@\n  a\n++b\n  c\n"
    with pytest.raises(UserError, match="combined diff of a merge"):
        steps(text.encode(), "p")
