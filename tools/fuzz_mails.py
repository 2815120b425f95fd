# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzzing targets for what lists and other people send: mails, series of them, patches onto a file."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from pathlib import Path

from kdelta.inbox import mails, series
from kdelta.kernel import cover, diff, mail, mail_file, patch, thread

ROOT = Path(__file__).resolve().parents[1]
Target = Callable[[bytes], object]


def _patches(data: bytes) -> None:
    for step in mail.steps(mail_file.plain(data, "fuzz.mbox"), "fuzz.mbox"):
        diff.parse(step)


def _series(data: bytes) -> None:
    found = [mails.read(piece) for piece in mail.pieces(data.replace(b"\r\n", b"\n"))]
    for item in series.items(found):
        assert item.key


def _apply(data: bytes) -> None:
    """A patch onto a file: both in one input, with a NUL byte between them."""
    text, _, sent = data.partition(b"\0")
    tree = text.decode("utf-8", "surrogateescape")
    for step in mail.steps(sent, "fuzz.patch"):
        made = patch.apply(step, lambda path: None if "new" in path else tree)
        assert made.files and made.diff


TARGETS: dict[str, Target] = {
    "mail": _patches,
    "thread": thread.newest,
    "cover": cover.read,
    "inbox": mails.read,
    "inbox-series": _series,
    "apply": _apply,
}
_HEAD = b"From a@b Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\n"
_V2 = (
    b"Message-Id: <2@b>\nReferences: <1@b>\nSubject: [PATCH v2 0/2] fs: x\n\nhttps://lore.kernel.org/r/1@b (v1)\n"
    b"Before: 841.8 ns\nAfter: 700.1 ns, 17 % faster\n\nbase-commit: 0123456789ab\nchange-id: 20240101-x\n\n"
)
_DIFF = b"--- a/f.c\n+++ b/f.c\n@@ -1,4 +1,5 @@ int f\n int f(void)\n {\n-\treturn 1;\n+\tx++;\n+\treturn 2;\n }\n"
_FILE = b"int f(void)\n{\n\treturn 1;\n}\n\nint g(void)\n{\n\tif (x &&\n\t    y)\n\t\treturn 3;\n\n\treturn 4;\n}\n"
_GIT = (
    b"diff --git a/f.c b/f.c\nold mode 100644\nnew mode 100755\n"
    + _DIFF
    + b"diff --git a/f.c b/new-g.c\nsimilarity index 9%\n"
    b"rename from f.c\nrename to new-g.c\ndiff --git a/new.c b/new.c\nnew file mode 100644\n--- /dev/null\n"
    b"+++ b/new.c\n@@ -0,0 +1,2 @@\n+int h;\n+int i;\n\\ No newline at end of file\n"
)
_SECOND = b"@@ -7,5 +8,4 @@\n {\n \tif (x &&\n \t    y)\n \t\treturn 3;\n-\n"


def _thread() -> bytes:
    """Two versions of a series, with a reply."""
    written = [b"Message-Id: <1@b>\nSubject: [PATCH 1/1] fs: x\n\ntext\n---\n" + _DIFF, _V2]
    written += [
        b"Message-Id: <%d@b>\nIn-Reply-To: <2@b>\nSubject: [PATCH v2 %d/2] fs: x\n\ntext\n---\n" % (2 + n, n) + _DIFF
        for n in (1, 2)
    ]
    written.append(b"Message-Id: <9@b>\nIn-Reply-To: <4@b>\nSubject: Re: [PATCH v2 2/2] fs: x2\n\n> " + _DIFF[:20])
    return b"\n".join(_HEAD + one for one in written)


def _signed() -> bytes:
    text = _DIFF.replace(b"\n-", b"\n- -")
    signature = b"-----BEGIN PGP SIGNATURE-----\n\niQIz\n-----END PGP SIGNATURE-----\n"
    return _HEAD + b"\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n" + text + signature


def _attached() -> bytes:
    packed = base64.encodebytes(gzip.compress(_DIFF, mtime=0))
    kind = b"Content-Type: application/gzip\nContent-Transfer-Encoding: base64\n\n"
    return _HEAD + b"MIME-Version: 1.0\n" + kind + packed


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made."""
    if name == "apply":
        spoiled = _DIFF.replace(b"\n \tif", b"\n\tif").replace(b"\t", b"    ")
        gap = _DIFF.replace(b"@@ -1,4 +1,5", b"@@ -5,4 +5,5").replace(b" {\n", b"{\n")
        quoted = b"> " + _DIFF.replace(b"\n", b"\n> ")
        return [_FILE + b"\0" + one for one in (_DIFF, _DIFF + _SECOND, spoiled, quoted, gap, _GIT)]
    files = [path.read_bytes() for path in sorted(ROOT.glob("tests/data/mail/**/*.*[hlx]"))]
    return [*files, _thread(), _signed(), _attached()]
