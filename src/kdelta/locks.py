# SPDX-License-Identifier: GPL-2.0-or-later
"""One process at a time: a file that is locked (flock(2)) for as long as its holder lives, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import BinaryIO

from kdelta.errors import HostError


class Taken(Exception):
    """Another process has the lock: ``process`` is its number, "?" where it has not written it yet."""

    def __init__(self, process: str) -> None:
        super().__init__(process)
        self.process = process


def take(path: Path) -> BinaryIO:
    """The lock in the file ``path``, until it is closed; nobody is waited for. Its holder alone may unlink the file.

    Raises:
        Taken: another process has it.
        HostError: the file cannot be written.
    """
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = path.open("a+b")
        except OSError as error:
            raise HostError(f"{path} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not names(path, lock):  # its holder unlinked it after we opened it
                lock.close()
                continue
            lock.truncate(0)
            lock.write(b"%d\n" % os.getpid())
            lock.flush()
        except BlockingIOError:
            lock.seek(0)
            process = lock.read(16).strip().decode(errors="replace")
            lock.close()
            raise Taken(process or "?") from None
        except OSError as error:
            lock.close()
            raise HostError(f"{path} cannot be locked: {error.strerror}") from None
        return lock


def holder(path: Path) -> str:
    """The number of the process that has the lock in ``path`` now, "?" where it has not written that; "": none."""
    try:
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read(16).strip().decode(errors="replace") or "?"
    except OSError:  # nobody wrote it
        pass
    return ""


def names(path: Path, file: BinaryIO) -> bool:
    """Whether ``path`` is this file still."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
