# SPDX-License-Identifier: GPL-2.0-or-later
"""Patch mails to single patches."""

from __future__ import annotations

import base64
import quopri
from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.kernel.diff import parse
from kdelta.kernel.mail import MAX_BYTES, steps

DATA = Path(__file__).parents[2] / "data" / "mail"
DIFF = "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,4 @@\n one\n+\tnew = é;\n two\n three\n"


def message(subject: str, body: str, headers: str = "") -> bytes:
    return f"From 1 Mon Sep 17 00:00:00 2001\nFrom: a@b.c\nSubject: {subject}\n{headers}\n{body}\n".encode()


def body_of(data: bytes) -> str:
    (mail,) = steps(data, "p")
    text = "\n".join(mail.lines)
    return text[text.index("diff --git") :].rstrip("\n") + "\n"


def test_a_series_is_put_in_the_order_of_its_numbers_without_its_cover_letter() -> None:
    mails = steps((DATA / "pipe-series.mbox").read_bytes(), "pipe-series.mbox")
    assert [mail.subject for mail in mails] == ["pipe: step 1", "pipe: step 2", "pipe: step 3"]
    assert [mail.name for mail in mails] == [f"pipe-series.mbox [{n}/3]" for n in (1, 2, 3)]


def test_a_missing_patch_of_a_series_is_named() -> None:
    data = message("[PATCH 1/3] a", DIFF) + message("[PATCH 3/3] c", DIFF)
    with pytest.raises(UserError, match=r"\[2/3\] of the series is missing"):
        steps(data, "series.mbox")


def test_a_patch_beside_a_series_is_named() -> None:
    data = message("[PATCH 1/2] a", DIFF) + message("[PATCH] c: another", DIFF) + message("[PATCH 2/2] b", DIFF)
    with pytest.raises(UserError, match="holds a series of 2, and 'c: another', which is none of it; keep one"):
        steps(data, "series.mbox")


def test_a_patch_of_a_series_alone_in_its_file_is_taken() -> None:
    assert len(steps(message("[PATCH 2/3] b", DIFF), "0002.patch")) == 1


def test_a_patch_that_has_its_cover_letter_beside_it_is_not_alone() -> None:
    cover = message("[PATCH 0/2] both", "Two patches.")
    with pytest.raises(UserError, match=r"\[2/2\] of the series is missing"):
        steps(cover + message("[PATCH 1/2] a", DIFF), "series.mbox")
    assert len(steps(message("Re: [PATCH 0/2] both", "Good.") + message("[PATCH 1/2] a", DIFF), "a.mbox")) == 1
    assert len(steps(message("[PATCH 0/1] one", "One.") + message("[PATCH 1/1] a", DIFF), "a.mbox")) == 1


def test_an_interdiff_in_a_cover_letter_is_no_patch() -> None:
    """``git format-patch --cover-letter --interdiff`` writes it as a diff: the series had a patch too many."""
    cover = message("[PATCH v2 0/2] both", f"Two patches.\n\nInterdiff against v1:\n{DIFF}")
    series = cover + message("[PATCH v2 1/2] a", DIFF) + message("[PATCH v2 2/2] b", DIFF)
    assert [mail.subject for mail in steps(series, "series.mbox")] == ["a", "b"]
    with pytest.raises(UserError, match=r"\[2/2\] of the series is missing"):
        steps(cover + message("[PATCH v2 1/2] a", DIFF), "series.mbox")
    assert len(steps(message("[PATCH 0/1] one", DIFF), "a.mbox")) == 1


@pytest.mark.parametrize(
    ("head", "old", "new", "executable"),
    [
        ("similarity index 100%\nrename from a.c\nrename to b.c", "a.c", "b.c", None),
        ("old mode 100644\nnew mode 100755", "a.c", "b.c", True),
        ("new file mode 100644\nindex 000000000000..e69de29bb2d1", None, "b.c", False),
    ],
)
def test_a_patch_without_lines_is_one(head: str, old: str | None, new: str, executable: bool | None) -> None:
    (mail,) = steps(message("[PATCH] x", f"Text.\n---\n 0 files\n\ndiff --git a/a.c b/b.c\n{head}\n-- \n2.43.0"), "x")
    (change,) = parse(mail)
    assert (change.old, change.new, change.executable, change.hunks) == (old, new, executable, ())


