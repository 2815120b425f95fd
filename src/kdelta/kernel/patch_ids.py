# SPDX-License-Identifier: GPL-2.0-or-later
"""Commits of a repository found by what they change: git-patch-id(1), ``--stable``, as mails name them. Only read."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence

from kdelta import distributions
from kdelta.errors import HostError
from kdelta.kernel import origin
from kdelta.kernel.history import git_argv, git_env

_NEWEST = 3000  # commits that are looked through


def of_patch(tree: str, patch: bytes) -> str:
    """The id of a diff or mail; "" where it changes nothing.

    Raises:
        HostError: git is missing or fails.
    """
    return next(iter(_ids(tree, patch)), "")


def _ids(tree: str, text: bytes) -> dict[str, str]:
    """{patch id: commit} of a text with patches; the newest commit of an id, zeros where the text names none."""
    argv = [*git_argv(tree), "patch-id", "--stable"]
    try:
        done = subprocess.run(argv, input=text, capture_output=True, env=git_env(), check=False)
    except FileNotFoundError:
        raise HostError(f"git is missing: {distributions.install('git')}") from None
    if done.returncode:
        raise HostError(f"{tree}: git patch-id failed: {done.stderr.decode('utf-8', 'replace').strip()}")
    found: dict[str, str] = {}
    for line in done.stdout.decode("ascii", "replace").splitlines():
        patch, _, commit = line.partition(" ")
        found.setdefault(patch, commit)
    return found


def find(
    tree: str, wanted: Collection[str], within: Sequence[str], newest: int = _NEWEST, renames: bool = False
) -> dict[str, str]:
    """{patch id: commit} of those of ``wanted`` among the ``newest`` commits of ``within`` (words of git-rev-list(1)).

    ``renames``: compare as mails are written, with renames detected; prerequisite-patch-id is computed without.

    Raises:
        HostError: git is missing or fails.
    """
    listed = [*git_argv(tree), "rev-list", "--no-merges", f"--max-count={newest}", *within, "--"]
    commits = origin.run(listed, tree, git_env())
    options = ["--stdin", "-p", "--no-ext-diff", "--no-textconv", "-M" if renames else "--no-renames"]
    argv = [*git_argv(tree), "diff-tree", *options]
    done = subprocess.run(argv, input=commits, capture_output=True, env=git_env(), check=False)
    if done.returncode:
        raise HostError(f"{tree}: git diff-tree failed: {done.stderr.decode('utf-8', 'replace').strip()}")
    found = _ids(tree, done.stdout)
    return {patch: found[patch] for patch in wanted if patch in found}


def as_mails(tree: str, commits: Sequence[str]) -> bytes:
    """Commits as an mbox, in their order.

    Raises:
        HostError: git is missing or fails.
    """
    options = ["--stdout", "--pretty=mboxrd", "--no-ext-diff", "--no-textconv", "--no-signature", "--no-numbered", "-1"]
    made = (origin.run([*git_argv(tree), "format-patch", *options, one], tree, git_env()) for one in commits)
    return b"".join(made)
