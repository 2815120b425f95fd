# SPDX-License-Identifier: GPL-2.0-or-later
"""The environment that a program gets, which is always the same, and what the C library opens for what it says.

Sources: setlocale(3) and the manual of the GNU C Library, "Locale Names" (codesets lose their hyphens); tzset(3).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from kdelta.guest import closure
from kdelta.guest.here import MOST_BYTES
from kdelta.spec.program import Program

SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LOCALES, _ZONES = Path("/usr/lib/locale"), Path("/usr/share/zoneinfo")
_LOCALE = re.compile(r"LANG|LANGUAGE|LC_[A-Z]+")
_PRELOADS = ("LD_PRELOAD", "LD_AUDIT")
_PLAIN = ("", "C", "POSIX")  # locales that every C library has in itself


def of(program: Program, scratch: str, started: Path) -> dict[str, str]:
    """What ``program``, which is the file ``started``, finds in its environment; it may write to ``scratch``."""
    found = [closure.found_by_env(started)]  # env(1) finds it in the guest where it was found here
    if "/" not in program.argv[0]:
        found.append(started)  # and it what stands beside it, as cargo finds rustc
    more = dict.fromkeys(str(one.parent) for one in found if one is not None)
    given = dict(text.split("=", 1) for text in program.env)
    fixed = {
        "PATH": ":".join([*(folder for folder in more if folder not in SEARCHED.split(":")), SEARCHED]),
        "HOME": scratch,
        "TMPDIR": scratch,
        "LC_ALL": "C",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
    }
    if any(map(_LOCALE.fullmatch, given)):
        del fixed["LC_ALL"]  # which would hide it
    return fixed | given


def files(program: Program, locales: Path = _LOCALES, zones: Path = _ZONES) -> Iterator[Path]:
    """What the C library reads for the locale and the time zone that --env, or words of env(1), give ``program``."""
    given = _given(program)
    names = {value for name, value in given.items() if _LOCALE.fullmatch(name) and value not in _PLAIN}
    archive = locales / "locale-archive"
    if names and archive.is_file() and archive.stat().st_size <= MOST_BYTES:
        yield archive
    for name in sorted(name for name in names if "/" not in name):
        yield from (one for one in (locales / name, locales / _normalised(name)) if one.is_dir())
    zone = Path(os.path.normpath(zones / given.get("TZ", "").removeprefix(":").lstrip("/")))
    if zone.is_file() and zone.is_relative_to(zones):
        yield zone


def preloaded(program: Program, cwd: Path, libraries: tuple[str, ...]) -> Iterator[Path]:
    """The libraries that the loader shall load before those that ``program`` asks for, as another malloc(3).

    Raises:
        UserError: one is not on this machine.
    """
    given = _given(program, closely=True)
    for name in _PRELOADS:
        yield from closure.preloaded(given.get(name, ""), cwd / program.cwd, libraries)


def _given(program: Program, closely: bool = False) -> dict[str, str]:
    """Variables by name; ``closely``: of words only those of env(1), not what a shell's line begins with."""
    words = program.argv if not closely or Path(program.argv[0]).name == "env" else ()
    return dict(text.split("=", 1) for text in (*words, *program.env) if "=" in text)


def _normalised(name: str) -> str:
    """``de_DE.UTF-8@euro`` as its directory is called: ``de_DE.utf8@euro``."""
    return re.sub(r"\.[^@]*", lambda codeset: "." + re.sub(r"[^a-z0-9]", "", codeset[0].lower()), name)
