# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's file of lines: read whole or refused. (What stands in it is tested with guests: plugin/tests.)"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from kdelta.attribution import lines
from kdelta.errors import GuestError

BASE = 0xFFFF888000000000
LINE = 0xFFFFFFFF82000040


def _file(*, transfers: int = 1, flags: int = 0, intervals: int = 1, spoil: int = 0, tail: bytes = b"") -> bytes:
    body = struct.pack("<2Q", BASE, BASE + 4096)
    body += b"".join(struct.pack("<5Q", LINE + 8 * i, 0xFFFFFFFF81000000, 3, 4, 5) for i in range(transfers))
    body += struct.pack("<4Q", LINE, 3, 0xFF, 0xFF)
    section = b"KDLI" + struct.pack("<5I", 7, transfers, 1, zlib.crc32(body) ^ spoil, 0)
    end = b"KDLE" + struct.pack("<5I", intervals, flags, 0, 0, 0)
    return b"KDLINE01" + struct.pack("<2I", 16, 2) + section + body + end + tail


def test_a_whole_file_is_what_was_written() -> None:
    found = lines.read(_file(transfers=2, flags=2))
    (moves,) = found.intervals
    assert (found.cpus, found.numbers_right, moves.id, moves.total) == (2, True, 7, 18)
    assert moves.bases.tolist() == [BASE, BASE + 4096]
    assert moves.transfers["address"].tolist() == [LINE, LINE + 8]
    assert moves.lines["shared"].tolist() == [0xFF]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "too short for a header"),
        (b"KDPLUG01" + bytes(100), "not the plugin's file of lines"),
        (_file(spoil=1), "wrong checksum"),
        (_file()[:60], "truncated inside interval 0x7"),
        (_file()[:-24], "no trailer"),
        (_file(intervals=2), "says 2 intervals, 1 were found"),
        (_file(tail=b"x"), "1 were found"),
        (_file(flags=1), "a CPU that could not be told"),
        (b"KDLINE01" + struct.pack("<2I", 16, 2) + bytes(24), "does not start an interval"),
    ],
)
def test_a_damaged_file_is_refused_with_what_is_wrong(data: bytes, complaint: str) -> None:
    with pytest.raises(GuestError, match=complaint):
        lines.read(data)


class Functions:
    """Two functions, at 0x...81000000 and 0x...81001000."""

    def names(self, addresses: NDArray[np.uint64], /) -> Sequence[str | None]:
        return [{0x81000: "take", 0x81001: "drop.isra.0"}.get(int(a) >> 12 & 0xFFFFF) for a in addresses]

    def calls(self, functions: Iterable[str], /) -> Mapping[str, Sequence[str]]:
        return {}


class Variables:
    """One variable of 128 bytes in the image, one per-CPU variable."""

    per_cpu = (0, 4096)

    def name(self, address: int, bases: Sequence[int], /) -> tuple[str, int] | None:
        for base in bases:
            if 0 <= address - base < 4096:
                return "runqueues", address - base
        return ("tasklist_lock", address - LINE) if 0 <= address - LINE < 128 else None


def _moves(rows: list[tuple[int, int, int, int, int]], shared: Mapping[int, int]) -> lines.Moves:
    body = struct.pack("<2Q", BASE, BASE + 4096) + b"".join(struct.pack("<5Q", *row) for row in rows)
    body += b"".join(struct.pack("<4Q", address, 3, 0xFF, bits) for address, bits in shared.items())
    section = b"KDLI" + struct.pack("<5I", 7, len(rows), len(shared), zlib.crc32(body), 0)
    end = b"KDLE" + struct.pack("<5I", 1, 0, 0, 0, 0)
    return lines.read(b"KDLINE01" + struct.pack("<2I", 16, 2) + section + body + end).intervals[0]


TAKE, DROP, NOWHERE = 0xFFFFFFFF81000010, 0xFFFFFFFF81001010, 0xFFFFFFFF99000000


def test_lines_are_named_by_variable_cpu_area_and_who_moves_what_was_allocated() -> None:
    heap = 0xFFFF888100000000
    rows = [
        (LINE, TAKE, 3, 5, 7),
        (LINE + 8, DROP, 1, 0, 2),
        (LINE + 64, TAKE, 1, 1, 0),
        (BASE + 4096 + 8, DROP, 1, 3, 0),
    ]
    rows += [(heap, TAKE, 1, 10, 0), (heap + 64, TAKE, 1, 10, 0), (heap + 128, NOWHERE, 1, 0, 1)]
    lower = [address & -64 for address, *_ in rows]
    moves = _moves(rows, dict.fromkeys(lower, 1))
    found = {row.name: row for row in lines.table(moves, Functions(), Variables())}
    order = ["memory: take", "tasklist_lock", "per-CPU runqueues", f"memory: [unknown {NOWHERE:#x}]"]
    assert list(found) == [*order, "tasklist_lock+0x40"]
    assert (found["tasklist_lock"].reads, found["tasklist_lock"].writes) == (5, 9)
    assert found["tasklist_lock"].by == {"take": (5, 7), "drop": (0, 2)}
    assert found["memory: take"].lines == 2
    assert sum(row.transfers for row in found.values()) == moves.total


class Neighbours(Variables):
    """Two variables in one line."""

    def name(self, address: int, bases: Sequence[int], /) -> tuple[str, int] | None:
        return ("nr_threads", address - LINE) if address < LINE + 8 else ("task_struct_cachep", address - LINE - 8)


def test_what_only_lies_beside_a_shared_variable_is_named_for_its_transfers() -> None:
    rows = [(LINE, TAKE, 3, 5, 7), (LINE + 8, TAKE, 3, 40, 0)]
    (line,) = lines.table(_moves(rows, {LINE: 0xF}), Functions(), Neighbours())
    assert (line.name, line.transfers, line.unshared) == ("nr_threads, task_struct_cachep", 52, 40)
    assert line.beside == ("task_struct_cachep",)
    (false,) = lines.table(_moves(rows, {LINE: 0}), Functions(), Neighbours())
    assert false.unshared == false.transfers == 52


def test_a_table_is_bounded_and_still_adds_up() -> None:
    rows = [(LINE + 0x1000 + 64 * i, NOWHERE + 0x1000 * i, 3, i + 1, 0) for i in range(100)]
    moves = _moves(rows, {address: 1 for address, *_ in rows})
    found = lines.table(moves, None, None)
    assert len(found) == lines.KEPT + 1
    assert found[-1].name == lines.OTHERS and found[-1].lines == 100 - lines.KEPT
    assert sum(row.transfers for row in found) == moves.total == 5050
