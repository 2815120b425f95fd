# SPDX-License-Identifier: GPL-2.0-or-later
"""What the plugin wrote of cache lines that moved between CPUs. Pure; the format: ARCHITECTURE.md, "Contract: lines".

A transfer is a read of a line that another CPU wrote since the reader last held it (what ``perf c2c`` calls a HITM, and
each further reader's), or a write to a line of which another CPU holds a copy. It is a model of coherence alone: no
capacity, no latencies, sequentially consistent.
"""

from __future__ import annotations

import mmap
import struct
import zlib

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.errors import GuestError

LINE_BYTES = 64
_MAGIC = b"KDLINE01"
_HEADER = struct.Struct("<8s2I")
_SECTION = struct.Struct("<4s5I")
_STRANGERS, _BELIEVED = 1, 2
_TRANSFER = np.dtype([("address", "<u8"), ("pc", "<u8"), ("cpus", "<u8"), ("reads", "<u8"), ("writes", "<u8")])
_LINE = np.dtype([("address", "<u8"), ("cpus", "<u8"), ("written", "<u8"), ("shared", "<u8")])


class Moves(Struct, frozen=True, eq=False):
    """What moved between BEGIN and END.

    ``bases`` (CPUs,) uint64: where each CPU's per-CPU area begins (0: it never ran). ``transfers``: structured, one row
    for each address and instruction: address, pc, cpus (bits), reads, writes. ``lines``: one row for each line that
    moved: address, cpus (bits: who used it), written (bytes as bits), shared (bytes one CPU wrote and another used).
    """

    id: int
    bases: NDArray[np.uint64]
    transfers: NDArray[np.void]
    lines: NDArray[np.void]

    @property
    def total(self) -> int:
        """All transfers."""
        return int(self.transfers["reads"].sum() + self.transfers["writes"].sum())


class MovesFile(Struct, frozen=True, eq=False):
    """A whole file. ``numbers_right``: QEMU's own numbers of the CPUs proved right on every CPU of this run."""

    cpus: int
    intervals: tuple[Moves, ...]
    numbers_right: bool


def _interval(data: memoryview, offset: int, cpus: int, section: tuple[int, ...]) -> tuple[Moves, int]:
    ident, transfers, lines, crc, _ = section
    sizes = (8 * cpus, _TRANSFER.itemsize * transfers, _LINE.itemsize * lines)
    end = offset + sum(sizes)
    if end > len(data):
        raise GuestError(f"lines: truncated inside interval {ident:#x}; QEMU was killed or the disk is full")
    if zlib.crc32(data[offset:end]) != crc:
        raise GuestError(f"lines: interval {ident:#x} has a wrong checksum")
    second = offset + sizes[0]
    third = second + sizes[1]
    moves = Moves(
        id=ident,
        bases=np.frombuffer(data[offset:second], dtype="<u8"),
        transfers=np.frombuffer(data[second:third], dtype=_TRANSFER),
        lines=np.frombuffer(data[third:end], dtype=_LINE),
    )
    return moves, end


def read(data: bytes | mmap.mmap) -> MovesFile:
    """Parse a whole file.

    Raises:
        GuestError: no header, a wrong checksum, cut off, no trailer, or code ran on a CPU that could not be told.
    """
    if len(data) < _HEADER.size:
        raise GuestError(f"lines: {len(data)} bytes, too short for a header; QEMU exited before the plugin started")
    magic, size, cpus = _HEADER.unpack_from(data)
    if magic != _MAGIC or size != _HEADER.size:
        raise GuestError(f"lines: starts with {magic!r}, not with {_MAGIC.decode()}: not the plugin's file of lines")
    offset, whole = size, memoryview(data)
    found: list[Moves] = []
    while offset + _SECTION.size <= len(data):
        tag, *fields = _SECTION.unpack_from(data, offset)
        offset += _SECTION.size
        if tag == b"KDLE":
            written, flags = fields[0], fields[1]
            if written != len(found) or offset != len(data):
                raise GuestError(f"lines: the trailer says {written} intervals, {len(found)} were found")
            if flags & _STRANGERS:
                raise GuestError("lines: code ran on a CPU that could not be told from its GS base")
            return MovesFile(cpus=cpus, intervals=tuple(found), numbers_right=bool(flags & _BELIEVED))
        if tag != b"KDLI":
            raise GuestError(f"lines: {tag!r} at byte {offset - _SECTION.size} does not start an interval")
        moves, offset = _interval(whole, offset, cpus, tuple(fields))
        found.append(moves)
    raise GuestError(f"lines: truncated after {len(found)} intervals, no trailer; QEMU was killed or the disk is full")
