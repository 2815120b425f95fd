# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisection of real kernels: a git tree made here from Debian's source, with one costly commit and some broken ones.

KDELTA_TEST_COMMITS (default 32) makes a shorter history.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kdelta import paths
from kdelta.kernel import debian

pytestmark = pytest.mark.full

COMMITS = int(os.environ.get("KDELTA_TEST_COMMITS", "32"))
CULPRIT = COMMITS * 3 // 4
BROKEN = frozenset(range(COMMITS // 2 - 1, COMMITS // 2 + 2)) - {CULPRIT - 1, CULPRIT}  # around the first commit tested
SIGNATURE = "pipe_write(struct kiocb *iocb, struct iov_iter *from)\n{\n"
COST = """static noinline void pipe_costs(void)
{
	int i;

	for (i = 0; i < %d; i++)
		barrier();
}

"""


class Tree:
    """A git tree whose fs/pipe.c changes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pipe = root / "fs" / "pipe.c"
        self.hashes: list[str] = []

    def git(self, *words: str) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        env |= {f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in (
            ("NAME", "A Tester"), ("EMAIL", "tester@example.org"), ("DATE", f"2026-01-01T00:{len(self.hashes):02}:00Z"),
        )}  # fmt: skip
        argv = ["git", "-C", str(self.root), "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True, env=env).stdout.strip()

    def commit(self, subject: str, *files: str) -> None:
        self.git("add", "--force", *(files or ("--all",)))  # Debian's .gitignore hides the source
        self.git("commit", "-q", "-m", subject)
        self.hashes.append(self.git("rev-parse", "HEAD"))


def make_tree(root: Path, loops: int) -> Tree:
    """COMMITS commits after the first: comments in fs/pipe.c, a loop of ``loops`` turns in pipe_write, some errors."""
    source = debian.fetch_source("6.12")
    root.mkdir()
    subprocess.run(["tar", "-xf", source, "-C", root, "--strip-components=1"], check=True)
    tree = Tree(root)
    tree.git("init", "-q")
    tree.commit("the release")
    start = tree.pipe.read_text()
    head, found, tail = start.partition(SIGNATURE)
    assert found, "pipe_write looks different in this release"
    function = head.rindex("static ssize_t")
    for number in range(1, COMMITS + 1):
        text = start
        if number >= CULPRIT:
            text = head[:function] + COST % loops + head[function:] + found + "\tpipe_costs();\n" + tail
        text += f"/* change {number} */\n" + ("#error not finished\n" if number in BROKEN else "")
        tree.pipe.write_text(text)
        tree.commit(f"pipe: change {number}", "fs/pipe.c")
    return tree


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return make_tree(tmp_path_factory.mktemp("bisect") / "linux", 1000)


Program = Callable[..., subprocess.CompletedProcess[str]]


def check(found: dict[str, Any], tree: Tree) -> None:
    assert not found["same_why"]
    assert [commit["hash"] for commit in found["suspects"]] == [tree.hashes[CULPRIT]]
    assert found["suspects"][0]["subject"] == f"pipe: change {CULPRIT}"
    assert found["parent"] == tree.hashes[CULPRIT - 1]
    assert {name for name, _ in found["skipped"]} <= {tree.hashes[number] for number in BROKEN}
    assert found["confirmed"]["verdict"] == "regressed"


def test_exact_bisection_finds_the_costly_commit_and_confirms_it(kdelta: Program, tree: Tree) -> None:
    ends = f"src:{tree.root}@{tree.hashes[0]}", f"src:{tree.root}@{tree.hashes[-1]}"
    found = json.loads(kdelta("bisect", *ends, "--case", "pipe", "--json", "-q", timeout=7200).stdout)
    check(found, tree)
    assert found["skipped"], "the first commit in the middle does not build"
    assert len(found["tested"]) <= 2 + COMMITS.bit_length() + 1
    functions = {delta["function"] for delta in found["confirmed"]["because"]}
    assert functions & {"pipe_costs", "pipe_write"}, found["confirmed"]["because"]
    report = kdelta("report", found["confirmation"]).stdout
    assert "pipe" in report and "(R)" in report


def test_a_program_is_bisected_as_a_case_is(kdelta: Program, tree: Tree) -> None:
    ends = f"src:{tree.root}@{tree.hashes[0]}", f"src:{tree.root}@{tree.hashes[-1]}"
    program = ("--", "sh", "-c", "seq 2000 | cat")  # which writes to a pipe twice or more
    found = json.loads(kdelta("bisect", *ends, "--json", "-q", *program, timeout=7200).stdout)
    check(found, tree)
    assert found["case"] == "sh -c 'seq 2000 | cat'"


def test_equal_ends_are_said_first(kdelta: Program, tree: Tree) -> None:
    ends = f"src:{tree.root}@{tree.hashes[0]}", f"src:{tree.root}@{tree.hashes[2]}"
    said = kdelta("bisect", *ends, "--case", "pipe", "-q", timeout=3600).stdout
    assert said.startswith("GOOD and BAD do not differ in pipe, instructions")


def test_a_killed_bisection_goes_on(kdelta: Program, tree: Tree, tmp_path: Path) -> None:
    ends = f"src:{tree.root}@{tree.hashes[0]}", f"src:{tree.root}@{tree.hashes[-1]}"
    program = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]
    env = {**os.environ, "KDELTA_STATE": str(tmp_path / "state"), "KDELTA_CACHE": str(paths.cache_dir())}
    for boots in (1, 4):
        words = ["bisect", *ends, "--case", "pipe"] if boots == 1 else ["bisect", "--resume", "last"]
        with subprocess.Popen(
            [*program, *words], env=env, stderr=subprocess.DEVNULL, start_new_session=True
        ) as running:
            while running.poll() is None and _boots(kdelta) < boots:
                time.sleep(0.5)
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
    check(json.loads(kdelta("bisect", "--resume", "last", "--json", "-q", timeout=7200).stdout), tree)


def _boots(kdelta: Program) -> int:
    rows = json.loads(kdelta("history", "--json").stdout)
    listed = rows["experiments"] if isinstance(rows, dict) else rows
    return sum(row["boots_done"] for row in listed)


def test_git_drives_the_search_itself(kdelta: Program, tree: Tree) -> None:
    """git bisect run on a worktree of the tree, with the levels of a comparison."""
    ends = f"src:{tree.root}@{tree.hashes[0]}", f"src:{tree.root}@{tree.hashes[-1]}"
    compared = json.loads(kdelta("compare", *ends, "--exact", "--case", "pipe", "--json", "-q", timeout=3600).stdout)
    name = compared["experiment"]["id"]
    for number, code in ((CULPRIT - 1, 0), (CULPRIT, 1), (min(BROKEN), 125)):
        kernel = f"src:{tree.root}@{tree.hashes[number]}"
        kdelta("bisect-step", kernel, "--case", "pipe", "--like", name, "-q", check=code, timeout=3600)
    kdelta("bisect-step", "--case", "no-such-case", "--like", name, check=128)


def test_timed_bisection_finds_a_large_cost(kdelta: Program, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Emulated time resolves large effects only: the loop is long."""
    slow = make_tree(tmp_path_factory.mktemp("timed") / "linux", 300_000)
    ends = f"src:{slow.root}@{slow.hashes[0]}", f"src:{slow.root}@{slow.hashes[-1]}"
    found = json.loads(kdelta("bisect", *ends, "--timed", "--case", "pipe", "--json", "-q", timeout=14_400).stdout)
    check(found, slow)
