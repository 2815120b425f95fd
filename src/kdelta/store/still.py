# SPDX-License-Identifier: GPL-2.0-or-later
"""SQLite files that this user can only read.

With a write-ahead log SQLite wants to make a file beside the store even to read it. Where it may not, the store is read
as it lies (``immutable``), which is right as long as nobody has it open; who has, has made that file. Source:
sqlite.org/wal.html, "Read-Only Databases"; with SQLite 3.40.1 each of these was tried on a read-only mount.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kdelta.errors import HostError


def is_writable(path: Path) -> bool:
    """Whether this user can change the store at ``path``: the file itself, and what SQLite makes beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def opens_still(path: Path) -> bool:
    """Whether the store at ``path`` lies where no file can be made beside it."""
    return path.is_file() and not os.access(path.parent, os.W_OK)


def connection(_dialect: Any, _record: Any, _named: Any, options: dict[str, Any]) -> sqlite3.Connection | None:
    """Open such a store; None where the usual way can: somebody has it open, and what is told there is heeded.

    Asked for each transaction, since a writer may come and go. For the event ``do_connect`` of SQLAlchemy.

    Raises:
        HostError: the last transactions are in a log that cannot be read without that file.
    """
    path = Path(_named[0])
    if Path(f"{path}-shm").exists():
        return None
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        raise HostError(
            f"store {path}: {path.parent} cannot be written, and what was stored last is in {log.name}, "
            "which is read where it can: copy both files, and set KDELTA_STORE to the copy"
        )
    made: sqlite3.Connection = sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True, **options)
    return made
