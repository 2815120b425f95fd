# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's file of lines: read whole or refused. (What stands in it is tested with guests: plugin/tests.)"""

from __future__ import annotations

import struct
import zlib

import pytest

from kdelta.attribution import lines
from kdelta.errors import GuestError

BASE = 0xFFFF888000000000
LINE = 0xFFFFFFFF82000040
CODE = 0xFFFFFFFF81000000
PAGES, OWNER = 0xFFFFEA0000000000, 0xFFFF888100042000


def _file(*, transfers: int = 1, flags: int = 0, intervals: int = 1, spoil: int = 0, tail: bytes = b"") -> bytes:
    body = struct.pack("<4Q", BASE, BASE + 4096, PAGES, BASE)
    body += b"".join(struct.pack("<6Q", LINE + 8 * i, CODE, CODE + 64, 3, 4, 5) for i in range(transfers))
    body += struct.pack("<6Q", LINE, 3, 0xFF, 0xFF, OWNER, 128)
    body += struct.pack("<2Q48s", OWNER, 192, b"dentry")
    body += struct.pack("<4Q", CODE, CODE + 64, CODE + 64, 9)
    body += struct.pack("<7Q", LINE + 4, CODE, lines.CHECK, 10, 2, OWNER, 128 + 64)
    section = b"KDLI" + struct.pack("<7I", 7, transfers, 1, 1, 1, zlib.crc32(body) ^ spoil, 1)
    end = b"KDLE" + struct.pack("<7I", intervals, flags, 0, 0, 0, 0, 0)
    return b"KDLINE03" + struct.pack("<2I", 16, 2) + section + body + end + tail


def test_a_whole_file_is_what_was_written() -> None:
    found = lines.read(_file(transfers=2, flags=2))
    (moves,) = found.intervals
    assert (found.cpus, moves.id, moves.total) == (2, 7, 18)
    assert moves.bases.tolist() == [BASE, BASE + 4096]
    assert moves.transfers["address"].tolist() == [LINE, LINE + 8]
    assert moves.lines["shared"].tolist() == [0xFF]
    assert moves.vmemmap == PAGES
    assert moves.caches == {OWNER: lines.Cache(name="dentry", size=192)}
    assert moves.slabs == {LINE: (OWNER, 128)}
    assert moves.entries.tolist() == [(CODE, CODE + 64, CODE + 64, 9)]
    assert moves.sequences is None, "the trailer says that they could not be seen"


def test_reads_under_sequence_counters_say_in_which_slab_they_lie() -> None:
    (moves,) = lines.read(_file(flags=4)).intervals
    assert moves.sequences is not None
    assert moves.sequences.tolist() == [(LINE + 4, CODE, lines.CHECK, 10, 2, OWNER, 192)]
    assert moves.slabs == {LINE: (OWNER, 192)}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "too short for a header"),
        (b"KDPLUG01" + bytes(100), "not the plugin's file of lines"),
        (_file(spoil=1), "wrong checksum"),
        (_file()[:60], "truncated inside interval 0x7"),
        (_file()[:-32], "no trailer"),
        (_file(intervals=2), "says 2 intervals, 1 were found"),
        (_file(tail=b"x"), "1 were found"),
        (_file(flags=1), "a CPU that could not be told"),
        (b"KDLINE03" + struct.pack("<2I", 16, 2) + bytes(32), "does not start an interval"),
    ],
)
def test_a_damaged_file_is_refused_with_what_is_wrong(data: bytes, complaint: str) -> None:
    with pytest.raises(GuestError, match=complaint):
        lines.read(data)
