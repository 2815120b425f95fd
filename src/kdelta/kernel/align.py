# SPDX-License-Identifier: GPL-2.0-or-later
"""The lines of a mangled hunk beside those of a real file: which is which. Pure.

Lines are compared with white space removed, and the counts of the ``@@`` line are trusted. A hunk is read in three
ways, each more lenient than the one before:

- ``literal``: the first character says what a line is;
- ``stripped``: a context line may have lost its blank, so that any line may be one; long lines may be wrapped;
- ``gaps``: blank context lines may be missing, wherever the file has some, and up to three of any kind at the end.

Where a hunk can be read in two ways of one kind, that of git counts: as many context lines at both ends, and no more
than twice as many within. Where that decides nothing either, the hunk is ambiguous, unless the ways differ in nothing
but the place of blank lines.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

How = Literal["literal", "stripped", "gaps"]
HOWS: tuple[How, ...] = ("literal", "stripped", "gaps")
CONTEXT = 3  # lines, of git and diff -u
_WRAPPED = 70  # characters: no mailer wraps a line that ends before, were the next word still in it
_MOST_WRAPPED = 3
_MOST_STEPS = 100_000
_BLANK = re.compile(r"\s+")
_END = re.compile(r"^--\s*$")  # a mail's signature follows


class Ambiguous(Exception):
    """The lines can be read in more than one way, or in too many to try; the message says which, for ``Misfit``."""


class Effort:
    """What may still be spent on one hunk: steps of reading, a few microseconds each. Thousands of equal lines cost."""

    def __init__(self, lines: int) -> None:
        self._left = _MOST_STEPS + 20 * lines

    def step(self, count: int = 1) -> None:
        """Spend one, or ``count``.

        Raises:
            Ambiguous: none is left.
        """
        self._left -= count
        if self._left < 0:
            raise Ambiguous("has too many similar lines to locate it: ambiguous")


class Line(Struct, frozen=True):
    """A raw line, with and without its first character also squeezed; ``sign`` is what that one says here."""

    raw: str
    sign: str
    whole: str
    behind: str


class Aligned(Struct, frozen=True, kw_only=True):
    """``ops`` are (sign, text), the text of kept and removed lines being the file's own; of added ones the mail's.

    ``seen`` are (what the mail had, what the file has) for kept and removed lines, with their signs where they had one.
    """

    ops: tuple[tuple[str, str], ...]
    seen: tuple[tuple[str, str, str], ...]
    used: int  # raw lines
    newline_at_end: bool | None = None
    filled: bool = False  # lines that the mail lost were taken from the file
    guessed: bool = False  # where blank ones among them stand is not sure


class _Step(Struct, frozen=True):
    """A path through the hunk, a list that grows at its end: one op, and what the mail had for it (None: nothing)."""

    before: _Step | None
    sign: str  # "\\" for the note on a missing newline
    text: str
    raw: str | None


class _State(Struct, frozen=True):
    """How far a path came: raw lines used, old lines kept or removed, new lines made; context lines in a row."""

    used: int
    old: int
    new: int
    run: int = 0
    changed: bool = False
    wraps: int = 0  # length of the last line if it is an added one, which may go on in the next
    filled: bool = False  # context that the mail lacks at its end was taken from the file


def _width(text: str) -> int:
    """Columns of an added line with its sign."""
    return len(f"+{text}".expandtabs(8))


def squeeze(line: str) -> str:
    """``line`` without white space: what is left after any mailer."""
    return _BLANK.sub("", line)


_SWAPPED = {"+": "-", "-": "+"}


def lines_of(raw: Sequence[str], take_out: bool = False) -> tuple[Line, ...]:
    """Raw lines ready for ``align``; to be taken out, added lines are those that go."""
    signs = ((_SWAPPED.get(one[:1], one[:1]) if take_out else one[:1]) for one in raw)
    return tuple(Line(one, sign, squeeze(one), squeeze(one[1:])) for one, sign in zip(raw, signs, strict=True))


def own_lines(lines: Sequence[Line]) -> int:
    """How many of the last ``lines`` of a mail can be its hunk's: not the empty ones and the signature behind."""
    count = next((i for i, line in enumerate(lines) if _END.match(line.raw)), len(lines))
    while count and not lines[count - 1].raw:
        count -= 1
    return count


