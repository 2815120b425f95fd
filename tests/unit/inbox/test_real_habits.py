# SPDX-License-Identifier: GPL-2.0-or-later
"""What people really send to lists: other tags, other subjects, other threads, replies of other mailers."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from kdelta.inbox import mails, series, sources
from kdelta.kernel import mail as patches
from unit.inbox import stand_ins
from unit.inbox.stand_ins import ALICE, BOB, EVE, comment, mail

PATCH = comment("fs/pipe.c", "x")
FIRST = mail(1, "[PATCH] pipe: an old name", PATCH)


def states(*data: bytes) -> list[tuple[str, str]]:
    return [(one.key.partition("@")[0][1:], one.state) for one in series.items(mails.read(one) for one in data)]


@pytest.mark.parametrize(
    "subject",
    ["[PATCHv2] pipe: an old name", "[RFC PATCHv2] pipe: an old name", "[PATCH] pipe: an old name [ver #2]",
     "[PATCH V2] Pipe: an old name", "=?UTF-8?q?=5BPATCH_v2=5D_pipe=3A_an_old_name?="],
)  # fmt: skip
def test_a_version_is_read_in_every_spelling(subject: str) -> None:
    second = mail(2, "x", PATCH).replace(b"Subject: x", b"Subject: " + subject.encode())
    assert states(FIRST, second) == [("1", "superseded"), ("2", "ready")]
    assert states(second, FIRST) == states(FIRST, second)  # v1 may come after v2


@pytest.mark.parametrize(
    ("said", "older"),
    [
        ("Changes in v2:\n- Link to v1: https://lore.kernel.org/r/1@example.org\n", "superseded"),
        ("v1:\nhttps://lore.kernel.org/linux-fsdevel/1@example.org/T/#u\n", "superseded"),
        ("Link: https://patch.msgid.link/1%40example.org\nreplaces the RFC above\n", "ready"),
        ("Depends on v1 of https://lore.kernel.org/r/1@example.org\n", "ready"),
        ("Reported in https://lore.kernel.org/r/1@example.org\n", "ready"),
    ],
)
def test_a_later_version_with_another_subject_in_another_thread_names_the_earlier_one(said: str, older: str) -> None:
    second = mail(2, "[PATCH v2] pipe: a new name", said + PATCH)
    assert states(FIRST, second) == [("1", older), ("2", "ready")]
    lines = base64.encodebytes((said + PATCH).encode()).decode()
    encoded = mail(2, "[PATCH v2] pipe: a new name", lines).replace(b"7bit", b"base64")
    assert b"Transfer-Encoding: base64" in encoded and states(FIRST, encoded) == [("1", older), ("2", "ready")]


def test_a_series_with_another_title_is_told_by_the_titles_of_its_patches() -> None:
    def sent(first: int, version: str, cover: str, names: str) -> list[bytes]:
        total = len(names)
        whole = [mail(first, f"[PATCH{version} 0/{total}] {cover}", "Cover.")]
        for at, name in enumerate(names, 1):
            whole.append(mail(first + at, f"[PATCH{version} {at}/{total}] fs: {name}", PATCH, answers=str(first)))
        return whole

    assert states(*sent(1, "", "one", "abc"), *sent(11, " v2", "two", "xabc")) == [("1", "superseded"), ("11", "ready")]
    assert states(*sent(1, "", "one", "abc"), *sent(11, " v2", "two", "axy")) == [("1", "ready"), ("11", "ready")]
    twice = [*sent(1, "", "one", "abc"), *sent(11, "", "one", "abc")]
    assert states(*twice) == [("1", "superseded"), ("11", "ready")]  # the same was sent again
    assert states(*sent(1, "", "Fixes", "abc"), *sent(11, "", "Fixes", "xyz")) == [("1", "ready"), ("11", "ready")]


@pytest.mark.parametrize(
    "subject",
    ["Re: [PATCH] x", "RE: [External] [PATCH] x", "[External] Re: [PATCH] x", "AW: [PATCH] x", "Re[2]: [PATCH] x",
     "\u56de\u590d: [PATCH v2 1/3] x", "\u7b54\u590d\uff1a[PATCH] x", "SV: [PATCH] x", "Fwd: [PATCH] x",
     'FAILED: patch "[PATCH] x" failed to apply to 6.12-stable tree',
     "[GIT PULL] x", "[GIT PULL 01/12 for v6.13] vfs x", "[PULL 3/40] x", "[tip: sched/core] x", "[BUG] x"],
)  # fmt: skip
def test_answers_and_requests_to_pull_are_no_patches_though_they_hold_one(subject: str) -> None:
    assert states(mail(1, subject, "> hm\n\n" + PATCH)) == []


def via(data: bytes, name: str, reply_to: str) -> bytes:
    """As b4's web endpoint sends it, and lists that rewrite senders."""
    head = b"From: " + name.encode() + b" via Relay <relay@example.net>"
    return data.replace(
        b"From: Alice <alice@example.org>", head + (f"\nReply-To: {reply_to}".encode() if reply_to else b"")
    )


