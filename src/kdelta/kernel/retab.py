# SPDX-License-Identifier: GPL-2.0-or-later
"""White space of added lines that a mail lost: found out from the lines that the file still has, else by style. Pure.

Only what kept and removed lines prove to be lost is touched: most mailers harm context lines alone, and the white space
behind a ``+`` is then the author's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from kdelta.kernel.hunk import Placed
from kdelta.kernel.indent import Indenter

Text = Callable[[str], str]
_TAB = 8
_DEEPEST = 24


def _blanks(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _evidence(placed: Sequence[Placed]) -> list[tuple[str, str]]:
    """(text in the mail, text in the file) of lines that tell what was done to text behind a sign.

    A kept line that is the file's to its first blank lost its sign alone: it says nothing of added lines.
    """
    signed = [
        (sign, raw[1:], real)
        for one in placed
        for sign, raw, real in one.seen
        if raw[:1] in ("-", "+") or (raw[:1] == " " and raw.rstrip() != real.rstrip())
    ]
    removed = [(had, real) for sign, had, real in signed if sign == "-" and _blanks(real)]
    return removed or [(had, real) for _, had, real in signed if _blanks(real)]


def _tabs(placed: Sequence[Placed]) -> bool:
    """Whether an added line begins with a tab: then tabs were neither collapsed nor expanded."""
    return any(sign == "+" and text.startswith("\t") for one in placed for sign, text in one.ops)


def _expanded(evidence: Sequence[tuple[str, str]]) -> Text | None:
    """What turns the file's text into the mail's if that only expands tabs, counted with or without the sign."""
    ways: tuple[Text, ...] = (lambda text: text.expandtabs(_TAB), lambda text: ("+" + text).expandtabs(_TAB)[1:])
    for way in ways:
        if all(had.rstrip() == way(real).rstrip() for had, real in evidence):
            return way
    return None


def _unexpanded(text: str, way: Text) -> str:
    """``text`` with its indentation as tabs, as the file's other lines have it."""
    lead = _blanks(text)
    for tabs in range(min(len(lead), _DEEPEST), 0, -1):
        if lead.startswith(way("\t" * tabs)):
            return "\t" * tabs + lead[len(way("\t" * tabs)) :] + text.lstrip()
    return text


def _styled(text: str, style: Indenter, indents: Mapping[str, Counter[str]]) -> str:
    """``text`` indented as its neighbours in the hunk are, else by style."""
    body = text.strip()
    known = indents.get(_blanks(text), Counter())
    if not body:
        return ""
    if len(known) == 1 and len(indents) > 1:
        return next(iter(known)) + text.lstrip()
    return style.suggest(body) + text.lstrip()


def _indents(one: Placed) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for _, raw, real in one.seen:
        if real.strip():
            found.setdefault(_blanks(raw[1:] if raw[:1] in (" ", "-", "+") else raw), Counter())[_blanks(real)] += 1
    return found


def _by_style(one: Placed) -> tuple[tuple[str, str], ...]:
    style, indents = Indenter(), _indents(one)
    ops: list[tuple[str, str]] = []
    for sign, text in one.ops:
        line = _styled(text, style, indents) if sign == "+" else text
        ops.append((sign, line))
        if sign != "-":
            style.read(line)
    return tuple(ops)


def rebuilt(placed: Sequence[Placed]) -> list[Placed]:
    """All hunks of one patch with the white space of their added lines rebuilt where the mail lost it."""
    evidence = _evidence(placed)
    if not evidence or _tabs(placed) or all(had.rstrip() == real.rstrip() for had, real in evidence):
        return list(placed)
    way = _expanded(evidence)
    result = []
    for one in placed:
        if way is not None:
            ops = tuple((sign, _unexpanded(text, way) if sign == "+" else text) for sign, text in one.ops)
        else:
            ops = _by_style(one)
        guessed = sum(before != after for before, after in zip(one.ops, ops, strict=True))
        result.append(replace(one, ops=ops, guessed=guessed))
    return result
