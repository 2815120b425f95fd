# SPDX-License-Identifier: GPL-2.0-or-later
"""Packs of programs that stay what they are: their digests, kept with what says that none of their files changed.

To find and pack the programs of all suites takes seconds, and nearly always gives what it gave before. A pack is the
same as long as its files and links are, no file came into a directory that it has files of (a library that is found
earlier), the search path is the same, and so is the code that packs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from kdelta.paths import cache_dir
from kdelta.spec.program import Program

_VARIABLES = ("PATH", "LD_LIBRARY_PATH")
_FRESH_NS = 2_000_000_000  # the coarsest times of a common file system (FAT), as in digests.py


class _Kept(Struct, frozen=True, kw_only=True):
    """``stamp`` is that of ``paths`` when the packs of these ``digests`` were made."""

    paths: tuple[str, ...]
    stamp: str
    digests: tuple[str, ...]


@cache
def _code() -> bytes:
    """Digest of the code that says what is packed."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


def _book(programs: Sequence[Program]) -> Path:
    asked = repr((programs, [os.environ.get(name) for name in _VARIABLES])).encode("utf-8", "surrogateescape")
    return cache_dir() / "programs" / "known" / hashlib.sha256(_code() + asked).hexdigest()[:32]


def _stamp(paths: Iterable[str], now_ns: int) -> str:
    """What is the same as long as nothing of ``paths`` changes; "" where it changed so lately that it may do so again.

    Raises:
        OSError: one of them is not there.
    """
    digest = hashlib.sha256()
    for path in paths:
        facts = os.lstat(path)
        if now_ns - facts.st_ctime_ns < _FRESH_NS:
            return ""
        digest.update(repr((facts.st_dev, facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns)).encode())
        digest.update(b"%d" % facts.st_ctime_ns)
    return digest.hexdigest()


def recall(programs: Sequence[Program]) -> tuple[str, ...] | None:
    """The digests of the packs of ``programs``, None where they are to be made (again)."""
    try:
        kept = msgspec.msgpack.decode(_book(programs).read_bytes(), type=_Kept)
        same = kept.stamp == _stamp(kept.paths, time.time_ns())
    except (OSError, msgspec.MsgspecError):
        return None
    return kept.digests if same and kept.stamp else None


def remember(programs: Sequence[Program], digests: Sequence[str], sources: Iterable[Path]) -> None:
    """Keep that ``programs`` were packed as ``digests`` from these files and links; where it cannot be, it is not."""
    paths = _watched(sources)
    with contextlib.suppress(OSError):
        stamp = _stamp(paths, time.time_ns())
        book = _book(programs)
        book.parent.mkdir(parents=True, exist_ok=True)
        work = book.with_name(f"{book.name}.{os.getpid()}")
        work.write_bytes(msgspec.msgpack.encode(_Kept(paths=paths, stamp=stamp, digests=tuple(digests))))
        os.replace(work, book)


def _watched(sources: Iterable[Path]) -> tuple[str, ...]:
    """The files and links, and the directories that they are in."""
    found: dict[str, None] = {}
    for path in sources:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            found |= {str(path): None, str(path.parent): None, str(path.resolve().parent): None}
    return tuple(found)
