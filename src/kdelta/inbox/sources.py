# SPDX-License-Identifier: GPL-2.0-or-later
"""Where mails and commits come from: a Maildir, an mbox, a public-inbox repository, a branch. All of it is only read.

public-inbox's version 2 keeps each message as the file ``m`` of a commit, in ``git/N.git`` (public-inbox-v2-format(5)).
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import re
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO

from msgspec import Struct

from kdelta.errors import HostError, UserError
from kdelta.inbox import mails, series
from kdelta.inbox.mails import Mail
from kdelta.kernel import history, mail, origin, unpack
from kdelta.paths import expanded

_FORMS = "a Maildir, an mbox, a public-inbox folder (git/0.git), or a branch as REPOSITORY@BRANCH"
_MOST_COMMITS = 5000
_MOST_MESSAGES = 50_000
_HEAD = 1 << 16  # bytes in which a mail's first fields stand
_FIELD = re.compile(rb"^(From|Subject|Date|Message-ID):", re.MULTILINE | re.IGNORECASE)
_AGAIN_S = 0.1
_MOST_UNPACKED = 1 << 30  # bytes
_PATIENCE_S = 5.0


class Source(Struct, frozen=True, kw_only=True):
    """``name`` is the whole path, by which the store knows it; ``branch`` is "" where mails are read."""

    kind: str  # maildir | mbox | public-inbox | branch
    name: str
    path: Path
    branch: str = ""


def find(text: str) -> Source:
    """What ``text`` names.

    Raises:
        UserError: there is nothing of these kinds.
    """
    path = expanded(text)
    if path.is_file():
        if not _is_mbox(path):
            raise UserError(
                f"watch {text}: it holds no mail (no line From:, Subject: or Date: at its head); give {_FORMS}"
            )
        return Source(kind="mbox", name=str(path.resolve()), path=path)
    if (path / "cur").is_dir() and (path / "new").is_dir():
        return Source(kind="maildir", name=str(path.resolve()), path=path)
    if list(path.glob("git/*.git")):
        return Source(kind="public-inbox", name=str(path.resolve()), path=path)
    tree, at, branch = text.rpartition("@")
    if at and branch and expanded(tree).is_dir():
        where = expanded(tree)
        history.commit(str(where), branch)
        return Source(kind="branch", name=f"{where.resolve()}@{branch}", path=where, branch=branch)
    if "://" in text:
        raise UserError(
            f"watch {text}: nothing is downloaded here: clone it with git, or fetch its mails, and give {_FORMS}"
        )
    raise UserError(f"watch {text}: no such source; give {_FORMS}")


def _is_mbox(path: Path) -> bool:
    """Whether a mail begins here; a file that is still empty may become one. Who may not read it is told so later."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            if unpack.kind_of(head):
                file.seek(0)
                head = _unpacked(file, unpack.kind_of(head), path, _HEAD)
    except OSError:
        return True
    head = head.lstrip()
    return (
        not head
        or head.startswith(b"From ")
        or _FIELD.search(head.replace(b"\r\n", b"\n").partition(b"\n\n")[0]) is not None
    )


def _plain(data: bytes, path: Path) -> bytes:
    """An mbox unpacked, where it is packed: lore.kernel.org hands out ``t.mbox.gz``.

    Raises:
        UserError: it is damaged, or too large.
    """
    kind = unpack.kind_of(data)
    return _unpacked(io.BytesIO(data), kind, path, _MOST_UNPACKED + 1) if kind else data


def _unpacked(file: IO[bytes], kind: unpack.Kind, path: Path, size: int) -> bytes:
    stream = unpack.Stream(file, kind, _MOST_UNPACKED)
    stream.allow(size)
    try:
        return stream.read(size)
    except unpack.Damaged as error:
        raise UserError(f"watch {path}: packed as {kind}, it cannot be read ({error}); unpack it yourself") from None


