# SPDX-License-Identifier: GPL-2.0-or-later
"""Where in the source a diff changes which functions: file and line, as reviewers' tools point at them. Pure.

Functions are found by the kernel's own layout (Documentation/process/coding-style.rst): a body's braces stand in the
first column, so no C is parsed. ``SYSCALL_DEFINE3(read, ...)`` is known by the names of its symbols.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from kdelta.model import Location

_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_CALLED = re.compile(r"(\w+)\s*\(")
_SYSCALL = re.compile(r"^(?:COMPAT_)?SYSCALL_DEFINE\d$")
_MARKED = re.compile(
    r"^(?:__attribute__|__printf|__scanf|__releases|__acquires|__must_hold|__aligned|__section|typeof)$"
)
_HEAD_ENDS = (";", "}", "*/", "{")
_MOST_HEAD = 12  # lines that a function's head may have
_CODE = (".c", ".h")


class _Body(Struct, frozen=True):
    """A function's names as symbols, and its lines from the head to the closing brace, counted from 1."""

    names: tuple[str, ...]
    first: int
    last: int


def _names(head: str) -> tuple[str, ...]:
    """The symbols of the function with this head; () where it is none."""
    for match in _CALLED.finditer(head):
        if _SYSCALL.match(match[1]):
            called = head[match.end() :].split(",")[0].split(")")[0].strip()
            return tuple(f"{prefix}{called}" for prefix in ("__do_sys_", "__se_sys_", "__x64_sys_", "__arm64_sys_"))
        if not _MARKED.match(match[1]):
            return (match[1],)
    return ()


def _head(lines: Sequence[str], brace: int) -> int:
    """The index at which the head begins whose body's brace is at ``brace``."""
    start = brace
    while start and brace - start < _MOST_HEAD:
        above = lines[start - 1].rstrip()
        if not above or above.startswith("#") or above.endswith(_HEAD_ENDS):
            break
        start -= 1
    return start


def bodies(text: str) -> list[_Body]:
    """The functions of a C file in order."""
    lines, found = text.split("\n"), []
    opened: tuple[tuple[str, ...], int] | None = None
    for index, line in enumerate(lines):
        if line.startswith("{"):
            start = _head(lines, index)
            opened = (_names(" ".join(lines[start:index])), start)
        elif line.startswith("}") and opened is not None:
            if opened[0]:
                found.append(_Body(opened[0], opened[1] + 1, index + 1))
            opened = None
    return found


def changed_lines(diff: Iterable[str]) -> Iterator[tuple[str, int]]:
    """(path, line of the new file) of each line that a unified diff adds, or of the one after those it takes out."""
    path, at, old, new, told = "", 0, 0, 0, False
    for line in diff:
        if old > 0 or new > 0:
            sign = line[:1]
            if sign in ("+", "-"):
                if sign == "+" or not told:
                    yield path, max(at, 1)
                told = True
            else:
                told = False
            old -= sign != "+" and sign != "\\"
            new -= sign != "-" and sign != "\\"
            at += sign != "-" and sign != "\\"
        elif match := _HUNK.match(line):
            old, at, new = int(match[1] or 1), int(match[2]), int(match[3] or 1)
            at, told = at + (new == 0), False
        elif line.startswith("+++ "):
            path = line[4:].split("\t")[0].removeprefix("b/")


def of(diff: Iterable[str], read: Callable[[str], str | None]) -> tuple[Location, ...]:
    """The first changed line of each function that ``diff`` changes, in its order; ``read`` gives a file's new text.

    A file that changes only outside of functions has one location, without a function.
    """
    by_path: dict[str, list[int]] = {}
    for path, line in changed_lines(diff):
        if path.isprintable() and path not in ("", "/dev/null"):  # bytes that are no text name no file to point at
            by_path.setdefault(path, []).append(line)
    found: dict[tuple[str, str], Location] = {}
    for path, lines in by_path.items():
        text = read(path) if path.endswith(_CODE) else None
        functions = bodies(text) if text is not None else []
        firsts = [body.first for body in functions]
        for line in lines:
            index = bisect_right(firsts, line) - 1
            inside = index >= 0 and line <= functions[index].last
            for name in functions[index].names if inside else ("",):
                found.setdefault((path, name), Location(function=name, path=path, line=line))
    named = {path for path, name in found if name}
    return tuple(one for (path, name), one in found.items() if name or path not in named)
