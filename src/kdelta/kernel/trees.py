# SPDX-License-Identifier: GPL-2.0-or-later
"""The work trees and build directories in the cache, for listing and pruning. All of it can be made again."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kdelta.kernel.cache import disk_error
from kdelta.paths import cache_dir


class Tree(Struct, frozen=True, kw_only=True):
    """A work tree with its build directories. ``used_s`` is when it was last built in, in seconds since the epoch."""

    name: str
    folder: Path
    used_s: float
    size_bytes: int


def size_bytes(folder: Path) -> int:
    """What a folder takes on disk; a build in it may remove files meanwhile."""
    found = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found += os.lstat(os.path.join(at, name)).st_blocks * 512
    return found


def trees() -> Iterator[Tree]:
    """All work trees, by name."""
    root = cache_dir() / "build"
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        lock = folder / "lock"
        if lock.is_file():
            yield Tree(name=folder.name, folder=folder, used_s=lock.stat().st_mtime, size_bytes=size_bytes(folder))


def remove(tree: Tree) -> bool:
    """Delete a work tree with its build directories; False where a build is running in it.

    Raises:
        HostError: not permitted.
    """
    with open(tree.folder / "lock", "r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            shutil.rmtree(tree.folder)
        except OSError as error:
            raise disk_error(error, tree.folder) from None
    return True