@pytest.mark.parametrize("body", ["GIT binary patch\nliteral 0\n", "Binary files a/x.gif and b/x.gif differ\n"])
def test_a_binary_patch_is_named_as_that(body: str) -> None:
    (mail,) = steps(message("[PATCH] x", f"diff --git a/x.gif b/x.gif\nindex 2eae75f..15677a6 100644\n{body}"), "x")
    with pytest.raises(UserError, match=r"x\.gif is a binary change"):
        parse(mail)


@pytest.mark.parametrize(
    "data", [message("[PATCH] x", f"\0{DIFF}"), message("[PATCH] x", DIFF).decode().encode("utf-16")]
)
def test_what_holds_nul_bytes_is_told(data: bytes) -> None:
    with pytest.raises(UserError, match="NUL bytes"):
        steps(data, "x")


def test_two_versions_of_a_series_in_one_file_are_refused() -> None:
    first = message("[PATCH 1/2] a", DIFF)
    assert len(steps(first + message("[PATCH v2 2/2] b", DIFF), "x")) == 2  # a partial reroll
    data = first + message("[PATCH 2/2] b", DIFF) + message("[PATCH v2 2/2] b", DIFF)
    with pytest.raises(UserError, match="versions v1, v2"):
        steps(data, "series.mbox")


def test_two_versions_of_a_patch_in_one_file_are_refused_and_two_patches_are_not() -> None:
    first = message("[PATCH] a", DIFF)
    with pytest.raises(UserError, match="holds versions v1, v2 of 'a'; keep one"):
        steps(first + message("[PATCH v2] a", DIFF), "thread.mbox")
    assert len(steps(first + message("[PATCH v2] b", DIFF), "two.mbox")) == 2


def test_a_version_with_another_title_in_answer_to_the_one_before_is_refused() -> None:
    """It was applied behind the version before it."""
    first = message("[PATCH] a", DIFF, "Message-ID: <1@b.c>\n")
    second = message("[PATCH v2] mm: a", DIFF, "Message-ID: <2@b.c>\nIn-Reply-To: <1@b.c>\n")
    with pytest.raises(UserError, match="holds versions v1, v2 of 'a', then 'mm: a'; keep one"):
        steps(first + second, "thread.mbox")
    another = message("[PATCH] b", DIFF, "In-Reply-To: <1@b.c>\n")
    assert len(steps(first + another, "two.mbox")) == 2


def test_a_patch_that_is_there_twice_is_refused() -> None:
    data = message("[PATCH 1/2] a", DIFF) * 2 + message("[PATCH 2/2] b", DIFF)
    with pytest.raises(UserError, match=r"\[1/2\] is in it 2 times"):
        steps(data, "series.mbox")


def test_replies_beside_the_patch_are_discussion() -> None:
    quoted = "".join(f"> {line}\n" for line in DIFF.splitlines())
    data = message("[PATCH] a", DIFF) + message("Re: [PATCH] a", quoted)
    (mail,) = steps(data, "thread.mbox")
    assert not mail.reply


@pytest.mark.parametrize("prefix", ["> ", ">", "> > ", ">> ", "| "])
def test_quotes_are_taken_off(prefix: str) -> None:
    quoted = "".join(f"{prefix}{line}".rstrip() + "\n" for line in DIFF.splitlines())
    assert body_of(message("Re: [PATCH] a", "On Monday A wrote:\n" + quoted)) == DIFF


def test_a_reviewers_lines_between_the_quotes_are_dropped() -> None:
    quoted = "".join(f"> {line}\n" for line in DIFF.splitlines()).replace("> +", "\nWhy this?\n\n> +", 1)
    assert "Why this?" not in body_of(message("Re: [PATCH] a", quoted))


