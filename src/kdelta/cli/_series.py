# SPDX-License-Identifier: GPL-2.0-or-later
"""A series as a user names it -> the kernels without it and with it, and what it says of itself."""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kdelta.errors import UserError
from kdelta.paths import expanded

if TYPE_CHECKING:
    from kdelta.kernel.cover import Cover
    from kdelta.kernel.touches import Touched

_RANGE = re.compile(r"^([^.\s][^\s]*?)\.\.([^.\s][^\s]*)$")
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_LABEL_CHARS = 20  # a column of a table shows 6.12.117+ and so many whole
_SERIES = 100  # commits of a range that is one series, and no release
_RECENT = 300  # commits of a branch among which a patch that stands on it already is looked for


@dataclass(frozen=True, kw_only=True)
class Series:
    """``kernels``: names of the one without the series, then with it."""

    kernels: tuple[str, str]
    cover: Cover
    touched: Touched
    patches: int = 0  # of mails; a range has none
    kept: str = ""  # where the mails are kept: the user knows them by another name


def read(series: str, tree: str, suffix: str, *, each: bool = False) -> Series:
    """What ``series`` (an mbox, a range, or - for standard input) makes of ``tree``; ``suffix`` ends each kernel's name.

    ``each``: its patches are to be told apart; those of a range are kept as mails then.

    Raises:
        UserError: no such file or range, no patch in it, or a base that is not in the tree.
        HostError: git is missing or fails.
    """
    tree, comma, given = tree.partition(",")  # arch=arm64 and the like end the name of each kernel
    suffix = f"{comma}{given}{suffix}"
    match = _RANGE.match(series)
    if match and not Path(series).exists():
        return _of_range(match[1], match[2], tree, suffix, each)
    return _of_mails(series, tree, suffix)


def _of_range(base: str, tip: str, tree: str, suffix: str, each: bool) -> Series:
    from kdelta.kernel import cover, history, origin, patch_ids, touches

    source = source_of(tree)
    if "@" in source or source.startswith("src:debian:"):
        raise UserError(f"--tree {tree}: a range needs the repository that it is of, without @REF")
    path = source.removeprefix("src:")
    first, last = (history.commit(path, ref).hash for ref in (base, tip))
    argv = [*history.git_argv(path), "diff", "--no-ext-diff", "--no-textconv", first, last, "--"]
    diff = origin.run(argv, source, history.git_env()).decode("utf-8", "replace")
    names = (f"{source}@{base}{suffix}", f"{source}@{tip}{suffix}")
    about = cover.Cover(claims=cover.claims(history.messages(path, first, last, _SERIES)))
    touched = touches.of(diff.split("\n"))
    if each:
        commits = history.apart(path, first, last, _SERIES)
        kept = _kept(patch_ids.as_mails(path, commits), tip)
        names = (names[0], f"{source}@{base}+{kept}{suffix}")
    return Series(kernels=names, cover=about, touched=touched)


def source_of(tree: str) -> str:
    """The name of the kernel that --tree TREE is the source of."""
    return tree if tree.startswith("src:") else f"src:{tree}"


def _of_mails(series: str, tree: str, suffix: str) -> Series:
    """The mails are kept under a name that a kernel's name can hold."""
    from kdelta.kernel import cover, mail, mail_file, thread, touches

    data = thread.newest(mail_file.plain(_bytes(series), series))
    patches = mail.steps(data, series)  # no patch: refused by the name that the user knows
    about = cover.read(data)
    touched = touches.of(line for patch in patches for line in patch.lines)
    there = None if about.base or len(patches) > 1 else _on_branch(tree, data)
    if there is not None:
        base, patched = (f"{source_of(tree)}@{ref}{suffix}" for ref in there)
        return Series(kernels=(base, patched), cover=about, touched=touched, patches=1)
    ref = _ref(tree, about.base)
    base = source_of(tree) + ref + (_prerequisites(tree, about) if ref and about.prerequisites else "")
    kept = _kept(data, _title(about, series))
    kernels = (f"{base}{suffix}", f"{base}+{kept}{suffix}")
    return Series(kernels=kernels, cover=about, touched=touched, patches=len(patches), kept=str(kept))


def _title(about: Cover, name: str) -> str:
    """What a reader of the list knows a series by: its subject without tags; without one the file's name."""
    from kdelta.kernel import mail

    return mail.tag_of(about.subject).title or ("series" if name == "-" else Path(name).stem)


