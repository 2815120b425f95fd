# SPDX-License-Identifier: GPL-2.0-or-later
"""Files known by their content: sha256 sums, and sums kept beside what is made once and used again."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from functools import lru_cache
from pathlib import Path

# A file that changed so recently may change again within one tick of its times: it is read each time ("racy git",
# git's Documentation/technical/racy-git.txt). Two seconds are the coarsest times of a common file system (FAT).
_FRESH_NS = 2_000_000_000


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1024)
def _remembered(path: Path, _stamp: tuple[int, ...]) -> str:
    return _read(path)


def _facts(path: Path) -> tuple[int, ...]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def of_file(path: Path) -> str:
    """The sha256 of a file in hex. Read once in a process as long as inode, size and times stay what they are.

    Raises:
        OSError: it cannot be read.
    """
    facts = _facts(path)
    if time.time_ns() - facts[-1] < _FRESH_NS:
        return _read(path)
    return _believed.get((path, facts)) or _remembered(path, facts)


_believed: dict[tuple[Path, tuple[int, ...]], str] = {}


def believe(path: Path, sha256: str) -> None:
    """Take the sum of a file as it is now, which somebody vouches for, until the file changes.

    Raises:
        OSError: there is no such file.
    """
    _believed[path, _facts(path)] = sha256


def _sum_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def keep(made: Path, target: Path) -> None:
    """Move ``made``, on the same file system, to ``target``, with its sum beside it as sha256sum(1) writes it.

    Each is there whole or not at all; killed between the two, ``is_whole`` says no.

    Raises:
        OSError: disk full or not writable.
    """
    line = f"{_read(made)}  {target.name}\n"
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=target.parent, prefix=".", delete=False) as file:
        try:
            file.write(line)
            file.flush()
            os.replace(made, target)
            os.replace(file.name, _sum_path(target))
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def is_whole(path: Path) -> bool:
    """Whether a file is what ``keep`` put there; false also where there is none, or no sum of it."""
    try:
        return _sum_path(path).read_text(encoding="utf-8").partition(" ")[0] == of_file(path)
    except (OSError, UnicodeDecodeError):
        return False
