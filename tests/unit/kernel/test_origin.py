# SPDX-License-Identifier: GPL-2.0-or-later
"""A tarball is known by its content; a tree that git does not trust is told as that."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from kdelta import digests, vouched
from kdelta.errors import UserError
from kdelta.kernel import history
from kdelta.kernel.origin import look, tarball
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
