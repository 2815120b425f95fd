# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the source of two kernels differs: told by the patches that were applied, or by git between two commits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kdelta.errors import HostError
from kdelta.kernel import history, locations, origin, source
from kdelta.model import Location
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec

_PLAIN = ("diff", "--no-ext-diff", "--no-textconv", "--no-renames")
_MOST_FILES = 500  # more are a release, not a change that somebody reviews line by line


def between(before: KernelSpec, after: KernelSpec) -> tuple[Location, ...]:
    """The functions that ``after`` changes of ``before``, by their first changed line; () where that is not known.

    Raises:
        UserError: a tree or patch that cannot be read. HostError: git fails.
    """
    if after.patches:
        return source.built_facts(after).locations
    found = of_commits(before, after)
    return locations.of(found.diff(0), found.read) if found is not None else ()


def texts(specs: Sequence[KernelSpec]) -> list[list[str]]:
    """The diffs that make kernels differ, in lines: of their patches, else of the commits that the last has more.

    [] where that is not known, or is a whole release.

    Raises:
        UserError: a tree that cannot be read. HostError: git fails.
    """
    patched = [spec for spec in specs if spec.kind in BUILT_KINDS and spec.patches]
    built = [known for spec in patched if (known := source.remembered(spec)) is not None and known.diff]
    try:
        found = [Path(one.diff).read_text("utf-8", "replace").splitlines() for one in built]
    except OSError:
        return []
    commits = of_commits(specs[0], specs[-1]) if len(specs) > 1 and not patched else None
    return [*found, *([list(commits.diff(0))] if commits is not None else [])]


class Commits(Struct, frozen=True, kw_only=True):
    """Two commits of one git tree, by their hashes, and the files that differ."""

    tree: str
    first: str
    last: str
    files: tuple[str, ...]

    def _git(self, *words: str) -> str:
        argv = [*history.git_argv(self.tree), *words]
        return origin.run(argv, f"src:{self.tree}", history.git_env()).decode("utf-8", "replace")

    def diff(self, context: int) -> list[str]:
        """The lines of a unified diff with so many lines of context.

        Raises:
            HostError: git fails.
        """
        how = (*_PLAIN, f"--unified={context}", "--src-prefix=a/", "--dst-prefix=b/")
        return self._git(*how, self.first, self.last, "--").split("\n")

    def read(self, path: str) -> str | None:
        """A file as the last commit has it; None where it has none of that name."""
        try:
            return self._git("cat-file", "blob", f"{self.last}:{path}")
        except HostError:
            return None


def of_commits(before: KernelSpec, after: KernelSpec) -> Commits | None:
    """The commits that two kernels of one git tree are, without patches; None of others, and of a whole release.

    Raises:
        UserError: a tree that cannot be read. HostError: git fails.
    """
    alike = before.kind == after.kind == "src" and before.target == after.target
    if not alike or before.patches or after.patches or not before.ref or not after.ref:
        return None
    first, last = (history.commit(after.target, ref).hash for ref in (before.ref, after.ref))
    argv = [*history.git_argv(after.target), *_PLAIN, "--name-only", "-z", first, last, "--"]
    told = origin.run(argv, f"src:{after.target}", history.git_env()).decode("utf-8", "replace")
    files = tuple(filter(None, told.split("\0")))
    return Commits(tree=after.target, first=first, last=last, files=files) if len(files) <= _MOST_FILES else None
