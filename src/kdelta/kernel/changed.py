# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the source of two kernels differs: told by the patches that were applied, or by git between two commits."""

from __future__ import annotations

from kdelta.errors import HostError
from kdelta.kernel import history, locations, origin, source
from kdelta.model import Location
from kdelta.spec.kernels import KernelSpec

_MOST_FILES = 500  # more are a release, not a change that somebody reviews line by line


def between(before: KernelSpec, after: KernelSpec) -> tuple[Location, ...]:
    """The functions that ``after`` changes of ``before``, by their first changed line; () where that is not known.

    Raises:
        UserError: a tree or patch that cannot be read. HostError: git fails.
    """
    if after.patches:
        return source.built_facts(after).locations
    commits = before.kind == after.kind == "src" and before.target == after.target and not before.patches
    return _of_commits(after.target, before.ref, after.ref) if commits and before.ref and after.ref else ()


def _of_commits(tree: str, before: str, after: str) -> tuple[Location, ...]:
    first, last = (history.commit(tree, ref).hash for ref in (before, after))

    def git(*words: str) -> str:
        return origin.run([*history.git_argv(tree), *words], f"src:{tree}", history.git_env()).decode(
            "utf-8", "replace"
        )

    plain = ("diff", "--no-ext-diff", "--no-textconv", "--no-renames")
    if len(git(*plain, "--name-only", first, last, "--").splitlines()) > _MOST_FILES:
        return ()

    def read(path: str) -> str | None:
        try:
            return git("cat-file", "blob", f"{last}:{path}")
        except HostError:
            return None  # a file that is gone

    return locations.of(
        git(*plain, "--unified=0", "--src-prefix=a/", "--dst-prefix=b/", first, last, "--").split("\n"), read
    )
