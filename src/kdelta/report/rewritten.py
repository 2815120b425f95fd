# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of the text of functions between two releases, in words and as a short diff."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kdelta.kernel.rewrites import Rewrite
from kdelta.report.scrub import clean

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
    return f"{removed} lines out, {added} in"


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


def told(rewrites: Sequence[Rewrite]) -> list[Told]:
    """A sentence for each, the first with most of its diff; all diffs together have ``LINES_SHOWN`` lines at most."""
    found, left = [], LINES_SHOWN
    for one in rewrites:
        shown = tuple(clean(line[:1] + line[1:].expandtabs(8), _WIDTH) for line in one.diff[:left])
        found.append(Told(clean(_sentence(one)), shown, len(one.diff) - len(shown)))
        left -= len(shown)
    return found
