# SPDX-License-Identifier: GPL-2.0-or-later
"""The history of a git tree: its commits in a line, and its release tags. The tree is only read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from msgspec import Struct

from kdelta.errors import HostError, UserError
from kdelta.kernel import debver, origin

_TAG = re.compile(r"v\d+(\.\d+)+(-rc\d+)?")


class Commit(Struct, frozen=True, kw_only=True):
    """A commit as people name it. ``hash`` is whole; ``date`` is the committer's, ISO 8601."""

    hash: str
    parents: tuple[str, ...]
    author: str
    date: str
    subject: str

    @property
    def short(self) -> str:
        return self.hash[:12]


def git_env() -> dict[str, str]:
    """The environment for a git that only reads."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return env | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def git_argv(tree: str) -> list[str]:
    """The beginning of a git command in ``tree`` that runs nothing of the user's."""
    return ["git", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-C", tree]


def _git(tree: str, *words: str) -> str:
    return origin.run([*git_argv(tree), *words], f"src:{tree}", git_env()).decode("utf-8", "replace")


def _list_tags(tree: str) -> list[str]:
    """Raises:
    UserError: no git repository.
    """
    if not Path(tree).is_dir():
        raise UserError(f"src:{tree}: no such tree")
    try:
        _git(tree, "rev-parse", "--git-dir")
    except HostError:
        raise UserError(f"src:{tree}: not a git repository, so it has no tags; name one with --tree") from None
    return _git(tree, "tag", "--list", "v[0-9]*").split()


def commit(tree: str, ref: str) -> Commit:
    """The commit that ``ref`` names.

    Raises:
        UserError: no git tree, or no such commit.
    """
    if not Path(tree).is_dir():
        raise UserError(f"src:{tree}: no such tree")
    if ref.startswith("-"):
        raise UserError(f"src:{tree}: {ref!r} is not a valid git ref")
    try:
        form = "%H%x00%P%x00%an <%ae>%x00%cI%x00%s"
        found = _git(tree, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        text = _git(tree, "log", "-1", "--no-show-signature", f"--format={form}", found.split()[-1], "--")
    except HostError:
        raise origin.no_commit(tree, ref) from None
    name, parents, author, date, subject = text.rstrip("\n").split("\0")
    return Commit(hash=name, parents=tuple(parents.split()), author=author, date=date, subject=subject)


def messages(tree: str, first: str, last: str, most: int) -> tuple[str, ...]:
    """What the commits of ``first..last`` say, oldest first; () where they are more than ``most``."""
    text = _git(tree, "log", "-z", "--reverse", f"--max-count={most + 1}", "--format=%B", f"{first}..{last}", "--")
    found = tuple(text.rstrip("\0").split("\0")) if text else ()
    return found if len(found) <= most else ()


def apart(tree: str, first: str, last: str, most: int) -> tuple[str, ...]:
    """Whole hashes of the commits ``first..last``, oldest first, that are to be told apart as patches of a series.

    Raises:
        UserError: there is none, more than ``most``, or a merge, which is no patch.
    """
    words = (f"{first}..{last}", "--")
    found = _git(tree, "rev-list", "--reverse", "--topo-order", *words).split()
    if merges := _git(tree, "rev-list", "--merges", *words).split():
        raise UserError(
            f"src:{tree}: of {len(found)} commits {len(merges)} are merges, as {merges[-1][:12]}, which cannot be told "
            "apart as patches; kdelta bisect finds the one that changed a case"
        )
    if not 0 < len(found) <= most:
        raise UserError(f"src:{tree}: {len(found)} commits; 1 to {most} can be told apart as a series")
    return tuple(found)


def line(tree: str, good: str, bad: str) -> tuple[str, ...]:
    """Whole hashes from ``good`` to ``bad`` along first parents, both included: each is the first parent of the next.

    Along first parents a merge is one change, as its maintainer pulled it (git rev-list --first-parent).

    Raises:
        UserError: no such commits, or ``good`` is not on the first-parent line of ``bad``.
    """
    first, last = commit(tree, good), commit(tree, bad)
    words = ("rev-list", "--first-parent", "--reverse", last.hash, f"^{first.hash}")
    found = _git(tree, *words).split()
    if not found:
        same = "are the same commit" if first.hash == last.hash else "have no commits between them; are they swapped?"
        raise UserError(f"src:{tree}: {good} and {bad} {same}{origin.shallow(tree)}")
    start = commit(tree, found[0]).parents
    if not start or start[0] != first.hash:
        hint = f"; their histories join at {start[0][:12]}, which may be what you want" if start else ""
        raise UserError(f"src:{tree}: {good} is not on the first-parent line of {bad}{hint}{origin.shallow(tree)}")
    return (first.hash, *found)


def newest(tree: str, like: str) -> str:
    """The newest release tag of the same depth as ``like``, no release candidate; ``like`` where there is none.

    Raises:
        UserError: no git repository.
    """
    present = [tag for tag in _list_tags(tree) if _TAG.fullmatch(tag) and "-rc" not in tag]
    alike = [tag for tag in present if tag.count(".") == like.count(".")]
    return max(alike, key=lambda tag: debver.version_key(tag[1:]), default=like)


def tags(tree: str, first: str, last: str) -> tuple[str, ...]:
    """Release tags such as ``v6.8`` from ``first`` to ``last``, both included, oldest version first.

    Only tags of the same depth as the two ends (v6.8, or v6.8.3), and release candidates only where an end is one.

    Raises:
        UserError: no git repository, an end is no such tag, or they are in the wrong order.
    """
    present = set(_list_tags(tree))
    for end in (first, last):
        if not _TAG.fullmatch(end) or end not in present:
            raise UserError(f"src:{tree}: {end!r} is not a release tag there, such as v6.8{origin.shallow(tree)}")
    depths = {end.split("-")[0].count(".") for end in (first, last)}
    candidates = any("-rc" in end for end in (first, last))

    def order(tag: str) -> Any:
        return debver.version_key(tag[1:].replace("-rc", "~rc"))

    found = tuple(
        sorted(
            (
                tag
                for tag in present
                if _TAG.fullmatch(tag)
                and tag.split("-")[0].count(".") in depths
                and ("-rc" not in tag or candidates)
                and order(first) <= order(tag) <= order(last)
            ),
            key=order,
        )
    )
    if len(found) < 2:
        raise UserError(f"src:{tree}: {first}..{last} are not two releases, the older one first")
    return found
