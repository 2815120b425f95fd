# SPDX-License-Identifier: GPL-2.0-or-later
"""What a series says of itself: its base, and the figures of its cover letter."""

from __future__ import annotations

import email
import email.policy

from kdelta.kernel import cover

BASE = "0123456789abcdef0123456789abcdef01234567"
SERIES = f"""\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: A <a@example.org>
Subject: [PATCH 0/1] pipe: fewer wakeups

hackbench gets 12.5% faster here:

    before   1234 ns
    after    1034 ns
> somebody said 50% once

There are 3 patches, for 6.12.

base-commit: {BASE}
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: A <a@example.org>
Subject: [PATCH 1/1] pipe: one

No figure.
---
 fs/pipe.c | 2 +- 100%
diff --git a/fs/pipe.c b/fs/pipe.c
@@ -1 +1 @@
-int a; /* 40 ns */
+int b; /* 20 ns */
"""


def test_the_base_and_the_figures_before_the_diffs_are_read() -> None:
    found = cover.read(SERIES.replace("\n", "\r\n").encode())
    assert found.base == BASE
    assert found.claims == ("hackbench gets 12.5% faster here:", "before 1234 ns", "after 1034 ns")


def test_a_reply_is_in_the_thread_of_the_cover_letter_and_no_header_can_be_smuggled_in() -> None:
    mails = SERIES.replace("Subject: [PATCH 1", "Message-ID: <1@b>\nSubject: [PATCH 1").replace(
        "Subject: [PATCH 0",
        "Message-ID: <0@b>\nTo: list@example.org, A <a@example.org>\n"
        "Cc: =?utf-8?q?X=0ABcc=3A?= <x@y.org>\nSubject: [PATCH 0",
    )
    swapped = "".join(f"From 0{piece}" for piece in reversed(mails.split("From 0")[1:]))
    answered = cover.read(swapped.encode()).answer_to
    assert answered is not None
    got = email.message_from_bytes(cover.reply(answered, "kdelta: 1 regressed \u00b5\n"), policy=email.policy.default)
    assert (got["Subject"], got["In-Reply-To"]) == ("Re: [PATCH 0/1] pipe: fewer wakeups", "<0@b>")
    assert (got["To"], got["Cc"], got["Bcc"]) == ("a@example.org", "list@example.org, x@y.org", None)
    assert got.get_content() == "kdelta: 1 regressed \u00b5\n"
    assert cover.read(SERIES.encode()).answer_to is None


def test_a_bare_diff_says_nothing_of_itself_and_claims_are_bounded() -> None:
    assert cover.read(b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1 ns\n+2 ns\n") == cover.Cover()
    many = "Subject: [PATCH] x\n\n" + "".join(f"case {i}: {i} % faster\n" for i in range(1000))
    assert len(cover.read(many.encode()).claims) == 20