def items(source: Source, since_s: float, start: str) -> tuple[series.Item, ...]:
    """What there is to review, oldest first; mails older than ``since_s`` are not read, nor commits up to ``start``.

    Raises:
        HostError: it cannot be read. UserError: ``start`` is no commit of the branch.
    """
    if source.kind == "branch":
        return _commits(source, start)
    found = (one for one in _mails(source, since_s) if not one.date_s or one.date_s >= since_s)
    return series.items(found)


def _mails(source: Source, since_s: float) -> Iterator[Mail]:
    if source.kind == "maildir":
        for folder in ("new", "cur"):  # in the way that mails go, so that one which moves is met twice, not missed
            for path in sorted((source.path / folder).iterdir()):
                if (data := _one(path)) is not None:
                    yield mails.read(data)
    elif source.kind == "mbox":
        for piece in mail.pieces(_plain(_standing(source.path), source.path).replace(b"\r\n", b"\n")):
            yield mails.read(piece)
    else:
        for epoch in sorted(source.path.glob("git/*.git"), key=lambda one: (len(one.name), one.name)):
            yield from _messages(epoch, since_s)


def _one(path: Path) -> bytes | None:
    """A mail of a Maildir; None where it is none, too large, or just moved: a mail program renames what is read."""
    try:
        if path.is_file() and path.stat().st_size <= mail.MAX_BYTES:
            return path.read_bytes()
    except FileNotFoundError:
        pass  # the next look finds it under its new name
    return None


def _standing(path: Path) -> bytes:
    """An mbox while nobody writes to it, under the lock that mail programs take: else its last mail may be cut.

    One that is held or written to for longer than five seconds is read as it is.
    """
    with path.open("rb") as file:
        until_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until_s:
            try:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    time.sleep(_AGAIN_S)
                    continue  # other errors: its file system has no locks
            before = os.fstat(file.fileno())
            file.seek(0)
            data = file.read()
            after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
                return data
            time.sleep(_AGAIN_S)
        file.seek(0)
        return file.read()


def _messages(folder: Path, since_s: float) -> Iterator[Mail]:
    """The messages of one epoch, oldest first."""
    argv = [*history.git_argv(str(folder)), "-c", "safe.directory=*"]
    since = [f"--since={int(since_s)}"] if since_s else []
    try:
        listed = origin.run([*argv, "rev-list", "--reverse", *since, "HEAD", "--"], str(folder), history.git_env())
    except HostError as error:
        raise HostError(f"{folder}: no public-inbox repository that can be read: {error}") from None
    commits = listed.split()
    if len(commits) > _MOST_MESSAGES:
        raise UserError(f"watch {folder}: {len(commits)} messages are too many at once; begin later with --since 7d")
    asked = b"".join(b"%s:m\n" % commit for commit in commits)
    done = subprocess.run([*argv, "cat-file", "--batch"], input=asked, capture_output=True, env=history.git_env())
    if done.returncode:
        raise HostError(f"{folder}: git cat-file failed: {done.stderr.decode('utf-8', 'replace').strip()}")
    for blob in _blobs(done.stdout):
        yield mails.read(blob)


def _blobs(data: bytes) -> Iterator[bytes]:
    """The objects of git cat-file --batch; commits without a message (deletions) are "missing" there."""
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        words = data[at:end].split()
        at = end + 1
        if words[-1:] != [b"missing"]:
            size = int(words[2])
            if size <= mail.MAX_BYTES:
                yield data[at : at + size]
            at += size + 1


def _commits(source: Source, start: str) -> tuple[series.Item, ...]:
    try:
        tip = history.commit(str(source.path), source.branch)
    except UserError as error:  # it was there when the user named it
        raise HostError(f"watch {source.name}: cannot be read: {error}") from None
    first = history.commit(str(source.path), start)
    if tip.hash == first.hash:
        return ()
    line = history.line(str(source.path), first.hash, tip.hash)
    if len(line) > _MOST_COMMITS:
        raise UserError(f"watch {source.name}: {len(line)} commits since {start}; begin later with --since REF")
    return tuple(
        series.Item(key=commit, title=history.commit(str(source.path), commit).subject, date_s=float(at), parent=parent)
        for at, (parent, commit) in enumerate(pairwise(line))
    )
