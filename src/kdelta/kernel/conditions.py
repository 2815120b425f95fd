# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that conditions in C put lines under: ``if (IS_ENABLED(CONFIG_X)) { ... }`` does nothing with X off. Pure.

No C is parsed: brackets are matched in the text without comments and strings, which the kernel's style is enough for.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from msgspec import Struct

Terms = tuple[tuple[str, bool], ...]  # options, each with whether it must be on

MODULE = "_MODULE"  # of a name: whether it is built as one
_TERM = re.compile(r"(!?)\s*(?:defined|IS_ENABLED|IS_BUILTIN|IS_REACHABLE)\s*\(?\s*CONFIG_([A-Z0-9_]+)\s*\)?")
_NESTED = re.compile(r"\([^()]*\)")
_ASKS = re.compile(r"IS_(?:ENABLED|BUILTIN|REACHABLE)\s*\(\s*CONFIG_")
_BLANKED = re.compile(
    r'/\*.*?(?:\*/|\Z)|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.DOTALL | re.MULTILINE,
)  # comments, one without an end to that of the text; strings; directives of the preprocessor
_IF = re.compile(r"\bif\s*\(")
_BRACKET = re.compile(r"[(){};]")
_ELSE = re.compile(r"\s*else\b(?!\s*if\b)")
_LEAVES = re.compile(r"\s*\{?\s*return\b")
_LABEL = re.compile(r"^[ \t]*(?:(case\b[^\n]*|default)|\w+)[ \t]*:[ \t]*$", re.MULTILINE)
_MOST = 1000  # ranges of a file
_MOST_CHARS = 2000  # of a condition
_MOST_BRACKETS = 64  # of a statement without braces


def terms(condition: str) -> Terms:
    """The options that all must be as told for ``condition`` to hold; () where it is of another kind."""
    if len(condition) > _MOST_CHARS:
        return ()
    outer, nested = "", condition
    while outer != nested:
        outer, nested = nested, _NESTED.sub("", nested)
    if "||" in outer or "?" in outer or outer.count("&&") != condition.count("&&"):
        return ()
    found = [_TERM.fullmatch(term.strip()) for term in condition.strip().split("&&")]
    return tuple((match[2].removesuffix(MODULE), not match[1]) for match in found if match)


class Range(Struct, frozen=True):
    """Lines of a file, counted from 1, and what must hold so that they do anything."""

    first: int
    last: int
    terms: Terms


def ranges(text: str) -> list[Range]:
    """What stands under conditions that name options: the statement, its ``else``, and what follows a ``return``."""
    if not _ASKS.search(text):
        return []
    plain = _BLANKED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    brackets = _Brackets(plain)
    starts = [0, *(match.end() for match in re.finditer("\n", plain))]
    found: list[Range] = []
    for first, last, under in _spans(plain, brackets):
        found.append(Range(bisect_right(starts, first), bisect_right(starts, last), under))
        if len(found) == _MOST:
            break
    return found


def _spans(plain: str, brackets: _Brackets) -> Iterator[tuple[int, int, Terms]]:
    for match in _IF.finditer(plain):
        closed = brackets.other.get(match.end() - 1)
        under = () if closed is None else terms(plain[match.end() : closed])
        end = brackets.statement_end(closed + 1) if under and closed is not None else None
        if closed is None or end is None:
            continue
        yield closed, end, under
        if len(under) > 1 or "&&" in plain[match.end() : closed]:
            continue  # what another part of the condition has a say in
        against = ((under[0][0], not under[0][1]),)
        other = _ELSE.match(plain, end + 1)
        if other and (last := brackets.statement_end(other.end())) is not None:
            yield other.end(), last, against
        elif not other and _LEAVES.match(plain, closed + 1):
            yield end + 1, _reached_only_so(plain, brackets, end), against


def _reached_only_so(plain: str, brackets: _Brackets, end: int) -> int:
    """Up to where code that follows the statement ending at ``end``, in its block, runs only after it."""
    block = brackets.around.get(end, -1)
    last = brackets.other.get(block, end)
    for label in _LABEL.finditer(plain, end + 1, last):
        if label[1] is None or brackets.block(label.end()) == block:
            return label.start()
    return last


class _Brackets:
    """The brackets of a text, each with the one that closes it."""

    def __init__(self, plain: str) -> None:
        self.at: Sequence[int] = [match.start() for match in _BRACKET.finditer(plain)]
        self.other: dict[int, int] = {}
        self._plain = plain
        self.around: dict[int, int] = {}  # of a bracket or ; what opens the block that it stands in
        self._opening: dict[int, int] = {}
        opened: list[int] = []
        for at in self.at:
            sign = plain[at]
            if sign in ")}" and opened and plain[opened[-1]] == {")": "(", "}": "{"}[sign]:
                self.other[opened[-1]] = at
                self._opening[at] = opened.pop()
            if opened:
                self.around[at] = opened[-1]
            if sign in "({":
                opened.append(at)

    def statement_end(self, start: int) -> int | None:
        """Where the statement ends that begins at ``start``; None where that cannot be told."""
        index = bisect_right(self.at, start - 1)
        for _ in range(_MOST_BRACKETS):
            if index >= len(self.at):
                return None
            at = self.at[index]
            sign = self._plain[at]
            if sign == ";":
                return at
            closed = self.other.get(at)
            if closed is None or sign == "{":
                return closed
            index = bisect_right(self.at, closed)
        return None

    def block(self, at: int) -> int:
        """What opens the block that ``at`` is in; -1 where that cannot be told."""
        index = bisect_right(self.at, at)
        if index >= len(self.at):
            return -1
        following = self.at[index]
        return self._opening.get(following, self.around.get(following, -1))
