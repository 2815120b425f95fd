# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails of any source become series, each once, the newest version of each; what is due is told by what is known."""

from __future__ import annotations

import errno
import gzip
import itertools
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.errors import HostError, UserError
from kdelta.inbox import desk, mails, series, sources
from kdelta.kernel import mail as patches
from kdelta.model.diary import Watched
from unit.inbox import stand_ins
from unit.inbox.stand_ins import ALICE, EVE, comment, mail
from unit.kernel.test_thread import commit, git, repository

PATCH = comment("fs/pipe.c", "x")
FOUND = {
    "<2@example.org>": "ready",
    "<4@example.org>": "superseded",
    "<10@example.org>": "ready",
    "<13@example.org>": "ready",
    "<15@example.org>": "ready",  # that it does not apply is found by the review
    "<17@example.org>": "waiting",
    "<19@example.org>": "ready",
}


def items(*data: bytes) -> tuple[series.Item, ...]:
    return series.items(mails.read(one) for one in data)


@pytest.mark.parametrize("kind", ["maildir", "mbox", "public_inbox"])
def test_every_source_gives_the_same_series_oldest_first(kind: str, tmp_path: Path) -> None:
    place = getattr(stand_ins, kind)(tmp_path / "place", stand_ins.twenty())
    found = sources.items(sources.find(str(place)), 0.0, "")
    assert [(one.key, one.state) for one in found] == list(FOUND.items())
    whole = next(one for one in found if one.key == "<10@example.org>")
    assert [one.number for one in patches.steps(whole.data, "x")] == [1, 2]
    assert "twelve" in whole.data.decode() and "five" not in whole.data.decode()
    assert next(one.why for one in found if one.state == "superseded") == "by v2, <10@example.org>"
    assert next(one.why for one in found if one.state == "waiting") == "for [2/3], [3/3]"


def test_a_mail_that_is_moved_or_removed_while_it_is_read_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = stand_ins.maildir(tmp_path / "place", [mail(n, f"[PATCH] x: {n}", PATCH) for n in (1, 2, 3, 4)])
    read, done = Path.read_bytes, []

    def meanwhile(path: Path) -> bytes:
        """A mail program marks the first new mail as read, and removes an old one."""
        if path.parent.name not in done:
            done.append(path.parent.name)
            if path.parent.name == "new":
                path.rename(place / "cur" / f"{path.name}S")
            else:
                path.unlink()
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", meanwhile)
    found = sources.items(sources.find(str(place)), 0.0, "")
    assert done == ["new", "cur"] and len(found) == 3  # the one that moved is among them
    assert len(sources.items(sources.find(str(place)), 0.0, "")) == 3


WRITER = """
import fcntl, sys
with open(sys.argv[1], "r+b") as box:
    fcntl.lockf(box, fcntl.LOCK_EX)
    whole = box.read()
    box.truncate(len(whole) - 40)
    box.flush()
    print("half", flush=True)
    sys.stdin.readline()
    box.seek(len(whole) - 40)
    box.write(whole[-40:])
"""


