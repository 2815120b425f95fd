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
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.attribution.profiles import Symbols
from kdelta.errors import GuestError
from kdelta.kernel.spelling import fold
from kdelta.model import MovedLine

LINE_BYTES = 64
KEPT = 48  # names of lines in a profile; what moved less is added up
OTHERS = "[others]"
_NAMES_OF_A_LINE = 2  # variables, or functions of what was allocated, that make its name
_FUNCTIONS_OF_A_LINE = 6
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


class Variables(Protocol):
    """What naming a line needs to know of a kernel's data (kernel/variables.py)."""

    @property
    def per_cpu(self) -> tuple[int, int]: ...
    def name(self, address: int, bases: Sequence[int], /) -> tuple[str, int] | None: ...


class _Line:
    """Transfers of one line, or of several of one name."""

    def __init__(self) -> None:
        self.reads = self.writes = self.lines = self.cpus = self.unshared = 0
        self.by: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.variables: Counter[str] = Counter()
        self.needed: set[str] = set()  # variables of which a byte was shared

    def add(self, other: _Line) -> None:
        self.reads += other.reads
        self.writes += other.writes
        self.lines += other.lines
        self.cpus = max(self.cpus, other.cpus)
        self.unshared += other.unshared
        self.variables += other.variables
        self.needed |= other.needed
        for function, (reads, writes) in other.by.items():
            self.by[function][0] += reads
            self.by[function][1] += writes

    def ranked(self) -> list[str]:
        """Functions, those first to which it moved most."""
        return sorted(self.by, key=lambda name: (-sum(self.by[name]), name))

    def name(self) -> str:
        """The variables in the line that moved it most, else the functions that did."""
        found = sorted(self.variables, key=lambda name: (-self.variables[name], name))
        if found:
            return ", ".join(sorted(found[:_NAMES_OF_A_LINE]))
        return f"memory: {', '.join(sorted(self.ranked()[:_NAMES_OF_A_LINE]))}"

    def told(self, name: str) -> MovedLine:
        ranked = self.ranked()
        by = {function: (self.by[function][0], self.by[function][1]) for function in ranked[:_FUNCTIONS_OF_A_LINE]}
        if rest := ranked[_FUNCTIONS_OF_A_LINE:]:
            by[OTHERS] = (sum(self.by[f][0] for f in rest), sum(self.by[f][1] for f in rest))
        return MovedLine(
            name=name,
            reads=self.reads,
            writes=self.writes,
            lines=self.lines,
            cpus=self.cpus,
            unshared=self.unshared,
            beside=tuple(sorted(set(self.variables) - self.needed)),
            by=by,
        )


def _variable(variables: Variables | None, address: int, bases: Sequence[int]) -> str:
    """The name of what lies at ``address``, with the offset of its line within it; "" where it was allocated."""
    found = variables.name(address, bases) if variables is not None else None
    if found is None or variables is None:
        return ""
    name, offset = found
    low, high = variables.per_cpu
    per_cpu = any(low <= (address - base) & (2**64 - 1) < high for base in bases)
    line = offset // LINE_BYTES * LINE_BYTES
    return f"{'per-CPU ' if per_cpu else ''}{name}{f'+{line:#x}' if line else ''}"


def _by_line(moves: Moves, functions: Sequence[str], variables: Variables | None) -> dict[int, _Line]:
    bases = [int(base) for base in moves.bases if base]
    shared = dict(zip(moves.lines["address"].tolist(), moves.lines["shared"].tolist(), strict=True))
    found: defaultdict[int, _Line] = defaultdict(_Line)
    for row, function in zip(moves.transfers.tolist(), functions, strict=True):
        address, _pc, _cpus, reads, writes = row
        line = found[address & -LINE_BYTES]
        line.reads += reads
        line.writes += writes
        line.by[function][0] += reads
        line.by[function][1] += writes
        needed = shared.get(address & -LINE_BYTES, 0) >> (address % LINE_BYTES) & 1
        if not needed:
            line.unshared += reads + writes
        if name := _variable(variables, address, bases):
            line.variables[name] += reads + writes
            if needed:
                line.needed.add(name)
    for address, cpus, _written, _shared in moves.lines.tolist():
        found[address].lines = 1
        found[address].cpus = int(cpus).bit_count()
    return found


def table(moves: Moves, symbols: Symbols | None, variables: Variables | None) -> tuple[MovedLine, ...]:
    """The lines that moved, by name, most transfers first; KEPT at most, the rest is one row OTHERS.

    The transfers of all rows add up to ``moves.total``.
    """
    pcs = np.ascontiguousarray(moves.transfers["pc"]).astype(np.uint64)
    raw = symbols.names(pcs) if symbols is not None else [None] * len(pcs)
    functions = [fold(name) if name else f"[unknown {int(pc) & ~4095:#x}]" for name, pc in zip(raw, pcs, strict=True)]
    named: defaultdict[str, _Line] = defaultdict(_Line)
    for line in _by_line(moves, functions, variables).values():
        named[line.name()].add(line)
    ranked = sorted(named, key=lambda name: (-(named[name].reads + named[name].writes), name))
    rows = [named[name].told(name) for name in ranked[:KEPT]]
    if ranked[KEPT:]:
        rest = _Line()
        for name in ranked[KEPT:]:
            rest.add(named[name])
        rows.append(rest.told(OTHERS))
    return tuple(rows)
