# SPDX-License-Identifier: GPL-2.0-or-later
"""Builders of plugin output and profiles for the tests of attribution."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence

from kdelta.attribution.profiles import USER
from kdelta.model import EXACT_COUNTERS, Profile

HEADER = struct.pack("<8s4I16s24x", b"KDPLUG01", 64, 7, 4, 0, b"x86_64")
Record = tuple[int, Sequence[int]]


def interval(ident: int, records: Sequence[Record]) -> bytes:
    """One interval as the plugin writes it."""
    body = b"".join(struct.pack("<8Q", pc, *counts) for pc, counts in records)
    return struct.pack("<4s3I", b"KDIV", ident, len(records), zlib.crc32(body)) + body


def trailer(intervals: int, flags: int = 0) -> bytes:
    """The end of a file."""
    return struct.pack("<4s3I", b"KDEN", intervals, flags, 0)


def output(*intervals: bytes, flags: int = 0) -> bytes:
    """A whole file."""
    return HEADER + b"".join(intervals) + trailer(len(intervals), flags)


def profile(
    instructions: Mapping[str, int], ops: int = 1, user: int = 0, calls: Mapping[str, str] | None = None
) -> Profile:
    """A profile whose functions have instructions only. ``calls``: the callees of each, separated by spaces."""
    rest = (0,) * (len(EXACT_COUNTERS) - 1)
    functions = {name: (count, *rest) for name, count in instructions.items()}
    if user:
        functions[USER] = (user, *rest)
    lines = "\n".join(f"{name} {callees}" for name, callees in (calls or {}).items())
    return Profile(ops=ops, functions=functions, total=(sum(instructions.values()) + user, *rest), calls=lines)


def touched(ident: int, rows: Mapping[int, int]) -> bytes:
    """What belongs to the interval before it: cache lines of data that were touched first, by address of code."""
    body = b"".join(struct.pack("<3Q", pc, lines, 0) for pc, lines in rows.items())
    return struct.pack("<4s3I", b"KDFT", ident, len(rows), zlib.crc32(body)) + body


def system_calls(ident: int, rows: Sequence[Sequence[int]]) -> bytes:
    """What belongs to the interval before it: row, calls, instructions, REP bytes."""
    body = b"".join(struct.pack("<QQqQ", *row) for row in rows)
    return struct.pack("<4s3I", b"KDSC", ident, len(rows), zlib.crc32(body)) + body


def stacks(ident: int, rows: Sequence[Sequence[int]]) -> bytes:
    """What belongs to the interval before it: parent, address of a function, instructions, calls."""
    body = b"".join(struct.pack("<QQqQ", *row) for row in rows)
    return struct.pack("<4s3I", b"KDST", ident, len(rows), zlib.crc32(body)) + body
