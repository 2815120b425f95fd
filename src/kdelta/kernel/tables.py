# SPDX-License-Identifier: GPL-2.0-or-later
"""What the line above a table says of its figures, and which of a row's are those before and after. Pure."""

from __future__ import annotations

import re

_RATED = re.compile(
    r"\b\w+(?:\s\w+)?\s(?:per|a|each)\s(?:s|sec|second)\b|[\w^]+/s(?:ecs?|econds?)?\b|\b[KMGT]?(?:iops|bps|[tqrp]ps)\b"
    r"|\b(?:higher|bigger|more)\sis\sbetter\b",
    re.I,
)
_TIMED = re.compile(  # no length of a run: "10 seconds each"
    r"(?<!\d)(?<!\d\s)\b(?:(?:nano|micro|milli)?seconds|[nuµm]s|[nuµm]?secs?|cycles|instructions|insns)\b"
    r"|\b(?:lower|smaller|less)\sis\sbetter\b",
    re.I,
)
_OLD = r"(?:before|without|base(?:line)?|unpatched|vanilla|mainline|old)"
_NEW = r"(?:after|with|patched|new)"
_ALONE = 2  # words: "ns/op", "bogo ops/s"
_UNIT = r"(?:\s*[(\[][^()\[\]]{1,24}[)\]])?"
_COLUMNS = re.compile(rf"\b{_OLD}{_UNIT}[\s|]+{_NEW}\b{_UNIT}|(?<!\S)(v?\d+\.\d[\w.-]*)[\s|]+\1[+-]\w[\w.+-]*", re.I)
_IN_BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?[kKMG]?")

_FIGURE = re.compile(r"\d[\d,]*\.\d+[kKMG]?")  # no number of tasks, which may stand in a name


def are_two_sides(line: str) -> bool:
    """Whether ``line`` names columns of which one is before and the next after, in this order."""
    return bool(_COLUMNS.search(line))


def is_heading(line: str) -> bool:
    """Whether ``line`` is of what stands below it: "lat_proc, microseconds:", or a unit alone above the columns."""
    return line.endswith(":") or (not re.search(r"\d", line) and len(line.split()) <= _ALONE and bool(unit_of(line)))


def unit_of(line: str) -> str:
    """``ns`` where ``line`` says that its table is of a time or another cost, ``ops/s`` of a rate; else ""."""
    rest, rates = _RATED.subn(" ", line)
    times = bool(_TIMED.search(rest))
    return "" if bool(rates) == times else "ops/s" if rates else "ns"


def pair(columns: str, row: str) -> tuple[str, str] | None:
    """The figures of ``row``, without a unit, below the two sides of ``columns``; None where it has none there."""
    match = _COLUMNS.search(columns)
    if match is None:
        return None
    behind, fields = _fields(columns[match.end() :].rstrip(":")), _fields(row)
    last = len(fields) - len(behind)
    name, two = fields[: max(last - 2, 0)], fields[max(last - 2, 0) : last]
    if len(two) < 2 or not all(map(_NUMBER.fullmatch, two)) or any(map(_FIGURE.fullmatch, name)):
        return None
    return two[0], two[1]


def _fields(line: str) -> list[str]:
    return _IN_BRACKETS.sub(" ", line).replace("|", " ").split()
