# SPDX-License-Identifier: GPL-2.0-or-later
"""A patch's file as it was fetched or printed: packed, or in colours."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest
import zstandard

from kdelta.errors import UserError
from kdelta.kernel import mail, mail_file
from kdelta.kernel.steps import load_patches
from kdelta.spec.kernels import PatchRef

DIFF = "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,4 @@\n one\n+\tnew\n two\n three\n"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, zstandard.compress])
def test_a_packed_thread_is_read(pack: object) -> None:
    assert callable(pack)
    assert mail_file.plain(pack(DIFF.encode()), "t.mbox.gz") == DIFF.encode()


def test_a_patch_that_is_named_may_be_packed(tmp_path: Path) -> None:
    (tmp_path / "t.mbox.gz").write_bytes(gzip.compress(DIFF.encode()))
    (step,) = load_patches((PatchRef(str(tmp_path / "t.mbox.gz"), False),))
    assert "@@ -1,3 +1,4 @@" in step.mail.lines


def test_a_damaged_file_and_one_without_end_are_told() -> None:
    with pytest.raises(UserError, match=r"t\.gz: it looks like a file packed as gz, and is damaged"):
        mail_file.plain(gzip.compress(DIFF.encode())[:40], "t.gz")
    with pytest.raises(UserError, match="unpacks to more than 32 MiB"):
        mail_file.plain(gzip.compress(bytes(mail.MAX_BYTES + 9)), "t.gz")


def test_the_colours_of_a_terminal_are_taken_off() -> None:
    coloured = DIFF.replace("+\tnew", "\x1b[32m+\x1b[m\t\x1b[32mnew\x1b[m").replace("@@ -1", "\x1b[36m@@ -1")
    assert mail_file.plain(coloured.replace("3,4 @@", "3,4 @@\x1b[m").encode(), "p") == DIFF.encode()
    of_the_text = DIFF.replace("new", "\x1b[1mnew\x1b[m").encode()
    assert mail_file.plain(of_the_text, "p") == of_the_text
