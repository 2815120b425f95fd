# SPDX-License-Identifier: GPL-2.0-or-later
"""Real reviews of mails with a tiny tree, which build and compare machine code: each once, whatever is killed."""

from __future__ import annotations

import email
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from kdelta.cli.main import run
from kdelta.errors import HostError, UserError
from kdelta.inbox import sources
from kdelta.kernel import toolchain
from kdelta.store.store import Store
from unit.guest.objects import with_all_compiled
from unit.inbox import stand_ins
from unit.kernel.tiny_tree import TREE, git

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or bool(toolchain.missing("x86_64")), reason="needs what kernels are built with"
)
REVIEWED = ["<2@example.org>", "<10@example.org>", "<13@example.org>"]
BROKEN = ["<15@example.org>", "<19@example.org>"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a tree, and a store of its own."""
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))
    with_all_compiled(tmp_path / "cache")
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KDELTA_STORE", raising=False)
    for name, text in TREE.items():
        (tmp_path / "linux" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "linux" / name).write_text(text)
    return tmp_path


def words(place: Path, source: Path, *more: str) -> list[str]:
    return ["watch", str(source), "--tree", str(place / "linux"), "--once", "--answers", str(place / "answers"), *more]


def killed_in_the_middle(place: Path, source: Path, reviewed: int) -> None:
    """Start to watch, and kill it (SIGKILL) when so many are reviewed and another one is begun."""
    argv = [sys.executable, "-c", "from kdelta.cli.main import main; main()", *words(place, source)]
    with Store() as store, subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            states = Counter(row.state for row in store.watched())
            if states["done"] >= reviewed and states["running"]:
                process.send_signal(signal.SIGKILL)
                return
            time.sleep(0.02)
    pytest.fail("it ended before it could be killed")


def killed_after(place: Path, source: Path, delay_s: float) -> bool:
    """Start to watch, and kill it (SIGKILL) so long after; whether it was still at work."""
    argv = [sys.executable, "-c", "from kdelta.cli.main import main; main()", *words(place, source)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(delay_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            return True
    return False


def check(source: Path) -> None:
    with Store() as store:
        rows = {row.item: row for row in store.watched(str(source.resolve()))}
        experiments = store.experiments()
    assert [rows[key].state for key in REVIEWED] == ["done"] * 3
    assert [rows[key].state for key in BROKEN] == ["failed"] * 2
    assert (rows["<4@example.org>"].state, rows["<17@example.org>"].state) == ("superseded", "waiting")
    assert len(rows) == 7
    made = Counter(row.id for row in experiments)
    assert sorted(made) == sorted(rows[key].experiment for key in REVIEWED)  # none twice, and no other
    assert all(row.tags == ("watch",) for row in experiments)
    assert "no diff found" in rows["<19@example.org>"].why and "fs/pipe.c" in rows["<15@example.org>"].why


@pytest.mark.full
@pytest.mark.parametrize("kind", ["maildir", "public_inbox"])
def test_twenty_mails_are_reviewed_once_each_though_it_is_killed_twice(kind: str, place: Path) -> None:
    source = getattr(stand_ins, kind)(place / "list", stand_ins.twenty())
    for reviewed in (0, 1):
        killed_in_the_middle(place, source, reviewed)
    assert run(words(place, source)) == 0
    check(source)
    before = sorted(path.stat().st_mtime_ns for path in (place / "answers").iterdir())
    assert run(words(place, source)) == 0  # nothing new: nothing is done
    check(source)
    assert sorted(path.stat().st_mtime_ns for path in (place / "answers").iterdir()) == before


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["maildir", "public_inbox"])
def test_twenty_mails_are_reviewed_once_each_whenever_it_is_killed(kind: str, seed: int, place: Path) -> None:
    """Nothing is asserted on when: at whatever instant it dies, what comes of it is the same."""
    source = getattr(stand_ins, kind)(place / "list", stand_ins.twenty())
    instants = Random(seed)
    killed = [killed_after(place, source, instants.uniform(0.2, 6.0)) for _ in range(10)]
    assert any(killed)
    assert run(words(place, source)) == 0
    check(source)
    for answer in (place / "answers").glob("*.eml"):
        assert email.message_from_bytes(answer.read_bytes())["In-Reply-To"] in REVIEWED
    assert len(list((place / "answers").glob("*.eml"))) == len(REVIEWED)


def test_the_answer_says_that_nothing_was_found_and_the_list_what_is_known(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = stand_ins.mbox(place / "box", stand_ins.twenty()[:3])
    assert run([*words(place, source), "--budget", "1s"]) == 0
    said = capsys.readouterr().err.splitlines()
    begun, ended = said.index("reviewing pipe: say more"), len(said) - 1
    assert any(line.startswith("configuring ") for line in said[begun:ended])
    assert said[ended].startswith("reviewed: pipe: say more")
    (answer,) = (place / "answers").glob("*.eml")
    mail = email.message_from_bytes(answer.read_bytes())
    assert (mail["In-Reply-To"], mail["To"]) == ("<2@example.org>", "bob@example.org")
    assert "machine code and data are identical: there is nothing to measure" in " ".join(answer.read_text().split())
    assert max(map(len, answer.read_text().partition("\n\n")[2].splitlines())) <= 72
    shutil.rmtree(place / "box", ignore_errors=True)
    stand_ins.mbox(place / "box", stand_ins.twenty())
    assert run([*words(place, source), "--budget", "1s"]) == 0
    assert "budget is spent" in capsys.readouterr().err
    assert run(["watch", str(source), "--list"]) == 0
    listed = capsys.readouterr().out
    assert "reviewed: pipe: say more, kdelta report" in listed and "superseded: fs: comments (by v2" in listed


def test_where_no_review_comes_to_its_end_the_exit_code_says_so(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = stand_ins.maildir(place / "list", stand_ins.twenty()[14:15])  # it applies to nothing
    assert run([*words(place, source), "-q"]) == 2
    assert (
        capsys.readouterr().err == f"kdelta: of 1 review none came to its end; kdelta watch {source} --list says why\n"
    )
    assert run(["watch", str(source), "--list"]) == 0
    assert "failed: " in capsys.readouterr().out
    assert run(words(place, source)) == 0  # nothing new, nothing that failed


def test_what_cannot_be_watched_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    box = stand_ins.mbox(place / "box", stand_ins.twenty()[:1])
    for more in (["--since", "soon"], ["--budget", "much"], ["--every", "0"]):
        assert run([*words(place, box), *more]) == 1
    assert run(["watch", str(box), "--once"]) == 1
    assert run(["watch", str(place / "nothing"), "--tree", "."]) == 1
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kdelta: ")]
    assert len(told) == 5
    assert not os.path.exists(place / "answers")


@pytest.mark.parametrize(
    "wrong", [["--tree", "nosuch"], ["--tree", "."], ["--config", "nosuch.config"], ["--config", "=y"]]
)
def test_a_tree_or_config_that_is_none_makes_no_failure_of_the_series(
    wrong: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each series of the list was "failed", and not tried again with the right name."""
    source = stand_ins.mbox(place / "box", stand_ins.twenty()[:2])
    os.chdir(place)
    assert run([*words(place, source), *wrong]) == 1
    assert capsys.readouterr().err.startswith("kdelta: ")
    with Store() as store:
        assert store.watched() == []


def test_a_tree_that_is_away_for_a_while_makes_no_failure_of_the_series(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, tree, away = stand_ins.maildir(place / "list", []), place / "linux", place / "away"
    slept = 0

    def sleep(_: float) -> None:
        nonlocal slept
        slept += 1
        if slept == 1:
            tree.rename(away)
            shutil.rmtree(place / "list")
            stand_ins.maildir(place / "list", stand_ins.twenty()[:2])
        elif slept == 2:
            with Store() as store:
                assert store.watched() == []
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    run([word for word in words(place, source, "-q") if word != "--once"])
    away_line, *_, ending = capsys.readouterr().err.strip().splitlines()
    assert away_line == f"kdelta: src:{tree}: no such directory; tried again every 5m"
    assert ending == "kdelta: interrupted: what was reviewed stays reviewed; continue with the same command"


def test_what_fails_for_a_while_is_told_once_and_tried_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = OSError(errno.ESTALE, "Stale file handle", "list/new")
    script: list[Exception | None] = [
        None, stale, stale, HostError("store: locked by another process"), None, stale, UserError("too many at once"),
    ]  # fmt: skip
    told = iter(script)

    def items(*_: object) -> tuple[()]:
        if (error := next(told)) is not None:
            raise error
        return ()

    source = stand_ins.maildir(place / "list", [])
    slept: list[float] = []
    monkeypatch.setattr(sources, "items", items)
    monkeypatch.setattr("time.sleep", slept.append)
    forever = [word for word in words(place, source, "-q", "--every", "7m") if word != "--once"]
    assert run(forever) == 1  # what can never go away ends it
    assert len(slept) == len(script) - 1 and set(slept) == {420.0}
    assert capsys.readouterr().err.splitlines() == [
        "kdelta: list/new: Stale file handle; tried again every 7m",
        "kdelta: store: locked by another process; tried again every 7m",
        "kdelta: list/new: Stale file handle; tried again every 7m",
        "kdelta: too many at once",
    ]
    for more in ([], ["--once"]):  # what could never be read, and where the user waits for it
        told = iter([stale])
        assert run([*forever, *more]) == 2


def branch(place: Path) -> Path:
    """The tiny tree as a repository with one commit."""
    tree = place / "linux"
    git(tree, "init", "-q", "-b", "main")
    for name, value in (("user.name", "a"), ("user.email", "a@example.org"), ("commit.gpgsign", "false")):
        git(tree, "config", name, value)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "first")
    return tree


def commit(tree: Path, name: str, subject: str) -> str:
    (tree / name).write_text(f"/* {subject} */\n" + (tree / name).read_text())
    git(tree, "commit", "-q", "-a", "-m", subject)
    return git(tree, "rev-parse", "HEAD").strip()


def test_commits_of_a_branch_are_reviewed_from_when_it_is_watched(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = branch(place)
    words = ["watch", f"{tree}@main", "--once", "--answers", str(place / "answers")]
    assert run(words) == 0
    made = [commit(tree, "fs/pipe.c", "pipe: a"), commit(tree, "fs/other.c", "other: b")]
    assert run(words) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("reviewed: ")]
    assert [line.rpartition(", kdelta report ")[0] for line in said] == [
        f"reviewed: {subject}: Nothing was measured: machine code and data are identical"
        for subject in ("pipe: a", "other: b")
    ]
    answers = [path.read_text() for path in sorted((place / "answers").glob("*.txt"))]
    for one, text in zip(reversed(made), answers, strict=True):  # by name: other before pipe
        assert one[:12] in (above := text.partition("Kernels\n")[0]) and one not in above
    with Store() as store:
        rows = store.watched(f"{tree.resolve()}@main")
        assert [(row.item, row.state) for row in rows[1:]] == [(one, "done") for one in made]
        assert rows[0].state == "start" and len(store.experiments()) == 2
    assert run(["watch", f"{tree}@main", "--list"]) == 0
    assert "watched from here: first" in capsys.readouterr().out


@pytest.mark.full
def test_b4_checks_each_patch_of_a_branch_with_kdelta(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = branch(place)
    program = Path(sys.executable).parent
    monkeypatch.setenv("HOME", str(place))
    git(tree, "config", "b4.prep-perpatch-check-cmd", f"{program}/kdelta review - --tree . --format b4 --quiet")

    def b4(*words: str) -> str:
        done = subprocess.run([str(program / "b4"), *words], cwd=tree, check=True, capture_output=True, text=True)
        return done.stdout + done.stderr

    b4("-n", "prep", "-n", "two", "-f", "main")
    for name in ("fs/pipe.c", "fs/other.c"):
        commit(tree, name, f"{name}: comment")
    assert "Success: 2, Warning: 0, Error: 0" in b4("prep", "--check")
    (tree / "fs/pipe.c").write_text("#error not finished\n")
    git(tree, "commit", "-q", "-a", "-m", "fs/pipe.c: broken")
    said = b4("prep", "--check")
    assert "Success: 2, Warning: 0, Error: 1" in said and "not finished" in said
