# SPDX-License-Identifier: GPL-2.0-or-later
"""Which way a figure of a mail goes: better, worse, or nobody knows. Pure; told by units and by words, never judged."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Set
from typing import Literal

from kdelta.kernel import tables

Direction = Literal[-1, 0, 1]  # worse, not known, better

_NUMBER = r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)\s?((?-i:[kKMGT])?)"
_TIME = (
    r"(?:[nuµm]?s(?:ec(?:ond)?s?)?|(?:nano|micro|milli)?seconds?|cycles|instructions|insns|misses)(?:/(?!s\b|sec)\w+)?"
)
_RATE = r"(?:[kKMGT]i?)?(?:[Bb]|bit|byte)s?(?:/s\w*|ps)|\w*/s(?:ec\w*)?|iops|ops|[tqrp]ps"
_UNIT = rf"(?:\s?({_TIME}|{_RATE})\b)?"
_BOTH = re.compile(rf"{_NUMBER}{_UNIT}\s+(?:->|=>|\u2192|(?:down\s)?to)\s+{_NUMBER}{_UNIT}", re.I)
_ONE = re.compile(rf"{_NUMBER}(?:\s*\+-\s*\d+(?:\.\d+)?)?{_UNIT}", re.I)
_SIDE = re.compile(
    r"(?:(before|without|base(?:line)?|unpatched|vanilla|mainline|old)|after|with|patched|new)\b[^:\d]{0,40}:", re.I
)
_RATED = re.compile(rf"(?:{_RATE})$", re.I)
_SECONDS = re.compile(r"([nuµm])s|(nano|micro|milli)s", re.I)
_CHANGE = re.compile(r"\([-+~\u00b1][^()]*\)")  # "(+58 %)" behind a figure
_PARTS = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "nano": 1e-9, "micro": 1e-6, "milli": 1e-3}
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_ALIKE_SHARE = 0.01  # what is worse by less is told beside what gets better, or as the same
_SENTENCE = re.compile(r"[;.!]\s+")
_LOAD = (
    r"(?:overheads?|costs?|latenc(?:y|ies)|(?:run)?time|cycles|instructions|insns|misses|branches|atomics?"
    r"|regressions?|task-clock|(?:(?:(?:page|minor|major)[\s-])?faults|context[\s-]switches|alloc(?:ation)?s)(?!/s|\s(?:a|per)\ss))"
)
_YIELD = rf"(?:throughput|bandwidth|performance|\w+/s(?:ec)?|iops|[tqrp]ps|{_RATE})"
_DOWN = r"(?:reduc|lower|cut|drop|decreas|halv|fell|falls?\b|(?:fewer|less)\b(?!\sthan))\w*"
_AWAY = rf"(?:{_DOWN}|(?:sav|remov|avoid|fix|recover|disappear|gone\b)\w*)"
_UP = r"(?:increas|rais|rises?\b|grows?\b|grew\b|add(?:s|ed|ing)?\b|more\b(?!\sthan)|higher\b|extra\b|additional)\w*"
_ALIKE = r"[^.,;:]{0,40}?"  # what stands between the two, of one part of a sentence


# What stands before two figures without a unit, and a unit that goes the same way: "IOPS: 800K -> 900K"
_LABEL = re.compile(r"[^\d.;,]{1,30}$")
_LABELS = tuple(
    (re.compile(rf"\b{kind}\b[^\d.;,]{{0,20}}$", re.I), unit) for kind, unit in ((_YIELD, "ops"), (_LOAD, "cycles"))
)


def _beside(way: str, of_what: str) -> re.Pattern[str]:
    return re.compile(rf"\b{way}\b{_ALIKE}\b{of_what}\b|\b{of_what}\b{_ALIKE}\b{way}\b", re.I)


_MOVES: tuple[tuple[Direction, re.Pattern[str]], ...] = (
    (-1, re.compile(r"\bat\s(?:the|a)\scosts?\sof\b", re.I)),
    (1, _beside(_AWAY, _LOAD)),
    (-1, _beside(_UP, _LOAD)),
    (1, _beside(_UP, _YIELD)),
    (-1, _beside(_DOWN, _YIELD)),
)
_BETTER = re.compile(
    r"\b(?:fast|quick|cheap)er\b|\bbetter\b|\bimprov\w+|\bspeed[-\s]?ups?\b|\b(?:twice|times)\s+(?:as\s+)?fast\b", re.I
)
_SCALE = re.compile(r"\b(?:higher|bigger|more|lower|smaller|less)\sis\s(?:better|worse)\b", re.I)  # goes no way itself
_WORSE = re.compile(r"\bslow(?:er|down|s)\w*|\bregress\w*|\bworse\b|\bdear(?:er)?\b|\boverhead\sof\b|\bcosts\b", re.I)
_STAYS = re.compile(  # of figures: no "no functional change"
    r"\bno\s(?:(?:measur|notic|signific|observ)\w+\s(?:performance\s)?|performance\s|runtime\s)?"
    r"(?:differences?|changes?|impact|overhead|regressions?|effects?|slowdowns?|costs?)\b"
    r"|\b(?:with)?in\s(?:the\s)?noise\b|\bcosts\sthe\ssame\b|\bis\s(?:the\ssame|unchanged|not\saffected)\b",
    re.I,
)
_EARLIER = re.compile(r"(?:in\s)?v\d+\b", re.I)  # what changed since an earlier version is no claim of this one
_IN_NOISE = re.compile(
    r"(?:that|this|it|these|those|both|all|the (?:difference|change)s?)\b[^.;:\d]{0,40}\bnoise\b", re.I
)
_DENIED = re.compile(r"\b(?:no|not|n't|without|neither|never|than before|noise|same|unchanged)\b", re.I)


def of(line: str) -> Direction:
    """Which way one line goes: ``4.2 us -> 3.1 us``, ``3 % faster``; of several sentences, those that go any."""
    parts = _believed(_SENTENCE.split(_SCALE.sub("", line)))
    return _one({_of_part(part) for part in parts} - {0})


def _of_part(line: str) -> Direction:
    """Which way a sentence goes, or a part of one that stands for itself."""
    if _DENIED.search(line) or _EARLIER.match(line):
        return 0
    if found := {side for match in _BOTH.finditer(line) if (side := _of_both(match))}:
        return _one(found)
    words: set[Direction] = set()
    for way, expression in (*_MOVES, (1, _BETTER), (-1, _WORSE)):
        line, count = expression.subn("; ", line)  # "reduces the cost" has no cost left that is told
        words |= {way} if count else set()
    return _one(words)


def of_all(lines: Iterable[str]) -> Direction:
    """Which way all lines go that go any; not known where some go the other way.

    Of a line before and the same after, ``Before: 12.4 seconds elapsed``, both tell it, with one figure each; so do two
    figures of a row below two such columns, which may leave the unit to the line above these.
    """
    found: set[Direction] = set()
    before: dict[str, list[tuple[str, str, str]]] = {}
    columns = unit = ""
    for line in _believed(lines):
        found |= {of(line)}
        if tables.are_two_sides(line):
            columns, unit = line, tables.unit_of(line) or unit
        elif tables.is_heading(line):
            columns, unit = "", tables.unit_of(line)
        else:
            found |= {_of_row(columns, line, unit)} if columns else set()
        match = _SIDE.match(line)
        said = _CHANGE.sub("", line[match.end() :]) if match else ""
        figures = [(number, scale, own or unit) for number, scale, own in _ONE.findall(said) if own or unit]
        if match and len(figures) == 1:
            of_what = _ONE.sub("", said).strip()
            if match[1]:
                before.setdefault(of_what, []).append(figures[0])
            elif of_what in before:
                found |= {_of_sides(*before[of_what].pop(0), *figures[0])}
                before = {what: left for what, left in before.items() if left}
    return _one(found - {0})


def _of_row(columns: str, row: str, unit: str) -> Direction:
    """Which way a row goes below ``columns`` of two sides; ``unit``: what was said above of figures without one."""
    two = [one for one in _ONE.findall(row) if one[2]]
    if len(two) == 2:
        return _of_sides(*two[0], *two[1])
    unit = tables.unit_of(row) or unit
    plain = tables.pair(columns, row) if unit and not two else None
    if plain is None:
        return 0
    (old, scale, _), (new, scale_after, _) = (_ONE.findall(one)[0] for one in plain)
    return _of_sides(old, scale, unit, new, scale_after, unit)


def alike(lines: Iterable[str]) -> bool:
    """Whether a line says of what it measured that nothing changes, and none that something gets worse."""
    told = tuple(lines)
    return any(map(_STAYS.search, told)) and of_all(_STAYS.sub("", line) for line in _believed(told)) != -1


def _believed(lines: Iterable[str]) -> Iterator[str]:
    """``lines`` without those of which the next one says that they are noise: "That is within the noise."."""
    every = tuple(lines)
    for line, following in itertools.zip_longest(every, every[1:], fillvalue=""):
        if not _IN_NOISE.match(following):
            yield line


def _one(found: Set[Direction]) -> Direction:
    return next(iter(found)) if len(found) == 1 else 0


def _of_both(match: re.Match[str]) -> Direction:
    """Of ``4.2 us -> 3.1 us``, or of two figures without a unit by what stands before them."""
    old, scale, unit, new, scale_after, unit_after = match.groups(default="")
    if not unit and not unit_after:
        before = match.string[: match.start()]
        if " to " in match[0].lower() and not before.lower().endswith("from "):  # "of 8 to 12 threads"
            return 0
        said = _LABEL.search(before)
        unit_after = next((alike for label, alike in _LABELS if label.search(before)), "")
        unit_after = unit_after or (tables.unit_of(said[0]) if said else "")
    return _of_sides(old, scale, unit, new, scale_after, unit_after)


def _of_sides(old: str, scale: str, unit: str, new: str, scale_after: str, unit_after: str) -> Direction:
    """Of two figures, of which the first may leave the unit to the second; without a unit nobody knows the better."""
    unit_before = unit or unit_after
    rated = bool(_RATED.match(unit_after or ""))
    if not unit_after or rated != bool(_RATED.match(unit_before)):
        return 0
    before, after = (
        _value(old, scale or (scale_after if not unit else ""), unit_before),
        _value(new, scale_after, unit_after),
    )
    if (after > before) == rated and after != before:
        return 1
    return -1 if abs(after - before) > _ALIKE_SHARE * before else 0


def _value(digits: str, scale: str, unit: str) -> float:
    match = _SECONDS.match(unit)
    parts = _PARTS[(match[1] or match[2]).lower()] if match else 1.0
    return float(digits.replace(",", "")) * _SCALES[scale.lower()] * parts
