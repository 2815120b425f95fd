# SPDX-License-Identifier: GPL-2.0-or-later
"""Files whose content was checked, remembered beside them until one of them changes or the machine boots anew.

To check the snapshots of ten kernels takes seconds of each command. A file of the same inode, size and times holds what
it held, unless the machine went down in between and took unwritten pages along: so what vouches for it is worth nothing
after that (boot_id of random(4)). Changes within one tick of a file system's times would go unseen: what is so fresh is
not vouched for.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_FRESH_NS = 2_000_000_000  # the coarsest times of a common file system (FAT), as in digests.py


def stamp(paths: Sequence[Path], now_ns: int | None = None) -> str:
    """What is the same as long as none of the files changes and the machine stays up; "" where nothing can be said.

    Raises:
        FileNotFoundError: one of them is not there.
    """
    stats = [path.stat() for path in paths]
    newest = max(stat.st_ctime_ns for stat in stats)
    if (time.time_ns() if now_ns is None else now_ns) - newest < _FRESH_NS:
        return ""
    try:
        boot = _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
    times = (f"{s.st_dev}:{s.st_ino}:{s.st_size}:{s.st_mtime_ns}:{s.st_ctime_ns}" for s in stats)
    return "\n".join(("kdelta vouches 1", boot, *times, ""))


def is_vouched(book: Path, said: str) -> bool:
    """Whether ``book`` says of these very files that they were checked."""
    try:
        return bool(said) and book.read_text(encoding="ascii") == said
    except (OSError, UnicodeDecodeError):
        return False


def recall(book: Path, said: str) -> str:
    """What ``book`` has to say beyond ``said``, of these very files; "" where it says nothing of them."""
    try:
        text = book.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
    return text.removeprefix(said) if said and text.startswith(said) else ""


def vouch(book: Path, said: str) -> None:
    """Keep in ``book`` that the files were checked; where it cannot be written they are checked again next time.

    One that was cut short vouches for nothing, so it need not be written at once.
    """
    if said:
        with contextlib.suppress(OSError):
            book.write_text(said, encoding="ascii")
