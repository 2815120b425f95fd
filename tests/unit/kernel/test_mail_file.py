# SPDX-License-Identifier: GPL-2.0-or-later
"""A patch's file as it was fetched or printed: packed, or in colours."""

from __future__ import annotations

import bz2
import email.message
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from kdelta.errors import UserError
from kdelta.kernel import mail, mail_file, mail_text, patch
from kdelta.kernel.steps import load_patches
from kdelta.spec.kernels import PatchRef

DIFF = "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1,4 +1,4 @@\n one\n-old\n+\tnew\n two\n three\n"
MADE = "one\n\tnew\ntwo\nthree\n"


def result(data: bytes) -> str | None:
    """What the one patch in ``data`` makes of a.c."""
    (step,) = mail.steps(mail_file.plain(data, "p"), "p")
    return patch.apply(step, {"a.c": "one\nold\ntwo\nthree\n"}.get).files["a.c"].text


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, zstandard.compress])
def test_a_packed_thread_is_read(pack: object) -> None:
    assert callable(pack)
    assert mail_file.plain(pack(DIFF.encode()), "t.mbox.gz") == DIFF.encode()


def test_a_patch_that_is_named_may_be_packed(tmp_path: Path) -> None:
    (tmp_path / "t.mbox.gz").write_bytes(gzip.compress(DIFF.encode()))
    (step,) = load_patches((PatchRef(str(tmp_path / "t.mbox.gz"), False),))
    assert "@@ -1,4 +1,4 @@" in step.mail.lines


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


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_files_of_windows_are_read(encoding: str) -> None:
    """``git diff > my.patch`` in PowerShell writes UTF-16 with a byte order mark and CR LF."""
    text = DIFF.replace("\n", "\r\n")
    data = b"\xfe\xff" * (encoding == "utf-16-be") + text.encode(encoding)
    assert result(data) == MADE


def test_utf16_that_is_damaged_is_refused() -> None:
    with pytest.raises(UserError, match="patch p: it begins as UTF-16, and is damaged"):
        mail_file.plain(b"\xff\xfe" + b"\x00\xd8" * 2, "p")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_packed_attachment_is_a_text_of_the_mail(pack: Callable[[bytes], bytes]) -> None:
    mailed = email.message.EmailMessage()
    mailed["From"], mailed["Subject"] = "a@b", "[PATCH] fs: x"
    mailed.set_content("see attached\n")
    mailed.add_attachment(pack(DIFF.encode()), maintype="application", subtype="gzip", filename="fix.patch.gz")
    mailed.add_attachment(pack(bytes(9 << 20)), maintype="application", subtype="gzip", filename="large.gz")
    mailed.add_attachment(pack(DIFF.encode())[:-9], maintype="application", subtype="gzip", filename="cut.gz")
    assert result(mailed.as_bytes()) == MADE


def test_a_signature_in_clear_text_is_taken_off() -> None:
    dashed = "".join(f"- {line}" if line.startswith("-") else line for line in DIFF.splitlines(True))
    head = "From: a@b\nSubject: [PATCH] fs: x\n\n"
    signed = f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{dashed}"
    ends = "-----BEGIN PGP SIGNATURE-----\n\niQIzBAEB\n=abcd\n-----END PGP SIGNATURE-----\n"
    assert dashed != DIFF
    for text in (head + signed + ends, signed + ends, head + signed + ends + "\n-- \nme\n", head + signed + ends[:40]):
        assert result(text.encode()) == MADE


def test_a_signed_text_that_does_not_end_is_left_as_it_is() -> None:
    begins = "-----BEGIN PGP SIGNED MESSAGE-----\n\n- x\n" * 3
    assert mail_text.bare(begins.encode()) == begins