@pytest.mark.parametrize(
    ("first", "second", "older"),
    [
        (("", ""), ("Alice", "Alice <Alice@example.org>"), "superseded"),
        (("Alice", "relay@example.net, alice@example.org"), ("", ""), "superseded"),
        (("Alice", ""), ("Alice", ""), "superseded"),
        (("Alice", ""), ("Bob", ""), "ready"),
    ],
)
def test_who_sent_by_a_relay_is_told_from_others_and_known_again(
    first: tuple[str, str], second: tuple[str, str], older: str
) -> None:
    mails = [mail(1, "[PATCH] pipe: x", PATCH), mail(2, "[PATCH v2] pipe: x", PATCH)]
    sent = [via(one, *how) if how[0] else one for one, how in zip(mails, (first, second), strict=True)]
    assert states(*sent) == [("1", older), ("2", "ready")]


def test_a_cover_letter_of_a_single_patch_is_no_series_of_its_own() -> None:
    cover, patch = mail(1, "[PATCH 0/1] pipe: x", "Cover."), mail(2, "[PATCH 1/1] pipe: y", PATCH, answers="1")
    assert states(cover, patch) == states(patch, cover) == [("1", "ready")]
    assert states(cover) == [("1", "waiting")]
    later = [mail(3, "[PATCH v2 0/1] pipe: x", "Cover.", answers="2"), mail(4, "[PATCH v2 1/1] y", PATCH, answers="3")]
    assert states(cover, patch, *later) == [("1", "superseded"), ("3", "ready")]


def test_what_was_picked_for_several_stable_releases_is_a_series_for_each() -> None:
    def picked(first: int, release: str, version: str = "") -> list[bytes]:
        one = mail(first, f"[PATCH AUTOSEL {release}{version} 1/2] pipe: x", PATCH)
        return [one, mail(first + 1, f"[PATCH AUTOSEL {release}{version} 2/2] pipe: y", PATCH, answers=str(first))]

    assert states(*picked(1, "6.12"), *picked(3, "6.6")) == [("1", "ready"), ("3", "ready")]
    assert states(*picked(1, "6.12"), *picked(3, "6.12", " v2")) == [("1", "superseded"), ("3", "ready")]
    assert states(mail(1, "[PATCH 5.10/5.15] pipe: x", PATCH)) == [("1", "ready")]  # the tenth of five it is not
    branch = [mail(1, "[PATCH 6.12.y] pipe: x", PATCH), mail(2, "[PATCH 6.1.y] pipe: x", PATCH)]
    assert states(*branch, mail(3, "[PATCH v2] pipe: x", PATCH)) == [
        ("1", "superseded"), ("2", "superseded"), ("3", "ready"),
    ]  # fmt: skip


def test_a_request_for_comments_is_a_patch_where_it_holds_one() -> None:
    assert states(mail(1, "[RFC] x: what about", PATCH), mail(2, "[RFC] a talk", "Well?")) == [("1", "ready")]
    assert states(mail(1, "[net v3] x: y", PATCH)) == [("1", "ready")]


def test_patches_that_follow_an_rfc_are_newer_than_it_though_they_begin_again_at_v1() -> None:
    def sent(first: int, tag: str, second: str) -> list[bytes]:
        whole = [mail(first, f"[{tag} 0/2] x", "Cover."), mail(first + 1, f"[{tag} 1/2] a", PATCH, answers=str(first))]
        return [*whole, mail(first + 2, f"[{tag} 2/2] {second}", PATCH, answers=str(first))]

    rfc, patches = sent(1, "RFC PATCH v3", "b"), sent(4, "PATCH", "b")
    assert states(*rfc, *patches) == states(*patches, *rfc) == [("1", "superseded"), ("4", "ready")]
    assert states(*rfc, *patches[:2]) == [("1", "ready"), ("4", "waiting")]  # and are not filled up from it
    assert states(*patches, *sent(7, "RFC PATCH v2", "b")) == [("4", "superseded"), ("7", "ready")]
    assert states(*sent(1, "RFC PATCH", "b"), *sent(4, "PATCH", "c")) == [("1", "superseded"), ("4", "ready")]


def test_a_patch_that_was_sent_anew_within_its_series_counts() -> None:
    whole = [
        mail(1, "[PATCH 0/2] x", "Cover."),
        *(mail(1 + n, f"[PATCH {n}/2] {n}", PATCH, answers="1") for n in (1, 2)),
    ]
    anew = mail(9, "[PATCH v1.1 2/2] 2", comment("fs/pipe.c", "anew"), answers="1")
    (one,) = series.items(mails.read(data) for data in [*whole, anew])
    assert one.key == "<1@example.org>" and "anew" in "\n".join(patches.steps(one.data, "x")[1].lines)