def slug(title: str) -> str:
    """A title in letters, digits and dashes that a kernel's name can hold: whole words, at most 20 characters."""
    words = _UNSAFE.sub("-", title).strip("-")
    whole = words[: _LABEL_CHARS + 1].rpartition("-")[0] if len(words) > _LABEL_CHARS else words
    return whole or words[:_LABEL_CHARS] or "series"


def _kept(data: bytes, title: str) -> Path:
    """Mails in a file that is named by their title, as the kernel with them is; folders tell alike ones apart."""
    from kdelta.kernel import cache
    from kdelta.paths import state_dir

    path = state_dir() / "reviews" / hashlib.sha256(data).hexdigest()[:8] / f"{slug(title)}.mbox"
    cache.write_atomically(path, data)
    return path


def _bytes(series: str) -> bytes:
    from kdelta.kernel import mail

    if series == "-":
        data = sys.stdin.buffer.read(mail.MAX_BYTES + 1)
        if not data.strip():
            raise UserError("review -: standard input is empty; pipe the mails of the series into it")
        return data
    path = expanded(series)
    if path.is_dir():
        raise UserError(
            f"review {series}: a directory; give one series as an mbox (cat {series.rstrip('/')}/*.patch | kdelta review - ...), "
            f"or have each of a Maildir or public-inbox reviewed: kdelta watch {series}"
        )
    try:
        with open(path, "rb") as file:  # a pipe too, as <(b4 am -o - ID) is
            data = file.read(mail.MAX_BYTES + 1)
    except FileNotFoundError:
        raise UserError(
            f"review {series}: no such file; give an mbox, a range such as v6.18..mybranch, or - for standard input"
        ) from None
    except OSError as error:
        raise UserError(f"review {series}: cannot be read ({error.strerror})") from None
    if len(data) > mail.MAX_BYTES:
        raise UserError(mail.too_large(series, max(len(data), path.stat().st_size)))
    return data


def _repository(tree: str) -> Path | None:
    """The git repository that ``tree`` is, where it is one and no ref of it is named."""
    from kdelta.kernel.origin import look

    target = tree.removeprefix("src:")
    if target.startswith("debian:") or "@" in target:
        return None
    seen = look(target, "")
    return None if seen.git_dir is None else seen.path


def _ref(tree: str, base: str) -> str:
    """``@COMMIT`` where the mails name their base and ``tree`` is a repository without a ref.

    Raises:
        UserError: the repository lacks that commit.
    """
    from kdelta.kernel.origin import has_commit

    path = _repository(tree) if base else None
    if path is None:
        return ""
    if not has_commit(path, base):
        raise UserError(
            f"--tree {tree}: it lacks the series' base-commit {base[:12]}; fetch it, or name a base as {tree}@REF"
        )
    return f"@{base}"


def _prerequisites(tree: str, about: Cover) -> str:
    """``+FILE`` with what lies between the base and the series, taken from the repository by its patch ids.

    Raises:
        UserError: some of it is not there.
    """
    from kdelta.kernel import patch_ids

    path = str(_repository(tree))
    found = patch_ids.find(path, about.prerequisites, ["--all", f"^{about.base}"])
    missing = [one[:12] for one in about.prerequisites if one not in found]
    if missing:
        raise UserError(
            f"--tree {tree}: it lacks {len(missing)} of {len(about.prerequisites)} patches that the series is based on "
            f"(prerequisite-patch-id {', '.join(missing[:3])}); fetch them, or name a branch with them as {tree}@REF"
        )
    mails = patch_ids.as_mails(path, [found[one] for one in about.prerequisites])
    return f"+{_kept(mails, 'prerequisites')}"


def _on_branch(tree: str, data: bytes) -> tuple[str, str] | None:
    """(parent, commit) where this one patch is a commit of the branch that ``tree`` has checked out: b4 prep --check."""
    from kdelta.kernel import history, patch_ids

    path = _repository(tree)
    patch = patch_ids.of_patch(str(path), data) if path is not None else ""
    if not patch:
        return None
    found = patch_ids.find(str(path), [patch], ["HEAD"], newest=_RECENT, renames=True)
    commit = history.commit(str(path), found[patch]) if patch in found else None
    return (commit.parents[0], commit.hash) if commit is not None and commit.parents else None
