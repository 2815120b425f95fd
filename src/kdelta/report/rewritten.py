# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of the text of functions between two releases, in words and as a short diff."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec import Struct

from kdelta.kernel.rewrites import Rewrite
from kdelta.report.scrub import clean
from kdelta.results.findings import Finding

LINES_SHOWN = 20  # of all diffs of a finding
_WIDTH = 110
_NAMES_SHOWN = 4


class Told(Struct, frozen=True):
    """A sentence; the first lines of a diff, and how many more it has."""

    text: str
    diff: tuple[str, ...] = ()
    more: int = 0


def _count(lines: Sequence[str]) -> str:
    removed, added = (sum(line.startswith(sign) for line in lines) for sign in "-+")
    return f"{removed} line{'' if removed == 1 else 's'} out, {added} in"


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join([*names[:_NAMES_SHOWN], *([f"{more} more"] if more > 0 else [])])


def _sentence(one: Rewrite) -> str:
    moved = bool(one.before and one.after) and one.before != one.after
    match one.became:
        case "new":
            return f"{one.function} is new in {one.after}"
        case "gone":
            return f"{one.function} is gone from {one.before}"
        case "renamed" if one.before:
            return f"{one.function} of {one.before} is now called {one.other}, and is otherwise the same"
        case "renamed":
            return f"{one.function} of {one.after} was called {one.other}, and is otherwise the same"
        case "both" | "same" if one.inline == (False, True):
            return f"{one.function} is inline from here on ({one.after})"
        case "both" | "same" if one.inline == (True, False):
            return f"{one.function} was inline before ({one.before})"
        case "both":
            return f"{one.function} is in both ({one.after}): what calls it changed, or where the compiler puts it"
        case "same" if one.other:
            return (
                f"{one.function} reads the same in both; {one.other}, which leads to it in {one.after}, changed: "
                + _count(one.diff)
            )
        case "same":
            return f"{one.function} reads the same in both ({one.before}{f', then {one.after}' if moved else ''})" + (
                f"; changed of what it calls there: {_names(one.beneath)}" if one.beneath else ""
            )
    where = f"moved from {one.before} to {one.after} and changed" if moved else f"changed in {one.after}"
    return f"{one.function} {where}: {_count(one.diff)}"


def told(rewrites: Sequence[Rewrite], shown: Set[tuple[str, ...]] = frozenset()) -> list[Told]:
    """A sentence for each, the first with most of its diff; all diffs together have ``LINES_SHOWN`` lines at most.

    ``shown``: diffs that stand above already.
    """
    found, left = [], LINES_SHOWN
    for one in rewrites:
        if one.diff in shown:
            found.append(Told(clean(f"{_sentence(one)}, as above")))
            continue
        lines = tuple(clean(line[:1] + line[1:].expandtabs(8), _WIDTH) for line in one.diff[:left])
        found.append(Told(clean(_sentence(one)), lines, len(one.diff) - len(lines)))
        left -= len(lines)
    return found


def of_all(findings: Sequence[Finding]) -> list[list[Told]]:
    """``told`` of each finding; a diff stands once."""
    shown: set[tuple[str, ...]] = set()
    found = []
    for finding in findings:
        found.append(told(finding.rewrites, shown))
        shown |= {one.diff for one, said in zip(finding.rewrites, found[-1], strict=True) if said.diff}
    return found
