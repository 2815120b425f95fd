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
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kdelta.errors import GuestError

LINE_BYTES = 64
_MAGIC = b"KDLINE03"
_HEADER = struct.Struct("<8s2I")
_SECTION = struct.Struct("<4s7I")
_STRANGERS, _SEQUENCES = 1, 4
TRANSFER = np.dtype([(name, "<u8") for name in ("address", "pc", "caller", "cpus", "reads", "writes")])
LINE = np.dtype([(name, "<u8") for name in ("address", "cpus", "written", "shared", "cache", "offset")])
CACHE = np.dtype([("address", "<u8"), ("size", "<u8"), ("name", "S48")])
ENTRY = np.dtype([(name, "<u8") for name in ("entry", "site", "caller", "times")])
SEQUENCE = np.dtype([(name, "<u8") for name in ("address", "pc", "kind", "times", "failed", "cache", "offset")])
CHECK, BEGIN, PAUSES = 1, 2, 4  # bits of a kind


class Cache(Struct, frozen=True):
    """A slab cache: its name, and the bytes from one object to the next."""

    name: str
    size: int


class Moves(Struct, frozen=True, eq=False, dict=True):
    """What moved between BEGIN and END.

    ``bases`` (CPUs,) uint64: where each CPU's per-CPU area begins (0: it never ran). ``vmemmap``: where the struct
    pages lie, 0 where that is not known. ``transfers``: structured, one row for each address, instruction and caller:
    address, pc, caller (see plugin/callers.c; 0: the function itself), cpus (bits), reads, writes. ``lines``: one row
    for each line that moved: address, cpus (bits: who used it), written (bytes as bits), shared (bytes one CPU wrote
    and another used), cache (address of its slab cache, or 0), offset (from the start of the slab). ``entries``: how
    often a function that acts for its callers was called: entry, site, caller (the call outside of them), times.
    ``caches``: slab caches by address. ``sequences``: reads of words that may be sequence counters, of those that some
    reader found written (plugin/sequences.c): address, pc, kind (CHECK: they ended there; BEGIN, and PAUSES where they
    wait until the word is even), times, failed, cache and offset of its line; None where that could not be seen (QEMU
    before 9.2).
    """

    id: int
    bases: NDArray[np.uint64]
    vmemmap: int
    transfers: NDArray[np.void]
    lines: NDArray[np.void]
    caches: dict[int, Cache]
    entries: NDArray[np.void]
    sequences: NDArray[np.void] | None

    @cached_property
    def slabs(self) -> dict[int, tuple[int, int]]:
        """By line that was allocated: the address of its slab cache, and its offset from the start of the slab."""
        found = (
            (int(row["address"]) & -LINE_BYTES, (int(row["cache"]), int(row["offset"])))
            for rows in (self.lines, self.sequences)
            if rows is not None
            for row in rows[rows["cache"] != 0]
        )
        return dict(found)

    @property
    def total(self) -> int:
        """All transfers."""
        return int(self.transfers["reads"].sum() + self.transfers["writes"].sum())


class MovesFile(Struct, frozen=True, eq=False):
    """A whole file."""

    cpus: int
    intervals: tuple[Moves, ...]


def _cache(row: np.void) -> Cache:
    return Cache(name=bytes(row["name"]).partition(b"\0")[0].decode("ascii", "replace"), size=int(row["size"]))


def _interval(data: memoryview, offset: int, cpus: int, section: tuple[int, ...]) -> tuple[Moves, int]:
    ident, transfers, lines, caches, entries, crc, sequences = section
    kinds = (np.dtype("<u8"), TRANSFER, LINE, CACHE, ENTRY, SEQUENCE)
    numbers = (cpus + 2, transfers, lines, caches, entries, sequences)
    sizes = [kind.itemsize * n for kind, n in zip(kinds, numbers, strict=True)]
    if offset + sum(sizes) > len(data):
        raise GuestError(f"lines: truncated inside interval {ident:#x}; QEMU was killed or the disk is full")
    if zlib.crc32(data[offset : offset + sum(sizes)]) != crc:
        raise GuestError(f"lines: interval {ident:#x} has a wrong checksum")
    parts = []
    for kind, size in zip(kinds, sizes, strict=True):
        parts.append(np.frombuffer(data[offset : offset + size], dtype=kind))
        offset += size
    moves = Moves(
        id=ident,
        bases=parts[0][:cpus],
        vmemmap=int(parts[0][cpus]),
        transfers=parts[1],
        lines=parts[2],
        caches={int(row["address"]): _cache(row) for row in parts[3]},
        entries=parts[4],
        sequences=parts[5],
    )
    return moves, offset


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
            if not flags & _SEQUENCES:
                found = [replace(one, sequences=None) for one in found]
            return MovesFile(cpus=cpus, intervals=tuple(found))
        if tag != b"KDLI":
            raise GuestError(f"lines: {tag!r} at byte {offset - _SECTION.size} does not start an interval")
        moves, offset = _interval(whole, offset, cpus, tuple(fields))
        found.append(moves)
    raise GuestError(f"lines: truncated after {len(found)} intervals, no trailer; QEMU was killed or the disk is full")
