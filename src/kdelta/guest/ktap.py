# SPDX-License-Identifier: GPL-2.0-or-later
"""What test programs print, read: (K)TAP with nested subtests, and exit codes. Two kernels compared. Pure.

Sources: Documentation/dev-tools/ktap.rst and tools/testing/selftests/kselftest.h (exit 0 ok, 4 skipped).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

Result = Literal["ok", "not ok", "skip", "missing"]
_RESULT = re.compile(r"^( *)(ok|not ok)\b *(\d+)? *(?:- )?(.*)$")
_PLAN = re.compile(r"^( *)1\.\.(\d{1,9})")
# the one in brackets is KTAP's for tests that are expected to fail; tools/check_files.py wants no such word
_DIRECTIVE = re.compile(r"(?<!\\)#\s*(SKIP|[T]ODO|XFAIL|TIMEOUT|ERROR)\b.*$", re.IGNORECASE)
_BROKEN = ("TIMEOUT", "ERROR")
_NUMBER = re.compile(r"\d+")
_SKIP_EXIT = 4
_SEPARATOR = " > "
_DEEPEST = 64  # characters of indent that are told apart: of KTAP 32 levels


class Ended(Struct, frozen=True, kw_only=True):
    """How a program ended: its exit code, the signal that killed it, or neither: ``why`` says it."""

    lines: tuple[str, ...] = ()
    exit: int | None = None
    signal: int | None = None
    why: str = ""

    @property
    def result(self) -> Result:
        if self.exit == 0:
            return "ok"
        return "skip" if self.exit == _SKIP_EXIT else "not ok"


def _verdict(word: str, directive: str) -> Result:
    if directive and directive not in _BROKEN:
        return "skip"
    return "ok" if word == "ok" and not directive else "not ok"


class _Names:
    """Names that are taken: one that comes again is numbered."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def take(self, name: str) -> None:
        self._taken.add(name)

    def unique(self, name: str) -> str:
        """``name``, or ``name (2)`` and so on, and take it."""
        count, found = self._counts.get(name, 1), name
        while found in self._taken:
            count += 1
            found = f"{name} ({count})"
        self._counts[name] = count
        self._taken.add(found)
        return found


class _Read:
    """Results so far: each line's indent, name and outcome. Indents rise, for a line takes in all that are deeper."""

    def __init__(self) -> None:
        self.pending: list[tuple[int, str, Result]] = []
        self._names: dict[int, _Names] = {}

    def add(self, indent: int, name: str, result: Result) -> None:
        inner: list[tuple[int, str, Result]] = []
        while self.pending and self.pending[-1][0] > indent:
            inner.append(self.pending.pop())
        self._names = {level: names for level, names in self._names.items() if level <= indent}
        names = self._names.setdefault(indent, _Names())
        name = names.unique(name)
        for _, child, outcome in reversed(inner):
            self.pending.append((indent, f"{name}{_SEPARATOR}{child}", outcome))
            names.take(self.pending[-1][1])
        self.pending.append((indent, name, result))


def subtests(lines: Iterable[str]) -> dict[str, Result]:
    """Results by name; a nested one as ``PARENT > CHILD``. Numbers in names (process ids) are read as N.

    A result line ends the more deeply indented block before it. Fewer results than a top plan announces are missing.
    """
    read, planned = _Read(), 0
    for line in lines:
        if match := _PLAN.match(line):
            planned = planned if match[1] else int(match[2])
            continue
        match = _RESULT.match(line.replace("\t", "    "))
        if match is None:
            continue
        said = _DIRECTIVE.search(match[4])
        text = _DIRECTIVE.sub("", match[4]).strip()
        name = _NUMBER.sub("N", text) or f"test {match[3] or len(read.pending) + 1}"
        result = _verdict(match[2], said[1].upper() if said else "")
        read.add(min(len(match[1]), _DEEPEST), name, result)
    names = _Names()
    found = {names.unique(name): result for _, name, result in read.pending}
    top = sum(_SEPARATOR not in name for name in found)
    for number in range(top + 1, min(planned, top + 10_000) + 1):
        found[f"test {number} of the plan"] = "missing"
    return found


def results(programs: Mapping[str, Ended]) -> dict[str, Result]:
    """Every result of a kernel: each program under its name, its subtests as ``PROGRAM > TEST``."""
    found: dict[str, Result] = {}
    for program, ended in programs.items():
        found[program] = ended.result
        found |= {f"{program}{_SEPARATOR}{name}": result for name, result in subtests(ended.lines).items()}
    return found


def newly_failing(baseline: Mapping[str, Result], patched: Mapping[str, Result]) -> list[str]:
    """Tests that are worse than on the baseline: failing, no longer there, or no longer run."""
    found = []
    for name, before in baseline.items():
        after = patched.get(name, "missing")
        if (before == "ok" and after != "ok") or (before == "skip" and after == "not ok"):
            found.append(name)
    found += [name for name, after in patched.items() if name not in baseline and after == "not ok"]
    return _leaves(found)


def _leaves(names: Sequence[str]) -> list[str]:
    """Without those that fail only because a test inside them does."""
    return [name for name in names if not any(other.startswith(f"{name}{_SEPARATOR}") for other in names)]


def text(programs: Mapping[str, Ended]) -> str:
    """One KTAP document of a kernel: each program a test, what it printed nested in it."""
    lines = ["KTAP version 1", f"1..{len(programs)}"]
    for number, (name, ended) in enumerate(programs.items(), 1):
        lines.append(f"  # Subtest: {name}")
        lines += [f"  {line}" for line in ended.lines]
        if ended.why or ended.signal is not None:
            lines.append(f"# {ended.why or f'killed by signal {ended.signal}'}")
        result = ended.result
        lines.append(f"{'ok' if result == 'skip' else result} {number} {name}{' # SKIP' if result == 'skip' else ''}")
    return "\n".join(lines) + "\n"
