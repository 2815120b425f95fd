# SPDX-License-Identifier: GPL-2.0-or-later
"""A tarball is known by its content; what of a git tree cannot be had is told as what it is."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from kdelta import digests, vouched
from kdelta.errors import UserError
from kdelta.kernel import history
from kdelta.kernel.origin import look, tarball, uncommitted
from unit.kernel.git_history import kernel_history


def test_a_tarball_is_summed_again_only_where_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.tar.xz"
    path.write_bytes(b"one")
    monkeypatch.setattr(vouched, "_FRESH_NS", -(1 << 62))  # as if it were old
    first = tarball(path, "debian-x", "Debian x", (6, 12))
    monkeypatch.setattr(digests, "of_file", lambda _: pytest.fail("read again"))
    assert tarball(path, "debian-x", "Debian x", (6, 12)) == first
    monkeypatch.setattr(digests, "of_file", lambda one: hashlib.sha256(one.read_bytes()).hexdigest())
    path.write_bytes(b"two")
    assert tarball(path, "debian-x", "Debian x", (6, 12)).id != first.id
    (tmp_path / ".s.tar.xz.seen").write_text(vouched.stamp((path,)) + "no sum")
    assert tarball(path, "debian-x", "Debian x", (6, 12)).id == f"tar:{hashlib.sha256(b'two').hexdigest()}"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a tree away")
def test_a_tree_of_another_user_is_told_with_what_makes_git_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a container mounts a checkout: it was "no commit 'v6.1' in a git repository there"."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("HOME", str(tmp_path))
    tree = kernel_history(tmp_path / "linux")
    for path in (tree, tree / ".git"):
        os.chown(path, 65534, 65534)
    remedy = f"another user; git reads it once you say: git config --global --add safe.directory {tree}"
    with pytest.raises(UserError, match=remedy):
        history.commit(str(tree), "v6.1")
    with pytest.raises(UserError, match=remedy):
        look(str(tree), "v6.1")


def git(tree: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    return subprocess.run(["git", "-C", str(tree), *who, *words], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("options", [(), ("-a", "-m", "of a key")])
def test_a_tag_that_is_no_commit_is_told_as_what_it_is(tmp_path: Path, options: tuple[str, ...]) -> None:
    """``kdelta bisect`` ended in a traceback."""
    tree = kernel_history(tmp_path / "linux")
    git(tree, "tag", *options, "v6.13", git(tree, "rev-parse", "HEAD:fs/read_write.c").strip())
    for asked in (history.commit, look):
        with pytest.raises(UserError, match=r"'v6.13' names a blob, not a commit"):
            asked(str(tree), "v6.13")


def test_where_a_clone_is_shallow_a_missing_commit_may_be_had(tmp_path: Path) -> None:
    whole, shallow = kernel_history(tmp_path / "linux"), tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{whole}", str(shallow))
    remedy = f"the clone is shallow, the rest comes with: git -C {shallow} fetch --unshallow --tags"
    with pytest.raises(UserError, match=f"no commit 'v6.1' .*; {remedy}"):
        history.commit(str(shallow), "v6.1")
    with pytest.raises(UserError, match=remedy):
        history.tags(str(shallow), "v6.1", "v6.12")
    git(shallow, "fetch", "-q", "--depth", "1", f"file://{whole}", "refs/tags/v6.1:refs/tags/v6.1")
    with pytest.raises(UserError, match=f"not on the first-parent line .*; {remedy}"):
        history.line(str(shallow), "v6.1", "HEAD")
    with pytest.raises(UserError, match=r"no commit 'v7' in this repository$"):
        history.commit(str(whole), "v7")


def test_what_is_not_committed_is_seen_and_left_alone(tmp_path: Path) -> None:
    tree = kernel_history(tmp_path / "linux")
    (tree / "new.c").write_text("int a;\n")
    assert uncommitted(tree) == 0
    (tree / "fs/read_write.c").write_text("int b;\n")
    index = (tree / ".git/index").read_bytes()
    assert uncommitted(tree) == 1
    assert (tree / ".git/index").read_bytes() == index
    git(tmp_path, "clone", "-q", "--bare", str(tree), str(tmp_path / "bare"))
    assert uncommitted(tmp_path / "bare") == uncommitted(tmp_path) == 0


def test_a_change_in_the_second_of_the_commit_is_seen(tmp_path: Path) -> None:
    """git reads a file that looks as before only where it is no older than the index: a copy has to be as old."""
    tree = kernel_history(tmp_path / "linux")
    git(tree, "config", "core.trustctime", "false")
    git(tree, "config", "core.checkStat", "minimal")
    file, index = tree / "fs/read_write.c", tree / ".git/index"
    os.utime(file, ns=(10**18, 10**18))
    git(tree, "update-index", "--refresh")
    os.utime(index, ns=(10**18, 10**18))
    text = file.read_bytes()
    file.write_bytes(bytes([text[0] ^ 1]) + text[1:])  # as long as before
    os.utime(file, ns=(10**18, 10**18))
    assert uncommitted(tree) == 1
