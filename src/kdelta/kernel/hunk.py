# SPDX-License-Identifier: GPL-2.0-or-later
"""One hunk against the lines of a real file: repaired, placed, or refused. Pure.

A mail may have lost white space, context blanks or its last lines. The counts in the ``@@`` line are trusted, lines
are compared with white space removed, and what is kept is the file's own text. Only added lines must be guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kdelta.kernel.indent import Indenter

MAX_OFFSET = 200  # lines
MAX_CUT = 3  # context lines that a mail may have lost at the end of a hunk
_WRAP = 60  # a mailer does not wrap lines shorter than this
_BLANK = re.compile(r"\s+")


class Hunk(Struct, frozen=True, kw_only=True):
    """A hunk as it came. ``lines`` run to the next hunk and may be mangled; starts count from 1."""

    number: int
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str = ""
    lines: tuple[str, ...] = ()

    @property
    def header(self) -> str:
        return f"@@ -{self.old_start},{self.old_count} +{self.new_start},{self.new_count} @@"

    def reversed(self) -> Hunk:
        """The hunk that takes this one back."""
        swap = {"+": "-", "-": "+"}
        return Hunk(
            number=self.number,
            old_start=self.new_start,
            old_count=self.new_count,
            new_start=self.old_start,
            new_count=self.old_count,
            section=self.section,
            lines=tuple(swap.get(line[:1], line[:1]) + line[1:] for line in self.lines),
        )


class Placed(Struct, frozen=True, kw_only=True):
    """A hunk that fits: ``ops`` are (sign, text) with the file's own text; ``at`` counts from 0."""

    at: int
    ops: tuple[tuple[str, str], ...]
    offset: int = 0
    fuzz: int = 0
    guessed: int = 0  # added lines whose indentation was rebuilt
    repaired: bool = False
    newline_at_end: bool | None = None  # of the new file, where the hunk says so


class Misfit(Exception):
    """Why a hunk does not fit; the caller names the file."""


def squeeze(line: str) -> str:
    """``line`` without white space: what is left after any mailer."""
    return _BLANK.sub("", line)


def _joined(raw: Sequence[str], index: int, text: str, wanted: str) -> int:
    """How many further raw lines, wrapped off by a mailer, complete ``text`` to ``wanted``; -1 if none do."""
    have = squeeze(text)
    for extra in range(1, 4):
        if not have or not wanted.startswith(have) or index + extra >= len(raw):
            return -1
        have += squeeze(raw[index + extra])
        if have == wanted:
            return extra
    return -1


class _Walk:
    """Reads raw lines beside the file from one place on; ``ops`` stay raw for added lines."""

    def __init__(self, hunk: Hunk, raw: Sequence[str], real: Sequence[str], squeezed: Sequence[str]) -> None:
        self.hunk, self.raw, self.real, self.squeezed = hunk, raw, real, squeezed
        self.ops: list[tuple[str, str]] = []
        self.indents: dict[str, Counter[str]] = {}
        self.repaired = False
        self.newline_at_end: bool | None = None

    def _match(self, sign: str, raw_text: str, position: int) -> None:
        real = self.real[position]
        self.ops.append((sign, real))
        self.repaired |= raw_text != real
        if real.strip():
            self.indents.setdefault(_indent(raw_text), Counter())[_indent(real)] += 1

    def _consumes(self, sign: str, index: int, position: int) -> int:
        """Raw lines that make the file's line at ``position``; 0 if they do not."""
        raw, wanted = self.raw[index], self.squeezed[position]
        text = raw[1:] if sign == "-" else raw
        if squeeze(text) == wanted:
            return 1
        return _joined(self.raw, index, text, wanted) + 1

    def run(self, at: int, old: int, new: int) -> bool:
        """True when ``old`` lines of the file from ``at`` and ``new`` lines of the result come out."""
        index, position, made, end = 0, at, 0, at + old
        if end > len(self.real):
            return False
        while position < end or made < new:
            raw = self.raw[index] if index < len(self.raw) else None
            if raw is not None and raw.startswith("\\ "):
                self._marker()
                index += 1
            elif raw is not None and raw.startswith("+") and made < new:
                self.ops.append(("+", raw[1:]))
                index, made = index + 1, made + 1
            elif (
                raw is not None
                and raw.startswith("-")
                and position < end
                and (n := self._consumes("-", index, position))
            ):
                self._match("-", raw[1:] if n == 1 else "", position)
                index, position = index + n, position + 1
            elif raw is not None and position < end and made < new and (n := self._consumes(" ", index, position)):
                self._match(" ", raw[1:] if raw.startswith(" ") and n == 1 else raw if n == 1 else "", position)
                index, position, made = index + n, position + 1, made + 1
            elif raw is not None and self._continues(raw):
                self.ops[-1] = ("+", f"{self.ops[-1][1].rstrip()} {raw.strip()}")
                self.repaired = True
                index += 1
            elif self._is_cut(index, end - position, new - made):
                self.ops += [(" ", line) for line in self.real[position:end]]
                self.repaired = True
                return True
            else:
                return False
        if index < len(self.raw) and self.raw[index].startswith("\\ "):
            self._marker()
        return True

    def _marker(self) -> None:
        if self.ops and self.ops[-1][0] != "-":
            self.newline_at_end = False

    def _continues(self, raw: str) -> bool:
        """A long added line that a mailer wrapped goes on here."""
        added = bool(self.ops) and self.ops[-1][0] == "+"
        return added and len(self.ops[-1][1]) >= _WRAP and raw[:1] not in ("", "+", "-", "@", " ", "\t")

    def _is_cut(self, index: int, old_left: int, new_left: int) -> bool:
        """The mail ends here, and what is missing can only be context: no more of it than stands before the change."""
        rest = self.raw[index:]
        signature = next((i for i, line in enumerate(rest) if line.rstrip() == "--"), len(rest))
        if old_left != new_left or old_left > MAX_CUT or any(line.strip() for line in rest[:signature]):
            return False
        signs = "".join(sign for sign, _ in self.ops)
        before, after = len(signs) - len(signs.lstrip()), len(signs) - len(signs.rstrip())
        return after + old_left <= max(MAX_CUT, before)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _rebuilt(text: str, style: Indenter, indents: dict[str, Counter[str]]) -> str:
    """An added line whose indentation was lost: as its neighbours in the hunk have it, else by style."""
    body = text.strip()
    known = indents.get(_indent(text), Counter())
    if not body:
        return ""
    if len(known) == 1 and len(indents) > 1:
        return next(iter(known)) + text.lstrip()
    return style.suggest(body) + text.lstrip()


