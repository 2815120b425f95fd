# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a patch that fits nowhere is in the tree in another form: what it brings is there. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Set

from kdelta.kernel.diff import Change

_AS_OFTEN = 2  # as a patch adds a name: what stands in a file more often was not brought by it
_SHARE = 2 / 3  # of the lines of code that it adds; a quirk for a machine that 7.3.4 does not know had 3 of 5 there
_NEAR = 12  # lines
_LEAST = 5  # characters of a line that says something, without white space
_WORD = re.compile(r"\b[A-Za-z_]\w{4,}", re.ASCII)
_COMMENT = re.compile(r"\s*(?:\*|/\*|//|#\s)")


def _brought(changes: Iterable[Change]) -> tuple[list[str], frozenset[str]]:
    """The lines of code that a patch adds, and the names that stand in these and in none of its other lines."""
    added: list[str] = []
    other: set[str] = set()
    for line in (line for change in changes for hunk in change.hunks for line in hunk.lines):
        if not line.startswith("+"):
            other.update(_WORD.findall(line))
        elif not _COMMENT.match(line, 1):
            added.append(line[1:])
    return added, frozenset(word for line in added for word in _WORD.findall(line)) - other


def _stands(change: Change, text: str, kept: Set[str]) -> bool:
    """Whether one of the lines ``kept`` is in ``text`` near to another line of its hunk, which stands in few places.

    A line that calls what the whole kernel calls (``cond_resched();``) is in many a file, and elsewhere in it.
    """
    lines = ["".join(line.split()) for line in text.split("\n")]
    often = Counter(lines)
    for hunk in change.hunks:
        mine = {"".join(line[1:].split()) for line in hunk.lines if not line.startswith("-")}
        others = {line for line in mine if len(line) >= _LEAST and often[line] <= _AS_OFTEN}
        for at, line in enumerate(lines):
            around = lines[max(at - _NEAR, 0) : at + _NEAR + 1] if line in mine & kept else []
            if any(other in others and other != line for other in around):
                return True
    return False


def names_there(changes: Iterable[Change], read: Callable[[str], str | None]) -> str:
    """Why a patch seems to be in the tree with other lines around it, or ""; ``read`` is that of ``apply``."""
    changes = [change for change in changes if change.new]
    added, names = _brought(changes)
    text = "\n".join(read(change.new) or "" for change in changes if change.new)
    words = Counter(_WORD.findall(text))
    if not names or not names <= words.keys():
        return ""
    brought = Counter(word for line in added for word in _WORD.findall(line))
    own = {name for name in names if words[name] <= _AS_OFTEN * brought[name]}  # not mutex_unlock() of any file
    there = {"".join(line.split()) for line in text.split("\n")}
    said = [(line, "".join(line.split())) for line in added]
    found = [(line, squeezed in there) for line, squeezed in said if len(squeezed) >= _LEAST]
    kept = frozenset(squeezed for line, squeezed in said if squeezed in there and own.intersection(_WORD.findall(line)))
    if not any(_stands(change, read(change.new) or "", kept) for change in changes if change.new) or sum(
        is_there for _, is_there in found
    ) < _SHARE * len(found):
        return ""
    shown = sorted(own)
    return f"the names it adds exist ({', '.join(shown[:4])}{', ...' if len(shown) > 4 else ''})"
