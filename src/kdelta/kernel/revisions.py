# SPDX-License-Identifier: GPL-2.0-or-later
"""Commits between two releases that change a function, as the git of a kernel tree tells them.

``git log -L`` follows the function's lines where the newer release has it; where only the older one does, ``git log
-S`` finds what removed it (git-log(1)). A function that was inlined or renamed may have changed in its callers instead.
"""

from __future__ import annotations

import re

from kdelta.errors import HostError, UserError
from kdelta.kernel import history, origin
from kdelta.kernel.history import Commit

_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(-rc\d+)?")
_NAME = re.compile(r"[A-Za-z_]\w{0,119}")
_MOST_FILES = 3
_FORM = "%H%x00%P%x00%an <%ae>%x00%cI%x00%s"


def _git(tree: str, *words: str) -> str:
    return origin.run([*history.git_argv(tree), *words], f"src:{tree}", history.git_env()).decode("utf-8", "replace")


def tag(tree: str, release: str) -> str:
    """The tag of a release in ``tree``: its own, or in a tree without stable ones that of its series.

    Raises:
        UserError: neither is there, or ``release`` is none.
    """
    found = _RELEASE.search(release)
    if found is None:
        raise UserError(f"{release!r} is no release of Linux")
    series = f"v{found[1]}.{found[2]}"
    stable = f"{series}.{found[3]}" if found[3] not in (None, "0") else series
    for name in dict.fromkeys((stable + (found[4] or ""), stable, series)):
        try:
            history.commit(tree, f"refs/tags/{name}")
        except UserError:
            continue
        return name
    raise UserError(f"src:{tree} has no tag {stable}, nor {series}")


def _files(tree: str, at: str, function: str) -> list[str]:
    """Files in which ``function`` is defined at a tag: a line that starts with a word and has its name."""
    pattern = rf"^[A-Za-z_].*\b{function}\("
    try:
        text = _git(tree, "grep", "-l", "-E", pattern, at, "--", "*.c")
    except HostError:  # none: git grep ends with 1
        return []
    return [line.removeprefix(f"{at}:") for line in text.splitlines()]


def _commits(text: str) -> list[Commit]:
    rows = (line.split("\0") for line in text.splitlines() if line.count("\0") == 4)
    return [
        Commit(hash=name, parents=tuple(parents.split()), author=author, date=date, subject=subject)
        for name, parents, author, date, subject in rows
    ]


def between(tree: str, function: str, before: str, after: str) -> tuple[Commit, ...]:
    """The commits after the tag ``before`` up to ``after`` that change ``function``, the newest first.

    Raises:
        UserError: ``tree`` is no git repository with these tags.
        HostError: git failed.
    """
    if not _NAME.fullmatch(function):
        return ()
    for ref in (before, after):
        history.commit(tree, ref)
    log = ("log", "--no-merges", "--no-show-signature", "--no-patch", f"--format={_FORM}")
    for path in _files(tree, after, function)[:_MOST_FILES]:
        try:
            found = _commits(_git(tree, *log, f"-L:\\b{function}(:{path}", f"{before}..{after}"))
        except HostError:  # the line that matched is no beginning of a function to git
            continue
        if found:
            return tuple(found)
    gone = _files(tree, before, function)
    return tuple(_commits(_git(tree, *log, f"-S{function}(", f"{before}..{after}", "--", *gone))) if gone else ()
