# SPDX-License-Identifier: GPL-2.0-or-later
"""The user's own C files: which ones a directory or a file named on the command line stands for, and what they are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from kdelta.errors import UserError
from kdelta.spec.sources import Kind, kind_of

_MAIN = re.compile(r"^\s*(?:\w+\s+)*main\s*\(", re.MULTILINE)
HOW_TO = "see docs/how-to/add-a-workload.md"


def read(path: Path) -> str:
    """The text of a C file; what is no UTF-8 is replaced.

    Raises:
        UserError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"workloads {path}: cannot be read: {error.strerror}") from None


def _kind(path: Path) -> Kind:
    kind = kind_of(read(path))
    return "workload" if not kind and path.with_suffix(".toml").exists() else kind


def files(own: Iterable[Path]) -> list[tuple[Path, Kind]]:
    """The C files that ``own`` (directories and files) stand for, each with what it is; other C files left out.

    Raises:
        UserError: a path that is not there, a file that is none of these, a directory without any.
    """
    found: list[tuple[Path, Kind]] = []
    mine: list[tuple[Path, Kind]]
    for place in own:
        if place.is_dir():
            mine = [(path, kind) for path in sorted(place.glob("*.c")) if (kind := _kind(path))]
            if not mine and not any(place.glob("*.toml")):
                raise UserError(
                    f"workloads {place}: no C file there has a CASE, a WORKLOAD or a will-it-scale testcase; {HOW_TO}"
                )
        elif place.is_file():
            mine = [(place, _kind(place))]
            if not mine[0][1]:
                if _MAIN.search(read(place)):
                    made = f"cc -O2 -pthread {shlex.quote(str(place))} -o {shlex.quote(place.stem)}"
                    measured = f"-- {shlex.quote(f'./{place.stem}')}"
                    raise UserError(f"{place} is a program of its own: {made}, then {measured} measures it")
                raise UserError(f"workloads {place}: neither a CASE nor a WORKLOAD nor a testcase is in it; {HOW_TO}")
        else:
            raise UserError(f"workloads {place}: no such directory or C file")
        found += (one for one in mine if one not in found)
    return found