def test_an_mbox_is_read_when_its_writer_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = stand_ins.mbox(tmp_path / "box", [mail(1, "[PATCH] x", comment("fs/pipe.c", "x" * 80))])
    whole = sources.items(sources.find(str(place)), 0.0, "")
    argv = [sys.executable, "-c", WRITER, str(place)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "half\n"
        waited = []

        def wait(delay_s: float) -> None:
            waited.append(delay_s)
            writer.communicate("go on\n")

        monkeypatch.setattr("time.sleep", wait)
        assert sources.items(sources.find(str(place)), 0.0, "") == whole
    assert len(waited) == 1


def test_an_mbox_that_stays_locked_is_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = stand_ins.mbox(tmp_path / "box", [mail(1, "[PATCH] x", PATCH)])
    clock = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    monkeypatch.setattr("time.sleep", lambda _: None)

    def held(*_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "held")

    monkeypatch.setattr("fcntl.lockf", held)
    assert len(sources.items(sources.find(str(place)), 0.0, "")) == 1


def test_a_branch_that_is_away_for_a_while_is_no_mistake_of_the_user(tmp_path: Path) -> None:
    tree = tmp_path / "linux"
    base = repository(tree)
    source = sources.find(f"{tree}@{git(tree, 'branch', '--show-current')}")
    tree.rename(tmp_path / "away")
    with pytest.raises(HostError, match="cannot be read"):
        sources.items(source, 0.0, base)


def test_old_mails_are_left_out_and_a_word_that_names_no_source_is_refused(tmp_path: Path) -> None:
    place = stand_ins.mbox(tmp_path / "box", stand_ins.twenty())
    all_of_them = list(stand_ins.twenty())
    since = mails.read(all_of_them[12]).date_s
    assert [one.key for one in sources.items(sources.find(str(place)), since, "")] == list(FOUND)[3:]
    (tmp_path / "notes").write_text("a text\n\nFrom: nobody\n")
    for text in ("nowhere", str(tmp_path), f"{tmp_path}@main", str(tmp_path / "notes")):
        with pytest.raises(UserError):
            sources.find(text)


@pytest.mark.parametrize(
    "head", ["", "From MAILER-DAEMON Thu Jan  1\n\n", "X-A: b\r\nsubject: c\r\n\r\nd", "\nFrom: a\n"]
)
def test_a_file_in_which_a_mail_begins_or_nothing_yet_is_an_mbox(head: str, tmp_path: Path) -> None:
    (tmp_path / "box").write_bytes(head.encode())
    assert sources.find(str(tmp_path / "box")).kind == "mbox"


def test_a_packed_mbox_is_read_as_it_would_be_unpacked(tmp_path: Path) -> None:
    """``t.mbox.gz``, as lore.kernel.org hands it out, "holds no mail"."""
    plain = stand_ins.mbox(tmp_path / "box", stand_ins.twenty())
    packed = tmp_path / "t.mbox.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    told = [(one.key, one.state) for one in sources.items(sources.find(str(packed)), 0.0, "")]
    assert told == [(one.key, one.state) for one in sources.items(sources.find(str(plain)), 0.0, "")]
    packed.write_bytes(packed.read_bytes()[:-40])
    with pytest.raises(UserError, match=r"packed as gz, it cannot be read .*; unpack it yourself"):
        sources.find(str(packed))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers())
def test_the_order_in_which_mails_come_changes_nothing(seed: int) -> None:
    shuffled = stand_ins.twenty()
    random.Random(seed).shuffle(shuffled)
    twice = [*shuffled, *shuffled[:5]]
    assert [(one.key, one.state) for one in items(*twice)] == list(FOUND.items())


def test_series_that_came_without_threads_are_put_together() -> None:
    loose = [mail(i, f"[PATCH {i}/3] x: {i}", PATCH) for i in (1, 3, 2)]
    (one,) = items(*loose)
    assert one.state == "ready" and len(patches.steps(one.data, "x")) == 3
    other = mail(4, "[PATCH 3/3] x: 3", PATCH, EVE)
    assert {one.state for one in items(*loose[:1], loose[2], other)} == {"waiting"}  # another sender's


def test_a_line_of_a_text_that_looks_like_the_begin_of_a_mail_is_none(tmp_path: Path) -> None:
    odd = (
        "From commit 0123456789ab, which says\nNote: y\n",
        "From 1 Mon Sep 17 00:00:00 2001\nSubject: [PATCH 1/2] x\n\n",
    )
    for number, text in enumerate(odd):
        sent = [mail(i, f"[PATCH {i}/2] {i}", (text if i == 2 else "") + PATCH) for i in (1, 2)]
        place = stand_ins.maildir(tmp_path / str(number), sent)
        (one,) = sources.items(sources.find(str(place)), 0.0, "")
        assert [step.number for step in patches.steps(one.data, "x")] == [1, 2]
        assert text in list(patches.messages(one.data))[1].text


