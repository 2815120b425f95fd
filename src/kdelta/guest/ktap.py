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
_PLAN = re.compile(r"^( *)1\.\.(\d+)")
# the one in brackets is KTAP's for tests that are expected to fail; tools/check_files.py wants no such word
_DIRECTIVE = re.compile(r"(?<!\\)#\s*(SKIP|[T]ODO|XFAIL|TIMEOUT|ERROR)\b.*$", re.IGNORECASE)
_BROKEN = ("TIMEOUT", "ERROR")
_NUMBER = re.compile(r"\d+")
_SKIP_EXIT = 4
_SEPARATOR = " > "


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


def _unique(name: str, taken: Iterable[str]) -> str:
    known = set(taken)
    count, found = 1, name
    while found in known:
        count += 1
        found = f"{name} ({count})"
    return found


def subtests(lines: Iterable[str]) -> dict[str, Result]:
    """Results by name; a nested one as ``PARENT > CHILD``. Numbers in names (process ids) are read as N.

    A result line ends the more deeply indented block before it. Fewer results than a top plan announces are missing.
    """
    pending: list[tuple[int, str, Result]] = []
    planned = 0
    for line in lines:
        if match := _PLAN.match(line):
            planned = planned if match[1] else int(match[2])
            continue
        match = _RESULT.match(line.replace("\t", "    "))
        if match is None:
            continue
        indent, said = len(match[1]), _DIRECTIVE.search(match[4])
        text = _DIRECTIVE.sub("", match[4]).strip()
        name = _NUMBER.sub("N", text) or f"test {match[3] or len(pending) + 1}"
        result = _verdict(match[2], said[1].upper() if said else "")
        children = [one for one in pending if one[0] > indent]
        pending = [one for one in pending if one[0] <= indent]
        name = _unique(name, (other for level, other, _ in pending if level == indent))
        pending += [(indent, f"{name}{_SEPARATOR}{child}", outcome) for _, child, outcome in children]
        pending.append((indent, name, result))
    found: dict[str, Result] = {}
    for _, name, result in pending:
        found[_unique(name, found)] = result
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
