# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of the tracefs as a guest sent them, and the tables of ``hist`` files. Pure.

The format of hist files is in the kernel's Documentation/trace/histogram.rst. A log2 bucket ``~ 2^n`` holds the values
above 2^(n-1) up to 2^n.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from kdelta.errors import GuestError
from kdelta.guest.protocol import Record, Trace

Key = str | tuple[str, ...]  # a stack is a tuple, innermost first

FRAME = re.compile(r"^(?:\[<[0-9a-fx]+>\] )?([\w.$]+)\+0x[0-9a-f]+/0x[0-9a-f]+")  # a line of a stack
_INFO = re.compile(r"^# trigger info: hist:(?:name=[^:]*:)?keys=([^:]+)", re.MULTILINE)
_VALUE = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*):[ \t]+(-?\d{1,19})")
_MAX = re.compile(r"^[ \t]+max:[ \t]+(\d{1,19})", re.MULTILINE)
# A table's line: keys, over several lines where one is a stack, and values. No other line begins with a brace.
_ENTRY = re.compile(r"^\{((?:(?!\n\{).)*?)\}([^\n}]*hitcount:[^\n]*)", re.MULTILINE | re.DOTALL)
_TOTAL = re.compile(r"^[ \t]+(Hits|Entries|Dropped): (\d{1,19})", re.MULTILINE)


class Entry(Struct, frozen=True, kw_only=True):
    """One line of a histogram: keys by name, values by name (``hitcount`` always), the maximum where one is kept."""

    keys: dict[str, Key]
    values: dict[str, int]
    most: int | None = None


class Hist(Struct, frozen=True, kw_only=True):
    """One trigger's table. ``keys`` as the kernel writes them; ``dropped`` events found no room."""

    keys: tuple[str, ...]
    entries: tuple[Entry, ...]
    hits: int
    dropped: int


def files(records: Iterable[Record], job: int) -> dict[str, str]:
    """The files that ``job`` read, put together from their records; bytes that are no UTF-8 are replaced.

    Raises:
        GuestError: a piece is missing.
    """
    pieces: dict[str, list[bytes]] = defaultdict(list)
    expected: dict[str, int] = {}
    for record in records:
        if not isinstance(record, Trace) or record.j != job:
            continue
        if record.part == 0 and len(pieces[record.name]) == expected.get(record.name):
            del pieces[record.name], expected[record.name]  # read again by another probe
        if record.part != len(pieces[record.name]) or expected.setdefault(record.name, record.parts) != record.parts:
            raise GuestError(f"trace file {record.name} of job {job}: unexpected piece {record.part} of {record.parts}")
        pieces[record.name].append(record.payload())
    for name, count in expected.items():
        if len(pieces[name]) != count:
            raise GuestError(f"trace file {name} of job {job}: only {len(pieces[name])} of {count} pieces arrived")
    return {name: b"".join(parts).decode("utf-8", "replace") for name, parts in pieces.items()}


def plain(key: str) -> str:
    """``ns.log2`` -> ``ns``; both spellings of a stack are one."""
    name = key.split(".")[0]
    return "stacktrace" if name == "common_stacktrace" else name


def _split_keys(text: str) -> dict[str, Key]:
    """``call_site: [ffff] f+0x1, order: 0`` or a stack over several lines."""
    found: dict[str, Key] = {}
    stack: list[str] | None = None
    for raw in re.split(r"\n", text):
        line = raw.strip().removeprefix(",").strip()
        if stack is not None and FRAME.match(line) and not re.match(r"^\w+: ", line):
            stack.append(line)
            found["stacktrace"] = tuple(stack)
            continue
        for part in re.split(r",\s+(?=\w+:)", line):
            name, colon, value = part.partition(":")
            if not colon:
                continue
            if plain(name.strip()) == "stacktrace":
                stack = []
                found["stacktrace"] = ()
            else:
                found[name.strip()] = value.strip().rstrip(",").strip()
    return found


def _entries(body: str) -> tuple[Entry, ...]:
    found = []
    for match in _ENTRY.finditer(body):
        at = match.end()
        ends = (body.find(mark, at) for mark in ("\n{", "\nTotals:"))
        most = _MAX.search(body, at, next((end for end in ends if end >= 0), len(body)))
        found.append(
            Entry(
                keys=_split_keys(match[1]),
                values={name: int(value) for name, value in _VALUE.findall(match[2])},
                most=int(most[1]) if most else None,
            )
        )
    return tuple(found)


def parse_hist(text: str) -> tuple[Hist, ...]:
    """All tables of one ``hist`` file; a file without any is an event that had no trigger."""
    found = []
    for body in text.split("# event histogram\n")[1:]:
        info = _INFO.search(body)
        if info is None:
            continue
        totals = {name: int(value) for name, value in _TOTAL.findall(body)}
        keys = tuple(key.replace("common_stacktrace", "stacktrace") for key in info[1].split(","))
        found.append(
            Hist(keys=keys, entries=_entries(body), hits=totals.get("Hits", 0), dropped=totals.get("Dropped", 0))
        )
    return tuple(found)
