# SPDX-License-Identifier: GPL-2.0-or-later
"""One hunk against the lines of a real file: repaired, placed, or refused. Pure.

What a mail did to its lines is undone by ``align``; of the places where it then fits there must be one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

from msgspec import Struct
from msgspec.structs import replace

from kdelta.kernel.align import HOWS, Ambiguous, Effort, How, Line, align, beginnings, lines_of, own_lines, squeeze

MAX_OFFSET = 200  # lines; further off, the hunk must be whole and its function be there
_HEADING = re.compile(r"[A-Za-z_$]")  # what `git diff` and `diff -p` show behind the second @@ begins so
_LABEL = re.compile(r"\w+:\s*(?:$|/[/*])")  # git passes these over in C, `diff -p` does not


class Hunk(Struct, frozen=True, kw_only=True):
    """A hunk as it came. ``lines`` run to the next hunk and may be mangled; starts count from 1."""

    number: int
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str = ""
    lines: tuple[str, ...] = ()
    take_out: bool = False  # what the lines call added is to go
    ends_mail: bool = False  # other text may follow its lines

    @property
    def header(self) -> str:
        return f"@@ -{self.old_start},{self.old_count} +{self.new_start},{self.new_count} @@"

    def reversed(self) -> Hunk:
        """The hunk that takes this one back."""
        return Hunk(
            number=self.number,
            old_start=self.new_start,
            old_count=self.new_count,
            new_start=self.old_start,
            new_count=self.old_count,
            section=self.section,
            lines=self.lines,
            take_out=not self.take_out,
            ends_mail=self.ends_mail,
        )


class Placed(Struct, frozen=True, kw_only=True):
    """A hunk that fits: ``ops`` are (sign, text) with the file's own text; ``at`` counts from 0.

    ``seen`` are (sign, what the mail had with its sign, the file's text) of kept and removed lines.
    """

    at: int
    ops: tuple[tuple[str, str], ...]
    offset: int = 0
    fuzz: int = 0
    guessed: int = 0  # added lines whose white space was rebuilt
    seen: tuple[tuple[str, str, str], ...] = ()
    repaired: bool = False
    blanks: bool = False  # where blank lines that the mail lost stand is not sure
    newline_at_end: bool | None = None  # of the new file, where the hunk says so


class Misfit(Exception):
    """Why a hunk does not fit; the caller names the file. ``places``: where it does, if these are several."""

    def __init__(self, why: str, ambiguous: bool = False, places: Sequence[Placed] = ()) -> None:
        super().__init__(why)
        self.ambiguous = ambiguous
        self.places = tuple(places)


def _nearby(expected: int, lowest: int, highest: int) -> range:
    return range(max(lowest, expected - MAX_OFFSET), min(highest, expected + MAX_OFFSET) + 1)


def _stands_under(section: str, real: Sequence[str], at: int) -> bool:
    """Whether a diff made at ``at`` would say ``section`` behind its second @@; what has none says nothing."""
    wanted = squeeze(section)
    for line in reversed(real[:at]) if wanted else ():
        if _HEADING.match(line):
            if squeeze(line).startswith(wanted):  # it is cut off at 80 characters
                return True
            if not _LABEL.match(line):
                return False
    return not wanted


def _why(hunk: Hunk, lines: Sequence[Line], real: Sequence[str], squeezed: Sequence[str], at: int) -> str:
    """The first line that differs at the place that the hunk names."""
    position = at
    for line in lines:
        if line.sign in ("+", "\\"):
            continue
        if position >= len(real) or position < 0:
            return f"the file has only {len(real)} lines"
        had = line.behind if line.sign == "-" else line.whole
        if had != squeezed[position]:
            text = line.raw[1:] if line.sign in (" ", "-") else line.raw
            return f"line {position + 1} is {real[position].strip()[:60]!r}, the patch has {text.strip()[:60]!r}"
        position += 1
    return f"its counts {hunk.header} do not match its lines"


class _Search:
    """A hunk and the file that it is looked for in; ``squeezed`` are the ``real`` lines without white space."""

    def __init__(self, hunk: Hunk, real: Sequence[str], squeezed: Sequence[str], lowest: int) -> None:
        self.hunk, self.real, self.squeezed, self.lowest = hunk, real, squeezed, lowest
        self.lines = lines_of(hunk.lines, hunk.take_out)
        self.effort = Effort(len(hunk.lines))
        self.own = own_lines(self.lines) if hunk.ends_mail else len(self.lines)

    def _at(self, at: int, trim: tuple[int, int], how: How, lines: Sequence[Line]) -> Placed | None:
        """Fit at ``at`` leaving out ``trim`` context lines at the head and at the tail (0 or 1)."""
        head, tail = trim
        if head and (not lines or lines[0].sign in ("+", "-")):
            return None
        counts = self.hunk.old_count - head - tail, self.hunk.new_count - head - tail
        found = align(lines[head:], self.real, self.squeezed, at, counts, self.own - head, how, self.effort)
        if found is None or (tail and head + found.used + tail > self.own):
            return None  # the line that is left out must be there
        if (head or tail) and not any(sign in " -" and text.strip() for sign, text in found.ops):
            return None
        return Placed(
            at=at,
            ops=found.ops,
            fuzz=max(head, tail),
            seen=found.seen,
            repaired=found.filled or any(raw[1:] != text for _, raw, text in found.seen if raw),
            blanks=found.guessed,
            newline_at_end=found.newline_at_end,
        )

    def places(self, expected: int, trim: tuple[int, int], how: How) -> list[Placed]:
        """Where the hunk fits: the expected place alone if it does there as a whole, else all nearby."""
        found = self._at(expected, trim, how, self.lines) if expected >= self.lowest else None
        if found and not any(trim):
            return [found]
        # With lines of the file filled in, a hunk could fit in many places: it must stand where it says.
        if self.hunk.old_count <= sum(trim) or how == "gaps":
            return [found] if found else []
        near = _nearby(expected, self.lowest, len(self.real) - (self.hunk.old_count - sum(trim)))
        return [one for one in (found, *self._around(near, expected, trim, how)) if one]

    def anywhere(self, expected: int) -> list[Placed]:
        """Where it fits as it is, further off too, as ``git apply`` takes it: under the heading that it names."""
        if not self.hunk.old_count:
            return []
        all_lines = range(self.lowest, len(self.real) - self.hunk.old_count + 1)
        found = self._around(all_lines, expected, (0, 0), HOWS[0])
        return [one for one in found if one and _stands_under(self.hunk.section, self.real, one.at)]

    def _around(self, near: range, expected: int, trim: tuple[int, int], how: How) -> Iterator[Placed | None]:
        """At most of the places nothing begins: of those, only the effort is counted."""
        own = self.lines[: self.own]  # elsewhere an empty line behind the mail must not pass for one of the hunk
        head, tail = trim
        if head and (not own or own[0].sign in ("+", "-")):
            return
        old, new = self.hunk.old_count - head - tail, self.hunk.new_count - head - tail
        if new < 0:
            return
        begin = beginnings(own[head:], (old, new), how)
        begun: Iterable[int] = near
        if begin is not None:
            begun = compress(near, map(begin.__contains__, self.squeezed[near.start : near.stop]))
        tried = sorted((at for at in begun if at != expected), key=lambda at: (abs(at - expected), at))
        for at in tried:
            yield self._at(at, trim, how, own)
        self.effort.step(max(len(near) - (expected in near) - len(tried), 0))


def place(
    hunk: Hunk, real: Sequence[str], squeezed: Sequence[str], shift: int, lowest: int, *, far: bool = False
) -> Placed:
    """Find the one place of ``hunk`` in a file.

    ``real`` are the file's lines, ``squeezed`` the same without white space; ``shift`` is how far the hunk before this
    one was off, ``lowest`` the first line (from 0) that it may touch. Offsets up to MAX_OFFSET and one line of fuzz are
    accepted where the place is the only one; with ``far`` the only one further off, without fuzz or repair.

    Raises:
        Misfit: no place, or more than one, or more than one way to read the hunk.
    """
    search = _Search(hunk, real, squeezed, lowest)
    stated = hunk.old_start - (1 if hunk.old_count else 0)
    for trims, hows in ((((0, 0),), HOWS), (((1, 0), (0, 1), (1, 1)), HOWS[:2])):
        for how in hows:
            for trim in trims:
                try:
                    places = search.places(stated + shift + trim[0], trim, how)
                except Ambiguous as error:
                    raise Misfit(str(error), ambiguous=True) from None
                if places:
                    return _only(replace(p, offset=p.at - trim[0] - stated) for p in places)
    try:
        places = search.anywhere(stated + shift) if far else []
    except Ambiguous:
        places = []
    if places:
        return _only(replace(p, offset=p.at - stated) for p in places)
    why = _why(hunk, search.lines, real, squeezed, stated + shift)
    raise Misfit(f"does not apply, with an offset or fuzz 1 either: {why}")


def _only(places: Iterable[Placed]) -> Placed:
    """The one of ``places``.

    Raises:
        Misfit: there are more.
    """
    fits = sorted(places, key=lambda p: p.at)
    if len(fits) > 1:
        shown = ", ".join(str(p.at + 1) for p in fits[:4])
        raise Misfit(f"applies at more than one place (lines {shown}): ambiguous", True, fits)
    return fits[0]
