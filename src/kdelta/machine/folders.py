# SPDX-License-Identifier: GPL-2.0-or-later
"""Private directories of guests, which go with the process that made them, however it ends.

Each is locked (flock(2)) for as long as its maker lives: what can be locked was left behind by one that was killed, and
the next start removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kdelta.errors import HostError

_PREFIX = "guest-"


@contextlib.contextmanager
def private(scratch: Path) -> Iterator[Path]:
    """A new directory below ``scratch``, gone when the block is left.

    Raises:
        HostError: it cannot be made.
    """
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        with _locked(scratch):  # no other start takes a directory that is made but not locked yet for a leftover
            _remove_leftovers(scratch)
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=scratch))
            lock = _lock(folder)
    except OSError as error:
        raise HostError(f"cannot create a directory in {scratch}: {error.strerror}") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _lock(folder: Path, flags: int = 0) -> int:
    """A descriptor that holds the lock on ``folder``."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | flags)
    except OSError:
        os.close(fd)
        raise
    return fd


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    fd = _lock(folder)
    try:
        yield
    finally:
        os.close(fd)


def _remove_leftovers(scratch: Path) -> None:
    for folder in scratch.glob(f"{_PREFIX}*"):
        try:
            lock = _lock(folder, fcntl.LOCK_NB)
        except (BlockingIOError, FileNotFoundError):  # its maker lives, or has just removed it
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
