# SPDX-License-Identifier: GPL-2.0-or-later
"""A thread becomes the newest version of its series; commits are found by what they change; what a diff touches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kdelta.kernel import cover, mail, patch_ids, steps, thread, touches

GIT = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(tree: Path, *words: str) -> str:
    argv = ["git", "-C", str(tree), *GIT, *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def commit(tree: Path, name: str, content: str, subject: str) -> str:
    """A commit that writes one file; its hash."""
    (tree / name).write_text(content)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", subject)
    return git(tree, "rev-parse", "HEAD")


def repository(path: Path) -> str:
    """A tree that is a git repository; its commit."""
    path.mkdir()
    git(path, "init", "-q")
    return commit(path, "Makefile", "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 0\nEXTRAVERSION =\n", "Linux 6.12")


def patch_of(tree: Path, one: str) -> str:
    """The patch id of a commit as git format-patch --base writes it."""
    diff = git(tree, "diff-tree", "-p", one) + "\n"
    done = subprocess.run(["git", "patch-id", "--stable"], input=diff, capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def a_mail(subject: str, diff: bool = True, text: str = "") -> str:
    body = f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{subject}\n+{subject}!\n" if diff else ""
    return f"From 0123 Mon Sep 17 00:00:00 2001\nFrom: a@example.org\nSubject: {subject}\n\n{text}\n{body}\n"


def subjects(*mails: str) -> list[str]:
    data = thread.newest("".join(mails).encode())
    return [mail.subject_of(piece) for piece in mail.pieces(data)]


V1 = [a_mail("[PATCH 0/2] pipe: x", diff=False), a_mail("[PATCH 1/2] pipe: a"), a_mail("[PATCH 2/2] pipe: b")]
V2 = [a_mail("[PATCH v2 2/2] pipe: b"), a_mail("[PATCH v2 0/2] pipe: x", diff=False), a_mail("[PATCH v2 1/2] pipe: a")]
REPLY = a_mail("Re: [PATCH v3 1/2] pipe: a", text="> quoted\nNak.")


def test_the_newest_version_is_meant_and_replies_are_not() -> None:
    assert subjects(*V1, REPLY, *V2, REPLY) == [
        "[PATCH v2 0/2] pipe: x",
        "[PATCH v2 1/2] pipe: a",
        "[PATCH v2 2/2] pipe: b",
    ]
    data = thread.newest("".join([*V1, REPLY, *V2]).encode())
    assert [patch.version for patch in mail.steps(data, "x")] == [2, 2]


def test_single_patches_of_a_new_version_are_put_into_the_one_before() -> None:
    assert subjects(*V1, V2[0]) == ["[PATCH 1/2] pipe: a", "[PATCH v2 2/2] pipe: b"]
    assert len(mail.steps(thread.newest("".join([*V1, V2[0]]).encode()), "x")) == 2


def test_a_single_patch_of_a_new_version_that_lost_its_number_is_the_one_of_its_title() -> None:
    """The review was of that patch alone, on a tree without the others."""
    fixed = a_mail("[PATCH v2] pipe: b")
    assert subjects(*V1, REPLY, fixed) == ["[PATCH 1/2] pipe: a", "[PATCH v2 2/2] pipe: b"]
    assert len(mail.steps(thread.newest("".join([*V1, fixed]).encode()), "x")) == 2
    assert subjects(*V1, a_mail("[PATCH v2] pipe: c")) == ["[PATCH v2] pipe: c"], "another one"


@pytest.mark.parametrize("tag", ["[PATCH][v2]", "[PATCH] [v2]", "[v2][PATCH]", "[PATCH net] [PATCH v2]"])
def test_a_version_in_brackets_of_its_own_is_one(tag: str) -> None:
    """Of two that stand in another order than they were sent in, the older one was taken."""
    assert subjects(a_mail(f"{tag} pipe: a"), REPLY, a_mail("[PATCH] pipe: a")) == [f"{tag} pipe: a"]
    assert mail.tag_of("[PATCH] pipe: as [v2] has it").version == 1


def test_of_which_version_each_patch_is_is_told_where_they_differ() -> None:
    mixed = mail.steps(thread.newest("".join([*V1, V2[0]]).encode()), "a/x.mbox")
    told = steps.mixed([steps.Step(mail=one) for one in mixed])
    assert told == ("patch x.mbox: of several versions: 1/2 of v1, 2/2 of v2",)
    assert steps.mixed([steps.Step(mail=one) for one in mail.steps("".join(V1).encode(), "x")]) == ()
    longer = [a_mail(f"[PATCH v2 {i}/3] pipe: {i}") for i in (1, 2)]  # 3/3 did not arrive: never filled from v1
    assert subjects(*V1, *longer) == ["[PATCH v2 1/3] pipe: 1", "[PATCH v2 2/3] pipe: 2"]


def test_what_is_not_given_of_a_series_is_told() -> None:
    """[PATCH v3 2/5] alone was measured without a word of the other four."""

    def told(*numbers: int) -> tuple[str, ...]:
        mails = [mail.steps(a_mail(f"[PATCH v3 {i}/5] pipe: {i}").encode(), f"m/{i}.eml")[0] for i in numbers]
        return steps.incomplete([steps.Step(mail=one) for one in mails])

    assert told(2) == ("patch 2.eml is 2/5 of a series; not given: 1/5, 3/5, 4/5, 5/5",)
    assert told(1, 2, 3, 4) == (
        "patch 1.eml is 1/5 of a series and 2.eml is 2/5 of a series and 3.eml is 3/5 of a series and 4.eml is 4/5 "
        "of a series; not given: 5/5",
    )
    assert told(1, 2, 3, 4, 5) == ()
    assert steps.incomplete([steps.Step(mail=one) for one in mail.steps("".join(V1).encode(), "x")]) == ()


def test_a_patch_for_another_release_is_told() -> None:
    """[PATCH 6.12.y] was measured on 7.3 without a word."""

    def told(tag: str, version: tuple[int, int], *, take_out: bool = False) -> tuple[str, ...]:
        mails = mail.steps(a_mail(f"[{tag}] pipe: a").encode(), "a/x.mbox")
        return steps.for_others([steps.Step(mail=one, take_out=take_out) for one in mails], version)

    for tag in ("PATCH 6.12.y", "PATCH AUTOSEL 6.12 1/1", "PATCH 6.12", "PATCH 6.12.y v2"):
        assert told(tag, (7, 3)) == ("patch x.mbox: its subject says that it is for 6.12; the source is 7.3",)
        assert told(tag, (6, 12)) == () == told(tag, (7, 3), take_out=True)
    (several,) = told("PATCH 5.10/5.15", (7, 3))
    assert "for 5.10 and 5.15;" in several
    assert told("PATCH 5.10/5.15", (5, 15)) == ()
    for tag in ("PATCH", "PATCH v2.1", "PATCH net-next", "PATCH 1.5/3", "PATCH 2/3"):
        assert told(tag, (7, 3)) == ()


def test_what_was_sent_again_counts_once_and_one_mail_stays_as_it_is() -> None:
    assert subjects(*V1, a_mail("[PATCH RESEND 1/2] pipe: a"))[1] == "[PATCH RESEND 1/2] pipe: a"
    assert subjects(a_mail("[PATCH] a"), a_mail("[PATCH v2] a, better")) == ["[PATCH v2] a, better"]
    for alone in (b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", V1[1].encode(), REPLY.encode()):
        assert thread.newest(alone) == alone


def test_lines_that_look_like_separators_survive() -> None:
    text = "quoted:\n>From here on it is ours\n>From: nobody\n"
    data = thread.newest("".join([*V1[:1], a_mail("[PATCH 1/2] a", text=text), V1[2]]).encode())
    assert [one.number for one in mail.steps(data, "x")] == [1, 2]
    assert "From here on it is ours" in list(mail.messages(data))[1].text


@pytest.mark.parametrize(
    "line",
    [
        'From commit 0123456789ab ("fs: x"), which says',
        "From 10:15:00 on, all of it",
        "From Linus, on 1 January 2026",
        "From here on",
    ],
)
def test_a_line_of_a_text_that_begins_with_from_is_no_separator(line: str) -> None:
    for text in (f"{line}\nNote: y\n", f"\n{line}\nSubject: [PATCH 1/2] a\n\n"):
        whole = [V1[0], V1[1], a_mail("[PATCH 2/2] pipe: b", text=text)]
        assert [one.number for one in mail.steps("".join(whole).encode(), "x")] == [1, 2]
        assert len(subjects(*whole)) == 3
        assert line in list(mail.messages(thread.newest("".join(whole).encode())))[2].text


@pytest.mark.parametrize(
    "line",
    [
        "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001",
        "From mboxrd@z Thu Jan  1 00:00:00 1970",
        "From - Thu Jan 01 00:00:00 1970",
        "From a@b.c  Mon Jan  1 9:05:07 2024 +0100",
        "From a Mon Jan  1 09:05 2024 remote from b",
        "From a Mon Jan  1 09:05:07 CET 2024",
        "From a Mon Jan  1 09:05:07 +0100 2024",
    ],
)
def test_separators_of_all_programs_are_known(line: str) -> None:
    mails = [f"{line}\nSubject: [PATCH {n}/3] x\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n\n" for n in (1, 2, 3)]
    assert len(mail.steps("".join(mails).encode(), "x")) == 3
    assert thread.newest("".join(mails).encode()).count(f"{line}\n".encode()) == 3


def test_mails_are_joined_to_an_mbox_whatever_they_begin_with_or_hold() -> None:
    odd = "From 1 Mon Sep 17 00:00:00 2001\nSubject: [PATCH 1/2] a\n>From here\n"
    bare = a_mail("[PATCH 2/2] pipe: b", text=odd).partition("\n")[2]
    begun = [bare, f"From nobody\n{bare}", f">From nobody\n{bare}", a_mail("[PATCH 2/2] pipe: b", text=odd)]
    for last in begun:
        data = thread.joined([V1[0].encode(), V1[1].encode(), last.encode()])
        assert [mail.subject_of(piece) for piece in mail.pieces(data)] == [mail.subject_of(one.encode()) for one in V1]
        assert odd in list(mail.messages(data))[2].text


def test_prerequisites_are_read_in_their_order() -> None:
    text = "".join(f"prerequisite-patch-id: {digit * 40}\n" for digit in "bab")
    assert cover.read(a_mail("[PATCH 1/1] a", text=text).encode()).prerequisites == ("b" * 40, "a" * 40)


def test_commits_are_found_by_what_they_change(tmp_path: Path) -> None:
    tree = tmp_path / "linux"
    base = repository(tree)
    one = commit(tree, "a.c", "int a;\n" * 5, "a: one")
    two = commit(tree, "a.c", "int b;\n" * 5, "a: two")
    ids = [patch_of(tree, two), patch_of(tree, one)]
    assert patch_ids.find(str(tree), [*ids, "f" * 40], ["--all", f"^{base}"]) == {ids[0]: two, ids[1]: one}
    assert patch_ids.find(str(tree), ids, ["HEAD"], newest=1) == {ids[0]: two}
    mails = patch_ids.as_mails(str(tree), [one, two])
    assert [patch.subject for patch in mail.steps(mails, "x")] == ["a: one", "a: two"]
    assert patch_ids.of_patch(str(tree), patch_ids.as_mails(str(tree), [one])) == ids[1]
    assert patch_ids.of_patch(str(tree), b"no patch\n") == ""


@pytest.mark.parametrize(
    ("line", "lifetimes", "locks"),
    [
        ("+\tfoo = kzalloc(sizeof(*foo), GFP_KERNEL);", ("kzalloc",), ()),
        ("-\tkref_put(&foo->ref, foo_release);", ("kref_put",), ()),
        ("+\tspin_lock_irqsave(&foo->lock, flags);", (), ("spin_lock_irqsave",)),
        ("+\tkfree_rcu(foo, rcu);", ("kfree_rcu",), ()),
        ("+\tfl = locks_alloc_lock();", ("locks_alloc_lock",), ()),
        ("+\tguard(mutex)(&foo->mutex);", (), ("guard",)),
        ("+\t * call kfree() at the end", (), ()),
        ("+\tif (get_user(x, ptr))", (), ()),
        ("+\tblock_device(get);", (), ()),
        ("+\twake_up(&q); n = round_up(n, 8) + ktime_get_ns() + get_order(n);", (), ()),
        ("+\tra->size = get_init_ra_size(n, max); f = bio_get_flags(b); get_user_ns(ns);", ("get_user_ns",), ()),
        ("+\tinput(a); budget(b); __get_user(x, ptr); seq_put_decimal_ull(m, s, n);", (), ()),
        ("+\tiput(inode); mmgrab(mm); up_read(&sem);", ("iput", "mmgrab"), ("up_read",)),
        (" \tkfree(foo);", (), ()),
    ],
)
def test_changed_lines_tell_what_is_touched(line: str, lifetimes: tuple[str, ...], locks: tuple[str, ...]) -> None:
    head = ["--- a/fs/pipe.c", "+++ b/fs/pipe.c", "@@ -1 +1 @@"]
    assert touches.of([*head, line]) == touches.Touched(lifetimes=lifetimes, locks=locks)
    assert touches.of(["--- a/README", "+++ b/README", "@@ -1 +1 @@", line]) == touches.Touched()


def test_which_locks_may_be_mutexes_is_told_by_their_names() -> None:
    """Of spinlocks a review said "What runs under locks: counted", and showed a table of mutexes: none."""
    names = ("guard", "hash_lock", "mmap_read_lock", "mutex_lock", "raw_spin_lock", "rcu_read_lock", "up_write")
    assert touches.Touched(locks=names).mutexes == ("guard", "hash_lock", "mutex_lock")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("+#define KFREE_DRAIN_JIFFIES (1)", ("KFREE_DRAIN_JIFFIES",)),
        ("-	.timer_slack_ns = 50000,", ("timer_slack_ns",)),
        ("+	schedule_timeout(HZ / 10);", ("schedule_timeout", "HZ")),
        ("+	mod_delayed_work(system_wq, &w, msecs_to_jiffies(5));", ("mod_delayed_work", "msecs_to_jiffies")),
        ("+	usleep_range(5, 10);", ("usleep_range",)),
        ("+	hrtimer_start_expires(timer, mode);", ("hrtimer_start_expires",)),
        ("+	if (time_after(jiffies, last)) udelay(3);", ()),
        ("+	might_sleep();", ()),
        ("+	/* a timeout of 3 HZ */", ()),
        (" 	schedule_timeout(HZ);", ()),
    ],
)
def test_a_diff_tells_what_times_it_names(line: str, names: tuple[str, ...]) -> None:
    head = ["--- a/mm/x.c", "+++ b/mm/x.c", "@@ -1 +1 @@"]
    assert touches.waits([*head, line]) == names
    assert touches.waits([*head, line], known=[*head, line]) == ()


def test_patches_that_follow_an_rfc_are_meant_though_they_begin_again_at_v1() -> None:
    def sent(subject: str, day: int) -> str:
        return a_mail(subject).replace("\nSubject", f"\nDate: Mon, {day} Jun 2026 00:00:00 +0000\nSubject")

    rfc = [sent(f"[RFC PATCH v2 {n}/3] {n}", 1) for n in (1, 2, 3)]
    patches = [sent(f"[PATCH {n}/2] {n}", 2) for n in (1, 2)]
    assert subjects(*rfc, *patches) == ["[PATCH 1/2] 1", "[PATCH 2/2] 2"]
    assert len(subjects(*(one.replace(" v2", "") for one in rfc), *patches)) == 2  # of one version: not mixed
    assert len(subjects(*(one.replace("Mon, 1", "Mon, 3") for one in rfc), *patches)) == 3  # an RFC once more