def beginnings(lines: Sequence[Line], counts: tuple[int, int], how: How) -> frozenset[str] | None:
    """What the first of the file's lines may be, squeezed, for ``align`` to come further there; None: it may be any.

    For ``gaps``, which takes lines of the file that the mail lacks, this does not hold.
    """
    if not lines:
        return frozenset()
    first, room = lines[0], counts[1] > 0
    if first.raw.startswith("\\ ") or (first.sign == "+" and room):
        return None
    bare = room and (first.sign in ("", " ") or how != "literal")
    whole = [*([first.behind] if first.sign == "-" else []), *([first.whole] if bare else [])]
    further = [line.whole for line in lines[1 : _MOST_WRAPPED + 1]] if how != "literal" else []
    wrapped = (joined for one in whole if one for joined in itertools.accumulate(further, initial=one))
    return frozenset((*whole, *wrapped))


class _Aligner:
    """All that stays the same while one hunk is tried at one place."""

    def __init__(
        self, lines: Sequence[Line], real: Sequence[str], squeezed: Sequence[str], at: int, counts: tuple[int, int],
        own: int, how: How, effort: Effort, context: int | None, signs: bool = False,
    ) -> None:  # fmt: skip
        self.lines, self.real, self.squeezed, self.at, self.counts = lines, real, squeezed, at, counts
        self.lenient, self.gaps = how != "literal", how == "gaps"
        self.context, self.signs = context, signs
        self.own, self.effort = own, effort

    def _wanted(self, state: _State) -> str:
        return self.squeezed[self.at + state.old]

    def _kept(self, path: _Step | None, state: _State, used: int, raw: str | None) -> tuple[_Step, _State]:
        text = self.real[self.at + state.old]
        after = _State(state.used + used, state.old + 1, state.new + 1, state.run + 1, state.changed)
        return _Step(path, " ", text, raw), after if not state.filled else replace(after, filled=True)

    def _removed(self, path: _Step | None, state: _State, used: int, raw: str) -> tuple[_Step, _State]:
        step = _Step(path, "-", self.real[self.at + state.old], raw)
        return step, _State(state.used + used, state.old + 1, state.new, 0, True)

    def _joined(self, used: int, have: str, wanted: str) -> int:
        """How many further raw lines, wrapped off by a mailer, complete ``have`` to ``wanted``; 0 if none do."""
        for extra in range(1, _MOST_WRAPPED + 1):
            if not have or not wanted.startswith(have) or used + extra >= len(self.lines):
                return 0
            have += self.lines[used + extra].whole
            if have == wanted:
                return extra
        return 0

    def _next(self, path: _Step | None, state: _State) -> Iterator[tuple[_Step, _State]]:
        """Where one more line may lead, the plainest reading first."""
        old, new = self.counts
        line = self.lines[state.used] if state.used < len(self.lines) else None
        room = state.old < old
        if line is not None:
            yield from self._read(path, state, line, room)
        if self.gaps and room and state.new < new:
            lacking = old - state.old
            if not self._wanted(state):
                yield self._kept(path, state, 0, None)
            elif state.used >= self.own and lacking == new - state.new <= CONTEXT:
                step, to = self._kept(path, state, 0, None)
                yield step, replace(to, filled=True)

    def _read(self, path: _Step | None, state: _State, line: Line, room: bool) -> Iterator[tuple[_Step, _State]]:
        sign, fresh = line.sign, state.new < self.counts[1]
        if line.raw.startswith("\\ "):
            yield _Step(path, "\\", "", None), _State(state.used + 1, state.old, state.new, state.run, state.changed)
            return
        if sign == "+" and fresh:
            yield self._added(path, state, line.raw[1:])
        if sign == "-" and room and line.behind == self._wanted(state):
            yield self._removed(path, state, 1, line.raw)
        bare = sign in ("", " ") or (self.lenient and not (self.signs and sign in ("+", "-")))
        if room and fresh and bare and line.whole == self._wanted(state):
            yield self._kept(path, state, 1, line.raw)
        if self.lenient and not self.signs:
            yield from self._wrapped(path, state, line, room, fresh)

    def _added(self, path: _Step | None, state: _State, text: str) -> tuple[_Step, _State]:
        after = _State(state.used + 1, state.old, state.new + 1, 0, True, _width(text))
        return _Step(path, "+", text, None), after

    def _wrapped(
        self, path: _Step | None, state: _State, line: Line, room: bool, fresh: bool
    ) -> Iterator[tuple[_Step, _State]]:
        if room and line.sign == "-" and (n := self._joined(state.used, line.behind, self._wanted(state))):
            yield self._removed(path, state, n + 1, "")
        if room and fresh and (n := self._joined(state.used, line.whole, self._wanted(state))):
            yield self._kept(path, state, n + 1, "")
        if path is not None and self._continues(state):
            text = f"{path.text.rstrip()} {line.raw.strip()}"
            after = _State(state.used + 1, state.old, state.new, 0, True, _width(line.raw))
            yield _Step(path.before, "+", text, None), after

    def _continues(self, state: _State) -> bool:
        """Whether a mailer that wrapped the last line, an added one, would go on so."""
        if not state.wraps or state.used >= self.own:
            return False
        words = self.lines[state.used].raw.split()
        bare = self.lines[state.used].raw[:1] not in ("", "+", "-", " ", "\t", "\\")
        if not bare or not words:  # none: of form feeds, of no-break spaces
            return False
        return state.wraps + 1 + len(words[0]) >= _WRAPPED and any(c.isalnum() for c in words[0])

    def _plausible(self, state: _State) -> bool:
        """Whether git would write a hunk that begins like this."""
        if self.context is None:
            return True
        if not state.changed:
            return state.run <= self.context
        return state.run <= 2 * self.context

    def _opens(self, before: _State, after: _State) -> bool:
        """Whether the first change comes after as many context lines as git writes."""
        if self.context is None or before.changed or not after.changed:
            return True
        return before.run == min(self.context, self.at + before.old)

    def _whole(self, state: _State) -> bool:
        """Whether the hunk is complete, and what is left of the mail is none of it."""
        if (state.old, state.new) != self.counts:
            return False
        if self._continues(state):
            return False
        rest = [line.raw for line in self.lines[state.used : self.own]]
        if any(raw[:1] in ("+", "-") and raw.rstrip() != "---" for raw in rest) or (self.gaps and rest):
            return False
        below = len(self.real) - self.at - state.old
        # At the end of a file a lost change would look the same as lost context.
        if state.filled and (below == 0 or state.run != CONTEXT):
            return False
        return self.context is None or (state.run == self.context or (below == 0 and state.run < self.context))

    def _marked(self, path: _Step | None, state: _State) -> _Step | None:
        """With the note on a missing newline that may follow the last line."""
        noted = state.used < len(self.lines) and self.lines[state.used].raw.startswith("\\ ")
        return _Step(path, "\\", "", None) if noted else path

    def read(self, last: bool) -> Aligned | None:
        """The first complete reading, or the ``last``; None if there is none. Equal ones are the only one."""
        stack: list[tuple[_Step | None, _State]] = [(None, _State(0, 0, 0))]
        been: set[_State] = set()
        while stack:
            path, state = stack.pop()
            self.effort.step()
            if self._whole(state):
                return _result(self._marked(path, state), state.used)
            if state in been:
                continue
            been.add(state)
            ways = [way for way in self._next(path, state) if self._plausible(way[1]) and self._opens(state, way[1])]
            stack += ways if last else reversed(ways)
        return None


