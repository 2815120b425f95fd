# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that differ in line numbers alone: ``__LINE__``, which file systems hand on with each error. Pure.

A patch that adds a line moves all below it, and each such function differs in one immediate or more, though it executes
the same. That a number is a line number is told by the diff: it becomes what the diff makes of that line, and stands on
no changed line itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from kdelta.attribution import code
from kdelta.attribution.disassembly import Image

_FILE = re.compile(r"^\+\+\+ (?:b/)?(\S+)")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b", re.IGNORECASE)
# Where an instruction reads or writes: what lies at another place is no line that moved, however far.
_MEMORY = re.compile(r"[-\w]*\([^)]*\)|\[[^\]]*\]")


class _Hunk(Struct, frozen=True):
    """Where one begins and ends before and behind, and what becomes of the lines that it keeps."""

    first: int
    end: int
    end_after: int
    kept: Mapping[int, int]


class Moves(Struct, frozen=True):
    """What becomes of the lines of files, each by one diff or several after each other, and what numbers these name."""

    files: tuple[tuple[tuple[_Hunk, ...], ...], ...]
    named: frozenset[int]

    def explain(self, old: int, new: int) -> bool:
        """Whether a number is that of a line, before and behind."""
        return old != new and self.named.isdisjoint((old, new)) and any(_after(all_, old) == new for all_ in self.files)


def _after(diffs: Iterable[Sequence[_Hunk]], line: int) -> int | None:
    """What becomes of a line; None where one of the diffs takes it out."""
    for hunks in diffs:
        by = 0
        for one in hunks:
            if line < one.first:
                break
            if line < one.end:
                if line not in one.kept:
                    return None
                by = one.kept[line] - line
                break
            by = one.end_after - one.end
        line += by
    return line


def moves(diff: Iterable[str]) -> Moves:
    """Of a unified diff, or of several of which each follows the one before."""
    files: dict[str, list[list[_Hunk]]] = {}
    named: set[int] = set()
    hunks: list[_Hunk] = []
    old = new = old_end = new_end = 0
    kept: dict[int, int] = {}
    for line in diff:
        if match := _HUNK.match(line):
            old, old_count, new, new_count = (1 if one is None else int(one) for one in match.groups())
            old, new = old + (not old_count), new + (not new_count)  # "-10,0" is behind line 10
            old_end, new_end, kept = old + old_count, new + new_count, {}
            hunks.append(_Hunk(old, old_end, new_end, kept))
        elif line.startswith("\\"):
            continue  # No newline at end of file
        elif old < old_end or new < new_end:
            if line[:1] in ("+", "-"):
                named |= {_value(one) for one in _NUMBER.findall(line)}
            else:
                kept[old] = new
            old, new = old + (line[:1] != "+"), new + (line[:1] != "-")
        elif match := _FILE.match(line):
            hunks = []
            files.setdefault(match[1], []).append(hunks)
    return Moves(tuple(tuple(map(tuple, every)) for every in files.values()), frozenset(named))


def _value(number: str) -> int:
    return int(number, 16) if number[:2].lower() == "0x" else int(number)


def alone(before: Image, after: Image, names: Collection[str], by: Moves) -> frozenset[str]:
    """Those of ``names`` that differ by nothing but numbers of lines."""

    def same(old: str, new: str) -> bool:
        pairs = list(zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=False))
        alike = _NUMBER.sub("N", old) == _NUMBER.sub("N", new) and _MEMORY.findall(old) == _MEMORY.findall(new)
        return alike and all(a == b or by.explain(_value(a), _value(b)) for a, b in pairs)

    return frozenset(name for name in names if by.files and code.same_but(before, after, name, same))
