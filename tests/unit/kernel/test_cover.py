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


def test_figures_without_a_unit_and_sentences_over_two_lines_are_claims() -> None:
    said = (
        "Unixbench on a KX-U6780A:\nWith it: Single-core: 877.8, Multi-core (8): 4854.7\n\n"
        "Single-core performance improved by 4.1%, multi-core performance\nimproved by 4.8%.\n"
        "CPU: 0 PID: 12 Comm: swapper\nRIP: 0010:x\n"
    )
    assert cover.read(f"Subject: [PATCH] x\n\n{said}---\n".encode()).claims == (
        "With it: Single-core: 877.8, Multi-core (8): 4854.7",
        "Single-core performance improved by 4.1%, multi-core performance improved by 4.8%.",
    )


def test_rows_below_before_and_after_are_claims_with_it() -> None:
    said = (
        "Before:\n\t# for i in 1 2; do test 100; done\n\tTW = 8.047 TR = 5.845\n"
        "After:\n\tTW = 4.752 TR = 4.664\n\nx = 1.5, y = 2;\n"
    )
    assert cover.read(f"Subject: [PATCH] x\n\n{said}---\n".encode()).claims[:2] == (
        "Before: TW = 8.047 TR = 5.845",
        "After: TW = 4.752 TR = 4.664",
    )


def test_figures_for_the_list_alone_below_the_rule_are_claims_but_those_of_the_diffstat_are_none() -> None:
    stat = " rename fs/{pipe.c => pipes.c} (97%)\n fs/x.png | Bin 0 -> 1034 bytes\n mode change 100644 => 100755 x\n"
    stat += " 2 files changed, 3 insertions(+)\n"
    said = (
        "--- of all ---\nThe call takes another way, which is shorter than the one that it took.\n---\n"
        "hackbench gets 3 % faster.\n\nChanges in v2: none.\n\n"
        f" fs/pipe.c | 2 +- 100%\n{stat}\nRange-diff against v1:\n1: a ! 1: b\n    -hackbench gets 9 % faster\n"
    )
    found = cover.read(f"Subject: [PATCH v2] x\n\n{said}diff --git a/x b/x\n@@ -1 +1 @@\n-1 ns\n+2 ns\n".encode())
    assert found.claims == ("hackbench gets 3 % faster.",)


def test_what_is_not_quoted_is_counted() -> None:
    """Of a table of 30 rows, and what stood below it, 20 lines were quoted without a word of the others."""
    said = "\n".join(f"row-{n}   {n} ns" for n in range(30))
    found = cover.read(f"Subject: [PATCH] x\n\n{said}\n\nIt is 5 % faster.\n---\n".encode()).claims
    assert (len(found), found[0], found[-1]) == (21, "row-0 0 ns", "(11 more lines with figures, not quoted here)")


def test_an_answer_goes_where_the_sender_wants_it() -> None:
    text = (
        "From: bot <bot@example.org>\nReply-To: list@example.org\nTo: list@example.org\nCc: a@example.org\n"
        "Message-ID: <1@b>\nSubject: [tip: sched/core] x\n\nx\n"
    )
    answered = cover.read(text.encode()).answer_to
    assert answered is not None and answered.sender == "bot@example.org"
    got = email.message_from_bytes(cover.reply(answered, "x\n"), policy=email.policy.default)
    assert (got["To"], got["Cc"]) == ("list@example.org", "a@example.org")


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
    assert len(cover.read(many.encode()).claims) == 21


def test_a_line_of_figures_without_end_is_no_claim_and_read_at_once() -> None:
    assert cover.read(b"Subject: [PATCH] x\n\n" + b"1," * 500_000 + b"\nit takes 17 % less\n").claims == (
        "it takes 17 % less",
    )
