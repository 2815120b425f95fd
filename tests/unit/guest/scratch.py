# SPDX-License-Identifier: GPL-2.0-or-later
"""The scratch directories of the harness on this machine."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path


def scratch_left(known: Collection[Path] = (), limit_s: float = 60.0) -> list[Path]:
    """Those not ``known`` that are there now and still are after ``limit_s``: those of tests beside this one go."""
    found = [*Path("/dev/shm").glob("kdelta.??????"), *Path("/tmp").glob("kdelta.??????")]
    left = [path for path in found if path not in known]
    deadline = time.monotonic() + limit_s
    while (left := [path for path in left if path.exists()]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
