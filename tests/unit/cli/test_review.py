# SPDX-License-Identifier: GPL-2.0-or-later
"""A review is refused before anything is built, or becomes one comparison with cases chosen by the series."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kdelta.cli import _again, _beside, _patching, _reply, _series, compare
from kdelta.cli._budget import Budget
from kdelta.cli.main import run
from kdelta.errors import RegressionFound, UserError
from kdelta.kernel import steps
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Beside, Experiment, PlannedBoot
from kdelta.paths import state_dir
from kdelta.store.store import Store
from unit.kernel.test_cover import BASE, SERIES
from unit.kernel.test_thread import commit, patch_of, repository
from unit.serve.serve_store import boot, experiment, filled

Asked = list[tuple[tuple[str, ...], compare.Args]]
Begun = Callable[[Experiment], None]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What compare was called with."""
    found: Asked = []

    def called(kernels: tuple[str, ...], args: compare.Args, _begun: Begun, _budget: Budget) -> int:
        found.append((kernels, args))
        return 0

    monkeypatch.setenv("KDELTA_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(compare, "run", called)
    (tmp_path / "a series +1,x.mbox").write_text(SERIES)
    return found


def test_mails_become_the_tree_without_and_with_them(
    asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    series = tmp_path / "a series +1,x.mbox"
    assert run(["review", str(series), "--tree", "debian:6.12", "--each", "--format", "terminal"]) == 0
    ((kernels, args),) = asked
    base, patched = (parse_kernel(text) for text in kernels)
    assert (base.kind, base.target, base.patches) == ("src-debian", "6.12", ())
    assert "fewer wakeups" in Path(patched.patches[0].path).read_text()  # kept under a name that the grammar can hold
    assert args.exact and args.cases == ("auto",) and args.each
    assert "12.5% faster" in capsys.readouterr().out


def test_the_options_of_a_tree_are_those_of_both_kernels(asked: Asked, tmp_path: Path) -> None:
    series = tmp_path / "a series +1,x.mbox"
    words = ["--tree", 'debian:6.12,arch=arm64,cmdline="init_on_alloc=0"', "--config", "X=y"]
    assert run(["review", str(series), *words]) == 0
    ((kernels, _),) = asked
    base, patched = (parse_kernel(text) for text in kernels)
    assert (len(base.patches), len(patched.patches)) == (0, 1)
    assert {(one.arch, one.cmdline, one.config) for one in (base, patched)} == {("arm64", "init_on_alloc=0", "X=y")}


def test_a_program_behind_the_series_is_measured_beside_the_chosen_cases(asked: Asked, tmp_path: Path) -> None:
    series = tmp_path / "a series +1,x.mbox"
    words = ["--env", "A=1", "--env", "B=2", "--setup", "make x", "--", "./bench", "--fast", "1"]
    assert run(["review", str(series), "--tree", "debian:6.12", *words]) == 0
    ((_, args),) = asked
    assert (args.program, args.env, args.setup) == (("./bench", "--fast", "1"), ("A=1", "B=2"), "make x")
    assert args.cases == ("auto",)


def test_cases_are_chosen_among_the_suites_that_are_named(asked: Asked, tmp_path: Path) -> None:
    series = str(tmp_path / "a series +1,x.mbox")
    assert run(["review", series, "--tree", "debian:6.12", "--suite", "syscalls", "--suite", "contention"]) == 0
    ((_, args),) = asked
    assert (args.cases, args.suites) == (("auto",), ("syscalls", "contention"))
    said = _reply.command("<0@b>", "debian:6.12", {"suites": args.suites})
    assert said.endswith("--tree debian:6.12 --suite syscalls --suite contention")


def test_a_patch_that_does_not_fit_is_named_as_the_user_does(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(kernels: tuple[str, ...], *_: object) -> int:
        raise UserError(f"patch {kernels[1].partition('+')[2]}: fs/pipe.c hunk 1 does not apply")

    monkeypatch.setattr(compare, "run", refuse)
    series = tmp_path / "a series +1,x.mbox"
    assert run(["review", str(series), "--tree", "debian:6.12"]) == 1
    assert capsys.readouterr().err == f"kdelta: patch {series}: fs/pipe.c hunk 1 does not apply\n"


@pytest.mark.parametrize(
    ("title", "label"),
    [
        ("pipe: fewer wakeups", "pipe-fewer-wakeups"),
        ("mm/mlock: do not dirty mm->locked_vm where nothing changes", "mm-mlock-do-not"),
        ("x" * 99, "x" * 20),
        ("Größe, 日本", "Gr-e"),
        ("日本", "series"),
    ],
)
def test_a_kernel_with_a_series_is_called_by_its_subject(title: str, label: str) -> None:
    assert _series.slug(title) == label


def test_the_label_is_the_subject_and_says_neither_file_nor_digest(asked: Asked, tmp_path: Path) -> None:
    named, bare = tmp_path / "a series +1,x.mbox", tmp_path / "mine.patch"
    bare.write_text(SERIES[SERIES.index("diff --git") :])
    for series, stem in ((named, "pipe-fewer-wakeups"), (bare, "mine")):
        assert run(["review", str(series), "--tree", "debian:6.12"]) == 0
        assert Path(parse_kernel(asked[-1][0][1]).patches[0].path).stem == stem
    named.write_text(SERIES.replace("fewer wakeups", "fewer wake-ups"))
    assert run(["review", str(named), "--tree", "debian:6.12"]) == 0
    assert asked[-1][0][1] != asked[0][0][1]  # another version of it is another kernel


def test_the_base_commit_of_the_mails_is_taken_from_the_repository(
    asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree, series = tmp_path / "linux", tmp_path / "a series +1,x.mbox"
    base = repository(tree)
    assert run(["review", str(series), "--tree", str(tree)]) == 1
    assert f"lacks the series' base-commit {BASE[:12]}" in capsys.readouterr().err
    series.write_text(SERIES.replace(BASE, base))
    assert run(["review", str(series), "--tree", str(tree)]) == 0
    assert asked[0][0][0] == f"src:{tree}@{base}"
    assert run(["review", str(series), "--tree", f"{tree}@v6.12"]) == 0
    assert asked[1][0][0] == f"src:{tree}@v6.12"


def test_prerequisites_come_from_the_repository_and_are_part_of_the_base(
    asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree, series = tmp_path / "linux", tmp_path / "a series +1,x.mbox"
    base = repository(tree)
    needed = [commit(tree, "pipe.c", f"int {name};\n" * 3, f"pipe: {name}") for name in ("a", "b")]
    ids = [patch_of(tree, one) for one in needed]
    subprocess.run(["git", "-C", str(tree), "reset", "-q", "--hard", base], check=True)
    subprocess.run(["git", "-C", str(tree), "branch", "theirs", needed[-1]], check=True)
    lines = "".join(f"prerequisite-patch-id: {one}\n" for one in ids)
    series.write_text(SERIES.replace(f"base-commit: {BASE}\n", f"base-commit: {base}\n{lines}"))
    assert run(["review", str(series), "--tree", str(tree)]) == 0
    without, patched = (parse_kernel(text) for text in asked[0][0])
    assert len(without.patches) == 1 and patched.patches[:1] == without.patches and len(patched.patches) == 2
    mails = Path(without.patches[0].path).read_text()
    assert mails.index("pipe: a") < mails.index("pipe: b")
    series.write_text(series.read_text().replace(ids[0], "f" * 40))
    assert run(["review", str(series), "--tree", str(tree)]) == 1
    assert "lacks 1 of 2 patches" in capsys.readouterr().err


def test_a_patch_that_stands_on_the_branch_is_held_against_its_parent(asked: Asked, tmp_path: Path) -> None:
    tree, series = tmp_path / "linux", tmp_path / "one.patch"
    repository(tree)
    first = commit(tree, "pipe.c", "int a;\n" * 3, "pipe: a")
    second = commit(tree, "pipe.c", "int b;\n" * 3, "pipe: b")
    show = ["git", "-C", str(tree), "format-patch", "-1", "--stdout", second]
    series.write_bytes(subprocess.run(show, check=True, capture_output=True).stdout)
    assert run(["review", str(series), "--tree", str(tree)]) == 0
    assert asked[0][0] == (f"src:{tree}@{first}", f"src:{tree}@{second}")


def test_a_reply_is_written_below_it_what_was_checked_beside_and_handed_to_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    series, out = tmp_path / "series.mbox", tmp_path / "reply"
    series.write_text(SERIES)
    filled(tmp_path).close()
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for who in ("GIT_AUTHOR", "GIT_COMMITTER"):  # a machine without a domain has no address for git to guess
        monkeypatch.setenv(f"{who}_NAME", "K")
        monkeypatch.setenv(f"{who}_EMAIL", "k@example.org")
    words = ["review", str(series), "--tree", "debian:6.12", "--reply", str(out), "--send"]
    assert run(words) == 1
    assert "no mail with a Message-ID" in capsys.readouterr().err

    def measured(_kernels: tuple[str, ...], _args: compare.Args, begun: Begun, _budget: Budget) -> int:
        with Store() as store:
            begun(store.experiment("first"))
        raise RegressionFound("--fail-on regressed")

    checked = (
        _beside.Checked(
            text="The series touches locks (spin_lock):\n\n------\nnone held longer\n",
            kept=Beside(what="locks", experiment="x"),
        ),
    )
    monkeypatch.setattr(compare, "run", measured)
    monkeypatch.setattr(_beside, "checks", lambda *_: checked)
    series.write_text(SERIES.replace("Subject: [PATCH 0", "Message-ID: <0@b>\nSubject: [PATCH 0"))
    assert run([*words, "--fail-on", "regressed"]) == 4
    mail = out.read_text()
    assert "This patch, applied to " in mail.partition("\n\n")[2].splitlines()[0]
    assert "In-Reply-To: <0@b>" in mail and "12.5% faster" in mail and "none held longer" in mail
    assert max(map(len, mail.partition("\n\n")[2].splitlines())) <= 72 and "\n------\n" not in mail
    fetched = "b4 mbox -o . -n series.mbox 0@b"
    assert fetched in mail and "kdelta review series.mbox --tree debian:6.12" in mail and str(tmp_path) not in mail
    said = capsys.readouterr()
    assert "Dry-OK" in said.err and "nothing was sent" in said.err
    assert run(["review", str(series), "--tree", "debian:6.12", "--send"]) == 1
    assert "--send sends what --reply FILE writes" in capsys.readouterr().err


def test_a_range_is_two_commits_of_its_repository(
    asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = tmp_path / "linux"
    base = repository(tree)
    commit(tree, "pipe.c", "int a(void) { return kfree(b); }\n", "pipe: a")
    assert run(["review", f"{base}..HEAD", "--tree", str(tree)]) == 0
    assert asked[0][0] == (f"src:{tree}@{base}", f"src:{tree}@HEAD")
    commit(tree, "pipe.c", "int a(void) { return 0; }\n", "pipe: b\n\nWrites are 7 % faster.")
    assert _series.read(f"{base}..HEAD", str(tree), "").cover.claims == ("Writes are 7 % faster.",), "as of mails"
    assert run(["review", "v6.11..mine", "--tree", "debian:6.12"]) == 1
    assert "a range needs the repository" in capsys.readouterr().err
    assert run(["review", "v6.11..mine", "--tree", str(tree)]) == 1
    assert "no commit 'v6.11'" in capsys.readouterr().err


def test_the_commits_of_a_range_are_told_apart_as_patches(
    asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was refused: "src:linux@mine is not a source with a series"."""
    tree = tmp_path / "linux"
    base = repository(tree)
    for number in (1, 2):
        commit(tree, "pipe.c", f"int a(void) {{ return {number}; }}\n", f"pipe: {number}")
    assert run(["review", f"{base}..HEAD", "--tree", str(tree), "--each"]) == 0
    (before, after), args = asked[0]
    assert before == f"src:{tree}@{base}" and after.startswith(f"{before}+") and args.each
    mails = steps.load_patches(parse_kernel(after).patches)
    assert [one.mail.subject for one in mails] == ["pipe: 1", "pipe: 2"]
    assert _patching.named((before, after), None, True)
    assert run(["review", "HEAD..HEAD", "--tree", str(tree), "--each"]) == 1
    assert "0 commits; 1 to 100 can be told apart" in capsys.readouterr().err


def test_what_is_no_series_is_refused(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cover").write_text("Subject: [PATCH 0/2] nothing yet\n\nhello\n")
    for series, said in (
        ("absent.mbox", "no such file"),
        (str(tmp_path / "cover"), "no diff found"),
        ("-", "is empty"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
        assert run(["review", series, "--tree", "debian:6.12"]) == 1
        got = capsys.readouterr().err.strip()
        assert said in got and "\n" not in got
    assert asked == []


def test_the_same_command_goes_on_with_what_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'kdelta.sqlite'}")
    monkeypatch.setattr(sys, "argv", ["kdelta", "review", "x.mbox", "--tree", "."])
    begun = experiment("begun", ("6.12", "7.0"), command="kdelta review x.mbox --tree .")
    names = [kernel.spec for kernel in begun.kernels]
    with Store() as store:
        store.create(begun)
    found = _again.begun(names, each=False)
    assert found is not None and found.id == "begun"
    assert _again.begun([names[0], "debian:9.9"], each=False) is None  # the mails are others by now
    assert _again.begun(["src:./linux", "src:./linux+a.mbox"], each=False) is None  # which ./linux?
    with Store() as store:
        for block in range(2):
            for slot in range(2):
                store.save_boot("begun", boot(block, slot, plan=PlannedBoot(block=block, slot=slot, kernel=slot)))
    assert _again.begun(names, each=False) is None
    assert _again.begun(names, each=False, finished=True) is not None


def test_a_series_may_come_through_a_pipe_and_is_no_directory(
    asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(pipe.write_text, SERIES)
        assert run(["review", str(pipe), "--tree", "debian:6.12"]) == 0
        written.result()
    assert "fewer wakeups" in Path(parse_kernel(asked[0][0][1]).patches[0].path).read_text()
    assert run(["review", str(tmp_path), "--tree", "debian:6.12"]) == 1
    assert f"reviewed: kdelta watch {tmp_path}\n" in capsys.readouterr().err
    assert run(["review", str(tmp_path / "none"), "--tree", "debian:6.12"]) == 1
    assert "no such file" in capsys.readouterr().err


def test_a_map_has_half_of_the_time_and_a_build_none_of_it() -> None:
    now = [0.0]
    budget = Budget(60.0, lambda: now[0])
    now[0] = 500.0  # it was built
    budget.begin()
    assert (budget.left_s(), budget.map_is_over()) == (60.0, False)
    now[0] = 530.0
    assert (budget.left_s(), budget.map_is_over()) == (30.0, True)
    now[0] = 999.0
    assert budget.left_s() == 0
    assert (Budget(None).left_s(), Budget(None).map_is_over()) == (None, False)


def test_a_reply_names_no_directory_of_this_machine_nor_of_who_built_before() -> None:
    kept = _reply._public("patch /tmp/state-of-another/reviews/edb8278b/fs.mbox: fs/Kconfig hunk 1 applied")
    assert kept == "patch fs.mbox: fs/Kconfig hunk 1 applied"
    both = _reply._public(f"src:/srv/linux+{state_dir()}/reviews/0123abcd/my.mbox")
    assert both == "src:linux+my.mbox"
    assert (
        _reply._public("/srv/a/linux@for/next (0123) with x; guest config")
        == "linux@for/next (0123) with x; guest config"
    )
    assert _reply._public("src:/srv/linux@v6.9+/tmp/a.patch") == "src:linux@v6.9+a.patch"


def test_a_reply_says_how_its_program_was_run() -> None:
    """The command had the program alone, without its files and what was set up for it."""
    given = {"files": ("/srv/me/data", "b:/tmp/b"), "setup": "mkdir x", "cold": True, "expect_status": 3, "smp": 1}
    said = _reply.command("<0@b>", "debian:6.12", {**given, "program": ("/srv/me/bench", "data", "/dev/null")})
    assert said.endswith(
        "--file data --file b:/tmp/b --setup 'mkdir x' --cold --expect-status 3 -- bench data /dev/null"
    )
    assert "--cold" not in _reply.command("<0@b>", "debian:6.12", given), "options of a program that is none"