def test_quoted_printable_is_decoded() -> None:
    headers = (
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n"
    )
    assert body_of(message("[PATCH] a", quopri.encodestring(DIFF.encode()).decode(), headers)) == DIFF


def test_base64_is_decoded() -> None:
    headers = "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n"
    assert body_of(message("[PATCH] a", base64.encodebytes(DIFF.encode()).decode(), headers)) == DIFF


def test_another_character_set_becomes_the_same_text() -> None:
    headers = "MIME-Version: 1.0\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: base64\n"
    data = message("[PATCH] a", base64.encodebytes(DIFF.encode("latin-1")).decode(), headers)
    assert body_of(data) == DIFF


def test_flowed_text_is_joined_and_unstuffed() -> None:
    stuffed = "".join(
        f" {line}\n" if line.startswith((" ", ">", "From ")) else f"{line}\n" for line in DIFF.splitlines()
    )
    flowed = stuffed.replace("+\tnew = é;", "+\tnew = \né;")
    headers = "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8; format=flowed\n"
    assert body_of(message("[PATCH] a", flowed, headers)) == DIFF


def test_carriage_returns_are_dropped() -> None:
    assert body_of(message("[PATCH] a", DIFF).replace(b"\n", b"\r\n")) == DIFF


def test_an_attached_patch_is_found() -> None:
    body = (
        "--x\nContent-Type: text/plain\n\nsee the attachment\n"
        f'--x\nContent-Type: text/x-patch; name="a.patch"\nContent-Disposition: attachment\n\n{DIFF}--x--\n'
    )
    headers = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n'
    assert body_of(message("[PATCH] a", body, headers)) == DIFF


def test_a_patch_that_is_shown_and_attached_is_one() -> None:
    wrapped = DIFF.replace("new = ", "new =\n")
    body = (
        f"--x\nContent-Type: text/plain; charset=utf-8\n\nHere it is, and attached.\n\n{wrapped}-- \nMe\n"
        f"--x\nContent-Type: text/x-patch; charset=utf-8\n\nSubject: [PATCH] t\n\nWhy.\n---\n{DIFF}-- \n2.39.5\n--x--\n"
    )
    data = message("[PATCH] t", body, 'Content-Type: multipart/mixed; boundary="x"\n')
    assert body_of(data) == DIFF + "-- \n2.39.5\n"
    other = message(
        "[PATCH] t", body.replace(DIFF, DIFF.replace("a.c", "b.c")), 'Content-Type: multipart/mixed; boundary="x"\n'
    )
    assert [change.path for change in parse(steps(other, "p")[0])] == ["a.c", "b.c"]


def test_a_patch_that_is_attached_to_an_answer_is_taken_and_not_the_quoted_one() -> None:
    quoted = "".join(f"> {line}\n" for line in DIFF.replace("new", "other").split("\n"))
    body = (
        f"--x\nContent-Type: text/plain; charset=utf-8\n\nBob wrote:\n{quoted}\nHow about the attached?\n"
        f"--x\nContent-Type: text/x-patch; charset=utf-8\n\n{DIFF}--x--\n"
    )
    assert body_of(message("Re: [PATCH] t", body, 'Content-Type: multipart/mixed; boundary="x"\n')) == DIFF


def test_a_bare_diff_needs_no_mail() -> None:
    assert body_of(DIFF.encode()) == DIFF


def test_a_mail_without_a_diff_says_so() -> None:
    with pytest.raises(UserError, match="no diff found"):
        steps(message("hello", "no patch here"), "mail.eml")


def test_a_huge_file_is_refused() -> None:
    with pytest.raises(UserError, match="more than the"):
        steps(b" " * (MAX_BYTES + 1), "big.mbox")


def test_a_line_that_an_mbox_had_to_escape_is_restored() -> None:
    body = DIFF.replace(" three\n", " three\n").replace("+\tnew = é;", "+new\n>From here")
    assert "\nFrom here" in body_of(message("[PATCH] a", body))


