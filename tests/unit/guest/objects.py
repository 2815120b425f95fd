# SPDX-License-Identifier: GPL-2.0-or-later
"""What is compiled of the guest's program, shared by tests that have a cache of their own."""

from __future__ import annotations

import contextlib
from pathlib import Path

from kdelta import paths

OBJECTS = Path("guest") / "objects"


def with_objects(cache: Path) -> None:
    """Let guests below ``cache`` take objects from the user's cache, where tools/compile-c.sh put them."""
    kept, mine = paths.cache_dir() / OBJECTS, cache / OBJECTS
    kept.mkdir(parents=True, exist_ok=True)
    mine.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        mine.symlink_to(kept.absolute())
