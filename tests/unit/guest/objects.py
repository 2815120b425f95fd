# SPDX-License-Identifier: GPL-2.0-or-later
"""What is compiled of the guest's program, and the plugin, shared by tests that have a cache of their own."""

from __future__ import annotations

import contextlib
from pathlib import Path

from kdelta import paths

OBJECTS = Path("guest") / "objects"
PLUGIN = Path("plugin")


def with_objects(cache: Path) -> None:
    """Let guests below ``cache`` take objects from the user's cache, where tools/compile-c.sh put them."""
    _shared(cache, OBJECTS)


def with_all_compiled(cache: Path) -> None:
    """Let a command below ``cache`` find objects and plugin: 10 s of a processor for each that compiles its own."""
    _shared(cache, OBJECTS)
    _shared(cache, PLUGIN)


def _shared(cache: Path, what: Path) -> None:
    kept, mine = paths.cache_dir() / what, cache / what
    kept.mkdir(parents=True, exist_ok=True)
    mine.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        mine.symlink_to(kept.absolute())
