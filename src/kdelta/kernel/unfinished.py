# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds that were killed: what they left half made goes, before make takes it for whole.

make removes what it was making when a signal ends it; SIGKILL, with which Ctrl-C and the end of kdelta take it along, a
crash and a power failure leave it, newer than all that it is made of. An object that was compiled, and of which objtool
had not written the unwind tables yet, was linked by the next build. Kbuild writes .NAME.cmd behind each NAME (cmd_and_*
in scripts/Kbuild.include of 6.12), so one that is older than its NAME, or cut off, tells. What the Makefiles of tools/
link and generate has none: of that goes what is of the last minute of the build.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from kdelta.kernel import sandbox

_MARK = "kdelta-unfinished"  # in the build directory, from the beginning of a build to its good end
_TOLD = re.compile(r"\.(.+)\.cmd")
_DEPS_END = re.compile(r"^\$\(deps_.*\):$", re.MULTILINE)  # the last line that fixdep writes
_LAST_NS = 60 * 10**9


def begin(obj: Path) -> int:
    """Note that a build begins in ``obj``; of one that had no end what is half made goes: how many files.

    Raises:
        HostError: the disk is full.
    """
    mark = obj / _MARK
    half_made = [*_half_made(obj), *_of_tools(obj)] if mark.exists() else []
    for path in half_made:
        path.unlink(missing_ok=True)
    sandbox.write(mark, "")
    return len(half_made)


def end(obj: Path) -> None:
    """Note that the build in ``obj`` came to a good end."""
    (obj / _MARK).unlink(missing_ok=True)


def _files(folder: Path) -> Iterator[Path]:
    for at, _, names in os.walk(folder):
        yield from (Path(at, name) for name in names)


def _half_made(obj: Path) -> Iterator[Path]:
    """What make was making, and what it told of it."""
    for told in _files(obj):
        match = _TOLD.fullmatch(told.name)
        if match is None or not (made := told.with_name(match[1])).is_file():
            continue
        if told.lstat().st_mtime_ns < made.lstat().st_mtime_ns or _is_cut_off(told):
            yield from (made, told)


def _is_cut_off(told: Path) -> bool:
    if not (said := sandbox.read(told)).endswith("\n"):
        return True
    return "\ndeps_" in said and not _DEPS_END.search(said)


def _of_tools(obj: Path) -> Iterator[Path]:
    """What is of the last minute, by the newest of all, and has no .cmd."""
    newest_ns = max((path.lstat().st_mtime_ns for path in _files(obj)), default=0)
    for path in _files(obj / "tools"):
        told = path.with_name(f".{path.name}.cmd")
        if path.suffix != ".cmd" and not told.exists() and path.lstat().st_mtime_ns > newest_ns - _LAST_NS:
            yield path
