# SPDX-License-Identifier: GPL-2.0-or-later
"""Room on the disk: snapshots can all be made again, so the least recently used make way for a new one."""

from __future__ import annotations

import contextlib
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
    found: dict[Path, list[os.stat_result]] = {}
    for entry in os.scandir(folder) if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # another process makes room too
            found.setdefault(folder / entry.name.partition(".")[0], []).append(entry.stat())
    return [
        Kept(stem=stem, size_bytes=sum(512 * s.st_blocks for s in parts), used_s=max(s.st_mtime for s in parts))
        for stem, parts in found.items()
    ]


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
    """Remove a snapshot. A guest that runs from it keeps its memory: the file lives as long as it is mapped."""
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