def test_single_patches_of_a_new_version_make_it_whole() -> None:
    first = [
        mail(1, "[PATCH 0/2] x", "Cover."),
        *(mail(1 + i, f"[PATCH {i}/2] {i}", PATCH, answers="1") for i in (1, 2)),
    ]
    again = mail(9, "[PATCH v2 2/2] 2", comment("fs/pipe.c", "better"), answers="3")
    old, new = items(*first, again)
    assert (old.state, new.state) == ("superseded", "ready")
    steps = patches.steps(new.data, "x")
    assert len(steps) == 2 and "better" in "\n".join(steps[1].lines)


def test_a_later_version_is_one_of_the_same_sender_by_change_id_or_title() -> None:
    first = mail(1, "[PATCH] x: one", PATCH + "\nchange-id: 2026-x\n")
    renamed = mail(2, "[PATCH v2] y: other", PATCH + "\nchange-id: 2026-x\n")
    assert [one.state for one in items(first, renamed)] == ["superseded", "ready"]
    assert [one.state for one in items(first, mail(2, "[PATCH v2] X: One", PATCH))] == ["superseded", "ready"]
    assert [one.state for one in items(first, mail(2, "[PATCH v2] x: one", PATCH, EVE))] == ["ready", "ready"]
    assert ALICE != EVE


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.binary(max_size=300), max_size=6))
def test_no_bytes_are_too_odd_to_be_read(data: list[bytes]) -> None:
    odd = [b"Subject: [PATCH v999 9999/9999] x\nMessage-ID: <a>\nIn-Reply-To: <a>\nDate: Fri, 99 Nov 1\n\n", *data]
    assert all(one.state in ("ready", "waiting", "superseded") for one in items(*odd))


def test_a_list_of_many_senders_is_sorted_in_little_time() -> None:
    tag = mails.read(mail(1, "[PATCH v2 1/2] x", "", EVE)).tag
    many = [mails.Mail(id=f"<{i}@b>", tag=tag, sender=f"{i // 4}@b", date_s=float(i)) for i in range(8000)]
    assert len(series.items(many)) >= 2000  # by the square of their number it would take an hour


def test_commits_of_a_branch_come_in_their_order(tmp_path: Path) -> None:
    tree = tmp_path / "linux"
    base = repository(tree)
    made = [commit(tree, "a.c", f"int {name};\n", f"a: {name}") for name in "abc"]
    source = sources.find(f"{tree}@{git(tree, 'branch', '--show-current')}")
    found = sources.items(source, 0.0, base)
    assert [(one.parent, one.key, one.title) for one in found] == [
        (base, made[0], "a: a"),
        (made[0], made[1], "a: b"),
        (made[1], made[2], "a: c"),
    ]
    assert sources.items(source, 0.0, made[-1]) == ()


def row(item: str, state: str, **more: object) -> Watched:
    return Watched(source="s", item=item, title=item, state=state, **more)  # type: ignore[arg-type]


def test_what_is_settled_is_not_due_and_what_was_interrupted_goes_first() -> None:
    found = [series.Item(key=key, title=key, date_s=i) for i, key in enumerate("abcd")]
    rows = desk.known([row("a", "done"), row("b", "failed"), row("d", "running")])
    assert [one.key for one in desk.due(found, rows)] == ["d", "c"]
    late = series.Item(key="e", title="e", date_s=9, state="superseded", why="by v2")
    assert [one.item for one in desk.told([*found, late], "s", rows)] == ["e"]
    assert desk.told([late], "s", desk.known([row("e", "superseded", why="by v2")])) == ()
    assert desk.told([late], "s", desk.known([row("e", "done")])) == ()  # reviewed before v2 came


def test_a_days_budget_is_spent_by_what_began_that_day() -> None:
    rows = [
        row("a", "done", began_at="2026-11-22T23:59:00", elapsed_s=60),
        row("b", "done", began_at="2026-11-23T00:01:00"),
    ]
    assert (desk.spent_s(rows, "2026-11-22"), desk.spent_s(rows, "2026-11-23")) == (60, 0)
