# SPDX-License-Identifier: GPL-2.0-or-later
"""A packed work tree: git compares it by size and time, and takes the user's own changes for what they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from kdelta.guest import git_index, here
from kdelta.guest.image import Node

NOW_S = 1_790_000_000


def git(folder: Path, *words: str, **env: str) -> str:
    own = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    argv = ["git", "-c", "safe.directory=*", *words]
    full = {**os.environ, **own, **env}
    return subprocess.run(argv, cwd=folder, env=full, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A clone made in an instant: each file is as old as the index, so git would read it again."""
    top = tmp_path / "made"
    top.mkdir()
    git(top, "init", "-q")
    for name in ("one", "two", "three"):
        (top / name).write_text(f"{name}\n")
        os.utime(top / name, (NOW_S, NOW_S))
    git(top, "add", ".")
    git(top, "commit", "-qm", "first")
    os.utime(top / ".git" / "index", (NOW_S, NOW_S))
    return top


def in_a_guest(nodes: tuple[tuple[str, Node], ...], top: Path, place: Path) -> Path:
    """The tree as a guest has it: other inodes, whole seconds, and nothing where it was."""
    for path, node in nodes:
        to = place / Path(path).relative_to(top)
        to.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(node.source, Path):
            shutil.copyfile(node.source, to)
            os.utime(to, (int(node.source.stat().st_mtime),) * 2)
        elif node.source:
            to.write_bytes(node.source)
            os.utime(to, (0, 0))
        else:
            to.mkdir(exist_ok=True)
    return place


def test_files_that_did_not_change_are_not_read(tree: Path, tmp_path: Path) -> None:
    before = (tree / ".git" / "index").read_bytes()
    guest = in_a_guest(here.find(tree).nodes, tree, tmp_path / "guest")
    (guest / "two").write_text("owt\n")  # who reads it sees that
    os.utime(guest / "two", (NOW_S, NOW_S))
    assert git(guest, "status", "--porcelain", **git_index.ENVIRONMENT) == ""
    assert git(guest, "status", "--porcelain", GIT_OPTIONAL_LOCKS="0") == " M two\n", "git alone reads them all"
    assert (tree / ".git" / "index").read_bytes() == before, "the user's index is as it was"


@pytest.mark.parametrize("later_s", [0.0, 1.1])  # the index has times of change in seconds: one may end meanwhile
def test_what_the_user_changed_is_seen_as_here(tree: Path, tmp_path: Path, later_s: float) -> None:
    time.sleep(later_s)
    (tree / "one").write_text("eno\n")  # the same size, and as old as the index
    os.utime(tree / "one", (NOW_S, NOW_S))
    (tree / "three").write_text("longer\n")
    (tree / "new").write_text("x")
    guest = in_a_guest(here.find(tree).nodes, tree, tmp_path / "guest")
    wanted = " M one\n M three\n?? new\n"
    assert git(guest, "status", "--porcelain", **git_index.ENVIRONMENT) == wanted
    assert git(tree, "status", "--porcelain") == wanted


def test_the_same_files_are_packed_as_the_same_bytes(tree: Path) -> None:
    assert here.find(tree).nodes == here.find(tree).nodes
    index = dict(here.find(tree).nodes)[str(tree / ".git" / "index")]
    assert isinstance(index.source, bytes) and index.source.startswith(b"DIRC")


def test_a_worktree_has_an_index_elsewhere(tree: Path, tmp_path: Path) -> None:
    git(tree, "worktree", "add", "-q", str(tmp_path / "other"))
    index = tree / ".git" / "worktrees" / "other" / "index"
    assert isinstance(dict(here.find(tmp_path / "other").nodes)[str(index)].source, bytes)
