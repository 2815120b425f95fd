# SPDX-License-Identifier: GPL-2.0-or-later
"""One host's boots: any number of counts at once, or one block of times alone, also between several workers."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_ASK_AGAIN_S = 0.2


async def _lock(handle: int, how: int) -> None:
    """flock(2), without holding up the event loop."""
    while True:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            await asyncio.sleep(_ASK_AGAIN_S)


@asynccontextmanager
async def turn(folder: Path, alone: bool) -> AsyncIterator[None]:
    """Have the host, ``alone`` or with others that are not; who waits to be alone stops those behind it.

    Raises:
        OSError: the locks below ``folder`` cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    gate, room = (os.open(folder / name, flags, 0o644) for name in ("fleet.gate", "fleet.lock"))
    try:
        await _lock(gate, how)
        await _lock(room, how)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield
    finally:
        os.close(gate)
        os.close(room)