@pytest.mark.parametrize(
    "charset", ["no-such-set", "idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "rot13", "hex",
                "base64", "zip", "utf-16", "utf-32", "utf-8\0", "\xff", "mbcs", "=?x?q??=", "utf-7", "x" * 5000],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["8bit", "base64", "quoted-printable", "uuencode", "nonsense"])
def test_an_unknown_or_lying_character_set_changes_nothing_and_raises_nothing(charset: str, encoding: str) -> None:
    headers = f'MIME-Version: 1.0\nContent-Type: text/plain; charset="{charset}"\n'
    headers += f"Content-Transfer-Encoding: {encoding}\n"
    body = DIFF.encode()
    if encoding == "base64":
        body = base64.encodebytes(body)
    elif encoding == "quoted-printable":
        body = quopri.encodestring(body)
    data = b"From: a@b.c\nSubject: [PATCH] a\n" + headers.encode() + b"\n" + body
    (mail,) = steps(data, "p")
    text = "\n".join(mail.lines)
    if not charset.startswith("utf-7"):  # in which the bytes of an e with accent mean nothing
        assert text[text.index("diff --git") :].rstrip("\n") + "\n" == DIFF


@pytest.mark.parametrize("name", ["=?no-such?q?x?=", "=?idna?b?!!!?=", "=?utf-8?b?%%?=", "=?\0?q?=ff?=", "[" * 100_000])
def test_a_subject_in_an_unknown_character_set_raises_nothing(name: str) -> None:
    (mail,) = steps(message(f"{name} [PATCH] a", DIFF), "p")
    assert mail.lines


def test_a_content_type_in_a_wrong_encoding_of_its_own_raises_nothing() -> None:
    headers = (
        "MIME-Version: 1.0\nContent-Type: text/plain; charset*=no-such''%FF%00; format*0*=utf-8''flow; format*1=ed\n"
    )
    assert "+\tnew = é;" in body_of(message("[PATCH] a", DIFF, headers))


def test_parts_in_parts_without_end_are_refused_or_read() -> None:
    depth = 3000
    data = b"From: a@b.c\nSubject: x\n" + b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (i, i) for i in range(depth)
    )
    try:
        steps(data + b"Content-Type: text/plain\n\n" + DIFF.encode(), "p")
    except UserError as error:
        assert "\n" not in str(error)


def test_an_equals_sign_that_is_meant_is_no_escape() -> None:
    meant = DIFF.replace("new = é;", "ccflags-y += -DMODEL=3D -DX=20")
    assert body_of(message("[PATCH] a", meant)) == meant
    alone = DIFF.replace("new = é;", "MODEL=3D")
    assert body_of(message("[PATCH] a", alone)) == alone


def test_what_takes_the_square_of_its_length_is_not_begun() -> None:
    with pytest.raises(UserError, match="Content-Type header is implausibly long"):
        steps(b"From: a\nContent-Type: text/plain; " + b"a*0=x; " * 200_000 + b"\n\n" + DIFF.encode(), "p")
    flowed = "Content-Type: text/plain; format=flowed\n"
    (mail,) = steps(message("[PATCH] a", "a \n" * 300_000 + "\n" + DIFF, flowed), "p")
    assert "+\tnew = é;" in mail.lines


def test_a_path_without_end_is_not_printed_whole() -> None:
    (mail,) = steps(("diff --git a/x b/y\nrename from " + "a/" * 100_000 + "\n" + DIFF).encode(), "p")
    with pytest.raises(UserError) as error:
        parse(mail)
    assert len(str(error.value)) < 1000


def test_an_in_reply_to_without_end_is_read_at_once() -> None:
    diff = b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
    (step,) = steps(b"Subject: [PATCH] x\nIn-Reply-To: <" + b"a@" * 500_000 + b"\n\n" + diff, "x")
    assert step.answers == ""