def _result(path: _Step | None, used: int) -> Aligned:
    steps: list[_Step] = []
    while path is not None:
        steps.append(path)
        path = path.before
    steps.reverse()
    newline: bool | None = None
    for before, step in itertools.pairwise(steps):
        if step.sign == "\\" and before.sign != "-":
            newline = False
    lines = [step for step in steps if step.sign != "\\"]
    return Aligned(
        ops=tuple((step.sign, step.text) for step in lines),
        seen=tuple((step.sign, step.raw, step.text) for step in lines if step.raw),
        used=used,
        newline_at_end=newline,
        filled=any(step.raw is None and step.sign == " " for step in lines),
    )


def align(
    lines: Sequence[Line], real: Sequence[str], squeezed: Sequence[str], at: int, counts: tuple[int, int], own: int,
    how: How, effort: Effort,
) -> Aligned | None:  # fmt: skip
    """The hunk of ``counts`` (old, new) lines with the file's lines from ``at`` (from 0) on; None if it does not fit.

    ``squeezed`` are the ``real`` lines without white space. Of the ``lines`` the first ``own`` are the hunk's; those
    behind may be, where they fit.

    Raises:
        Ambiguous: it fits in more than one way, and git's would not tell which; or ``effort`` is spent.
    """
    if at < 0 or min(counts) < 0 or at + counts[0] > len(real):
        return None
    for context in (None, CONTEXT):
        aligner = _Aligner(lines, real, squeezed, at, counts, own, how, effort, context)
        found = aligner.read(last=False)
        if found is None:
            break
        other = aligner.read(last=True)
        if how == "literal" or (other is not None and found.ops == other.ops):
            return found
    if context is None:
        return None
    for context in (CONTEXT, None) if how == "gaps" else ():
        # Taking signs at their word, readings differ only in where blank lines stand: before what is added, mostly.
        found = _Aligner(lines, real, squeezed, at, counts, own, how, effort, context, signs=True).read(last=True)
        if found is not None:
            return replace(found, guessed=True)
    raise Ambiguous("lost blank lines, and where they belong is unclear: ambiguous")
