# SPDX-License-Identifier: GPL-2.0-or-later
"""Twenty mails of a list for a tiny tree, and the kinds of places where lists are kept."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path

ALICE, BOB, EVE = "Alice <alice@example.org>", "Bob <bob@example.org>", "Eve <eve@example.org>"
_START = datetime(2026, 11, 1, 12, tzinfo=UTC)


def mail(number: int, subject: str, body: str, sender: str = ALICE, answers: str = "") -> bytes:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = sender, "linux-fsdevel@example.org", subject
    made["Message-ID"] = f"<{number}@example.org>"
    made["Date"] = format_datetime(_START + timedelta(minutes=number))
    if answers:
        made["In-Reply-To"] = made["References"] = f"<{answers}@example.org>"
    made.set_content(body)
    return made.as_bytes()


def comment(name: str, text: str) -> str:
    """A patch that adds a comment to a file of the tiny tree: no code changes."""
    first = {"fs/pipe.c": "#include <a.h>\n", "fs/other.c": "int other(int a)\n"}[name]
    return f"A comment.\n\n---\n--- a/{name}\n+++ b/{name}\n@@ -1,1 +1,2 @@\n+/* {text} */\n {first}"


def twenty() -> list[bytes]:
    """Series and what stands between them. To be reviewed: 2, 10 (v2 of 4), 13; broken: 15, 19; waiting: 17."""
    return [
        mail(1, "pipe: an idea", "What about it?"),
        mail(2, "[PATCH] pipe: say more", comment("fs/pipe.c", "two"), BOB),
        mail(3, "Re: [PATCH] pipe: say more", "> quoted\nReviewed-by: Alice", answers="2"),
        mail(4, "[PATCH 0/2] fs: comments", "Cover.", answers=""),
        mail(5, "[PATCH 1/2] pipe: comment", comment("fs/pipe.c", "five"), answers="4"),
        mail(6, "[PATCH 2/2] other: comment", comment("fs/other.c", "six"), answers="4"),
        mail(7, "Re: [PATCH 1/2] pipe: comment", "Nak.", BOB, answers="5"),
        mail(8, "Re: [PATCH 1/2] pipe: comment", "Why?", answers="7"),
        mail(9, "Re: [PATCH 2/2] other: comment", "> " + comment("fs/other.c", "x").replace("\n", "\n> "), BOB, "6"),
        mail(10, "[PATCH v2 0/2] fs: comments", "Changes since v1: better.", answers="4"),
        mail(11, "[PATCH v2 2/2] other: comment", comment("fs/other.c", "eleven"), answers="10"),
        mail(12, "[PATCH v2 1/2] pipe: comment", comment("fs/pipe.c", "twelve"), answers="10"),
        mail(13, "[PATCH RFC] other: hm", comment("fs/other.c", "thirteen"), EVE),
        mail(14, "Re: [PATCH v2 0/2] fs: comments", "Applied.", BOB, answers="10"),
        mail(15, "[PATCH] pipe: broken", comment("fs/pipe.c", "x").replace("#include", "#undefine"), EVE),
        mail(16, "[GIT PULL] fs", "The following changes since commit", BOB),
        mail(17, "[PATCH 1/3] never: complete", comment("fs/pipe.c", "seventeen"), EVE),
        mail(18, "Re: [PATCH RFC] other: hm", "No.", answers="13"),
        mail(19, "[PATCH] nothing in it", "I forgot the patch.", EVE),
        mail(20, "Re: pipe: an idea", "Great.", BOB, answers="1"),
    ]


def maildir(folder: Path, mails: list[bytes]) -> Path:
    for name in ("cur", "new", "tmp"):
        (folder / name).mkdir(parents=True)
    for number, one in enumerate(mails):
        (folder / ("cur" if number % 2 else "new") / f"{9000 - number}.host:2,").write_bytes(one)
    return folder


def mbox(path: Path, mails: list[bytes]) -> Path:
    path.write_bytes(b"".join(b"From x Mon Sep 17 00:00:00 2001\n" + one + b"\n" for one in mails))
    return path


def public_inbox(folder: Path, mails: list[bytes]) -> Path:
    """Version 2: a commit per message with the file m, in two epochs; one message was deleted again."""
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    for epoch, part in enumerate((mails[:8], mails[8:])):
        work = folder / f"work{epoch}"
        git = ["git", "-C", str(work), *who]
        subprocess.run(["git", "init", "-q", "-b", "master", str(work)], check=True)
        for one in part:
            (work / "m").write_bytes(one)
            subprocess.run([*git, "add", "m"], check=True)
            subprocess.run([*git, "commit", "-q", "-m", "one"], check=True)
        subprocess.run([*git, "mv", "m", "d"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "rm"], check=True)
        bare = folder / "inbox" / "git" / f"{epoch}.git"
        subprocess.run(["git", "clone", "-q", "--bare", str(work), str(bare)], check=True)
    return folder / "inbox"
