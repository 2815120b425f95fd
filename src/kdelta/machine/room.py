# SPDX-License-Identifier: GPL-2.0-or-later
"""Room on the disk: snapshots can all be made again, so the least recently used make way for a new one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from kdelta.errors import HostError

LIMIT_BYTES = 10 << 30  # of all snapshots: about 120 of 1 GiB guests, whose files are sparse
IN_USE_S = 3600.0  # one used so lately may be another process's between two boots


class Kept(Struct, frozen=True, kw_only=True):
    """A snapshot on the disk: its files share ``stem``."""

    stem: Path
    size_bytes: int  # on the disk: holes take none
    used_s: float  # seconds since the epoch; each use locks it, which touches its .lock


def snapshots(folder: Path) -> list[Kept]:
    """All snapshots in ``folder``, also those that a kill left without a part of their files."""
    found: dict[Path, dict[str, os.stat_result]] = {}
    for entry in os.scandir(folder) if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # another process makes room too
            name, _, suffix = entry.name.partition(".")
            found.setdefault(folder / name, {})[suffix] = entry.stat()
    return [
        Kept(stem=stem, size_bytes=sum(512 * s.st_blocks for s in parts.values()), used_s=_used_s(parts))
        for stem, parts in found.items()
    ]


def _used_s(parts: dict[str, os.stat_result]) -> float:
    lock = parts.get("lock")
    return lock.st_mtime if lock else max(part.st_mtime for part in parts.values())


def doomed(kept: Iterable[Kept], *, limit_bytes: int, now_s: float, in_use_s: float = IN_USE_S) -> list[Kept]:
    """Which go, least recently used first, until the others fit ``limit_bytes``. Pure."""
    ordered = sorted(kept, key=lambda one: one.used_s)
    excess = sum(one.size_bytes for one in ordered) - limit_bytes
    gone = []
    for one in ordered:
        if excess <= 0 or now_s - one.used_s < in_use_s:
            break
        gone.append(one)
        excess -= one.size_bytes
    return gone


def remove(one: Kept) -> None:
    """Remove a snapshot, unless somebody holds its lock or has used it meanwhile: he is about to run guests from it.

    A guest that runs from it keeps its memory: the file lives as long as it is mapped.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(FileNotFoundError):  # a kill left none
            lock = held.enter_context(one.stem.with_suffix(".lock").open("rb"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            if os.fstat(lock.fileno()).st_mtime > one.used_s:
                return
        for path in one.stem.parent.glob(f"{one.stem.name}.*"):
            path.unlink(missing_ok=True)


def make(folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Remove the snapshots in ``folder`` that are too many.

    Raises:
        HostError: one cannot be removed.
    """
    try:
        for one in doomed(snapshots(folder), limit_bytes=limit_bytes, now_s=time.time()):
            remove(one)
    except OSError as error:
        raise HostError(f"cannot remove an old snapshot: {error.strerror}: {error.filename}") from None