def _finish(walk: _Walk) -> tuple[tuple[tuple[str, str], ...], int]:
    """Ops with the indentation of added lines rebuilt where the mail's white space cannot be trusted."""
    if all(set(real) == {raw} for raw, real in walk.indents.items()):
        return tuple(walk.ops), 0
    ops: list[tuple[str, str]] = []
    guessed, style = 0, Indenter()
    for sign, text in walk.ops:
        line = _rebuilt(text, style, walk.indents) if sign == "+" else text
        guessed += line != text
        ops.append((sign, line))
        if sign != "-":
            style.read(line)
    return tuple(ops), guessed


def _try(hunk: Hunk, real: Sequence[str], squeezed: Sequence[str], at: int, head: int, tail: int) -> Placed | None:
    """Fit at ``at`` leaving out ``head`` first and ``tail`` last context lines (0 or 1)."""
    raw = hunk.lines[head:]
    if head and (not hunk.lines or hunk.lines[0][:1] in "+-"):
        return None
    old, new = hunk.old_count - head - tail, hunk.new_count - head - tail
    walk = _Walk(hunk, raw, real, squeezed)
    if min(old, new) < 0 or at < 0 or not walk.run(at, old, new):
        return None
    if (head or tail) and not any(sign in " -" and text.strip() for sign, text in walk.ops):
        return None
    ops, guessed = _finish(walk)
    return Placed(
        at=at,
        ops=ops,
        fuzz=max(head, tail),
        guessed=guessed,
        repaired=walk.repaired,
        newline_at_end=walk.newline_at_end,
    )


def _nearby(expected: int, lowest: int, highest: int) -> Iterator[int]:
    for distance in range(1, MAX_OFFSET + 1):
        for at in (expected - distance, expected + distance):
            if lowest <= at <= highest:
                yield at


def _why(hunk: Hunk, real: Sequence[str], squeezed: Sequence[str], at: int) -> str:
    """The first line that differs at the place that the hunk names."""
    position = at
    for raw in hunk.lines:
        if raw.startswith(("+", "\\")):
            continue
        text = raw[1:] if raw[:1] in " -" else raw
        if position >= len(real) or position < 0:
            return f"the file has only {len(real)} lines"
        if squeeze(text) != squeezed[position]:
            return f"line {position + 1} is {real[position].strip()[:60]!r}, the patch has {text.strip()[:60]!r}"
        position += 1
    return f"its counts {hunk.header} do not match its lines"


def place(hunk: Hunk, real: Sequence[str], squeezed: Sequence[str], shift: int, lowest: int) -> Placed:
    """Find the one place of ``hunk`` in a file.

    ``real`` are the file's lines, ``squeezed`` the same without white space; ``shift`` is how far the hunk before this
    one was off, ``lowest`` the first line (from 0) that it may touch. Offsets up to MAX_OFFSET and one line of fuzz are
    accepted where the place is the only one.

    Raises:
        Misfit: no place, or more than one.
    """
    stated = hunk.old_start - (1 if hunk.old_count else 0)
    for fuzz, trims in ((0, ((0, 0),)), (1, ((1, 0), (0, 1), (1, 1)))):
        for head, tail in trims:
            expected = stated + shift + head
            found = _try(hunk, real, squeezed, expected, head, tail) if expected >= lowest else None
            places = [found] if found else []
            if (not found or fuzz) and hunk.old_count > head + tail:
                around = _nearby(expected, lowest, len(real))
                places += [p for at in around if (p := _try(hunk, real, squeezed, at, head, tail))]
            if len(places) > 1:
                lines = ", ".join(str(p.at + 1) for p in sorted(places, key=lambda p: p.at)[:4])
                raise Misfit(f"fits at more than one place (lines {lines}): ambiguous")
            if places:
                p = places[0]
                offset = p.at - head - stated
                return Placed(
                    at=p.at,
                    ops=p.ops,
                    offset=offset,
                    fuzz=p.fuzz,
                    guessed=p.guessed,
                    repaired=p.repaired,
                    newline_at_end=p.newline_at_end,
                )
    raise Misfit(
        f"does not fit within {MAX_OFFSET} lines and 1 line of fuzz: {_why(hunk, real, squeezed, stated + shift)}"
    )
