# SPDX-License-Identifier: GPL-2.0-or-later
"""Commits between two releases that change a function."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.kernel import revisions
from unit.kernel.git_history import kernel_history


@pytest.fixture
def tree(tmp_path: Path) -> str:
    return str(kernel_history(tmp_path / "linux"))


@pytest.mark.parametrize(
    ("function", "subjects"),
    [
        ("vfs_read", ["fs: check twice"]),  # not the one that changes its caller
        ("vfs_write", ["fs: write may sleep"]),
        ("access_ok_old", ["fs: drop access_ok_old"]),  # only the older release has it
        ("nowhere", []),
        ("[user]", []),
        ("--help", []),
    ],
)
def test_a_function_is_followed_by_its_lines_and_one_that_is_gone_by_its_name(
    tree: str, function: str, subjects: list[str]
) -> None:
    assert [commit.subject for commit in revisions.between(tree, function, "v6.1", "v6.12")] == subjects
    assert revisions.between(tree, function, "v6.12", "v6.12.3") == ()


@pytest.mark.parametrize(
    ("release", "tag"),
    [("6.1.192", "v6.1"), ("6.12.3+deb13", "v6.12.3"), ("6.12.0", "v6.12"), ("6.12-rc3", "v6.12")],
)
def test_a_release_is_found_by_its_own_tag_or_that_of_its_series(tree: str, release: str, tag: str) -> None:
    assert revisions.tag(tree, release) == tag


@pytest.mark.parametrize("release", ["7.0.1", "mine", ""])
def test_a_release_that_is_not_there_is_refused(tree: str, release: str) -> None:
    with pytest.raises(UserError):
        revisions.tag(tree, release)