def test_patches_of_a_second_developer_in_the_thread_make_a_series_whole() -> None:
    cover, first = mail(1, "[PATCH 0/3] x", "Cover."), mail(2, "[PATCH 1/3] 1", PATCH, answers="1")
    bobs, last = mail(3, "[PATCH 2/3] 2", PATCH, BOB, "1"), mail(4, "[PATCH 3/3] 3", PATCH, answers="1")
    chained = [mail(3, "[PATCH 2/3] 2", PATCH, BOB, "2"), mail(4, "[PATCH 3/3] 3", PATCH, answers="3")]
    assert states(cover, first, bobs, last) == states(last, bobs, first, cover) == [("1", "ready")]
    assert states(cover, first, *chained) == [("1", "ready")]
    (one,) = series.items(mails.read(data) for data in (cover, first, bobs, last))
    assert [step.number for step in patches.steps(one.data, "x")] == [1, 2, 3]
    assert states(cover, first, bobs) == [("1", "waiting")]
    assert states(first, mail(3, "[PATCH 2/2] 2", PATCH, BOB, "2")) == [("2", "waiting"), ("3", "waiting")]  # no set
    better = mail(9, "[PATCH v2 2/3] 2", comment("fs/pipe.c", "better"), BOB, "3")
    assert states(cover, first, bobs, last, better) == [("1", "superseded"), ("9", "ready")]
    anew = [mail(20, "[PATCH v2 0/3] x", "Cover.", BOB, "3")]
    anew += [mail(20 + n, f"[PATCH v2 {n}/3] {n}", PATCH, BOB, "20") for n in (1, 2, 3)]
    assert states(cover, first, bobs, last, *anew) == [("1", "superseded"), ("20", "ready")]


def test_nobody_elses_patch_takes_the_place_of_one_that_was_sent() -> None:
    whole = [mail(1, "[PATCH 0/2] x", "Cover.")]
    whole += [mail(1 + n, f"[PATCH {n}/2] {n}", comment("fs/pipe.c", "mine"), answers="1") for n in (1, 2)]
    other = mail(9, "[PATCH 2/2] 2", comment("fs/pipe.c", "other"), EVE, "1")
    found = series.items(mails.read(data) for data in [*whole, other])
    assert [(one.key, one.state) for one in found] == [("<1@example.org>", "ready"), ("<9@example.org>", "waiting")]
    assert b"other" not in found[0].data
    twice = [mail(3, "[PATCH 2/2] 2", comment("fs/pipe.c", "bobs"), BOB, "1"), other]
    found = series.items(mails.read(data) for data in [*whole[:2], *twice])
    assert found[0].state == "ready" and b"bobs" in found[0].data and b"other" not in found[0].data


@pytest.mark.parametrize("first", [0, 1])  # with a cover letter, and without one
def test_a_series_in_answer_to_another_of_as_many_patches_stays_one_of_its_own(first: int) -> None:
    def sent(start: int, sender: str, answers: str) -> list[bytes]:
        head = mail(start, f"[PATCH {first}/3] x", PATCH, sender, answers)
        numbers = range(first + 1, 4)
        return [head, *(mail(start + n, f"[PATCH {n}/3] {n}", PATCH, sender, str(start)) for n in numbers)]

    alices, eves = sent(10, ALICE, ""), sent(20, EVE, "10")
    assert states(*alices, *eves) == [("10", "ready"), ("20", "ready")]
    assert states(*alices[:-1], *eves) == [("10", "waiting"), ("20", "ready")]


def test_a_hundred_mails_and_one_of_five_megabytes_in_a_file(tmp_path: Path) -> None:
    def of(number: int) -> list[bytes]:
        sender = f"Dev {number} <dev{number}@example.org>"
        first = 10 * number
        cover = mail(first, f"[PATCH 0/3] x{number}", "Cover.", sender)
        parts = (mail(first + n, f"[PATCH {n}/3] {n}", PATCH, sender, answers=str(first)) for n in (1, 2, 3))
        return [cover, *parts, mail(first + 4, f"Re: [PATCH 0/3] x{number}", PATCH, BOB, answers=str(first))]

    large = mail(900, "[PATCH] lib: a table", PATCH + "".join(f"+\t{n:#010x},\n" for n in range(400_000)))
    assert len(large) > 5_000_000
    box = stand_ins.mbox(tmp_path / "box", [*(one for number in range(1, 21) for one in of(number)), large])
    found = sources.items(sources.find(str(box)), 0.0, "")
    assert [one.state for one in found] == ["ready"] * 21 and len(found[-1].data) > 5_000_000
