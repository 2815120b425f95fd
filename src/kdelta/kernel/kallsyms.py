# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the symbol tables that a kernel carries for itself (CONFIG_KALLSYMS), from its image, without booting it.

Distributors strip vmlinux, but the kernel's own tables stay: names compressed with 256 tokens, and addresses.
Where the tables lie is not recorded, so they are found by what must hold: the token index repeats the offsets of
the token table, and the markers repeat the offsets of every 256th name. Three layouts are known:

====================  ==========================================================================================
up to 6.3             offsets, relative_base, num_syms, names, markers, [seqs_of_names from 6.2], tokens, index
6.4 to 7.2            num_syms, names, markers, tokens, index, offsets, relative_base, seqs_of_names
from 7.3              as 6.4, with 4-byte alignment, and each offset relative to its own place; no base
====================  ==========================================================================================

Up to 6.14 x86 (ABSOLUTE_PERCPU) stores per-CPU symbols as positive absolute values and all others as
``base - 1 - address``. arm64 leaves the base to a relocation where it uses RELA; it is then the image's own address.
Source: scripts/kallsyms.c and kernel/kallsyms.c of the kernel; checked against /proc/kallsyms of booted guests.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdelta.kernel import elf

_DIGITS = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00"
_TYPES = frozenset(b"aAbBcCdDgGiInNpPrRsStTuUvVwW?-")
_MAX_SYMBOLS = 4_000_000
_SEARCH_BYTES = 64 << 20
_WINDOW_BYTES = 1 << 20
# KIMAGE_VADDR of arm64 is the middle of the kernel's half plus the module area: 128 MiB, 256 MiB (5.x), 2 GiB (6.5 on).
_ARM64_BASES = tuple(
    (1 << 64) - (1 << (bits - 1)) + area for bits in (48, 47, 42, 39, 36) for area in (2 << 30, 256 << 20, 128 << 20)
)


class KallsymsError(ValueError):
    """The image has no readable kallsyms tables; the message says why."""


@dataclass(frozen=True)
class Image:
    """Bytes of a kernel and where they are loaded."""

    data: bytes
    segments: tuple[elf.Segment, ...]

    def address_of(self, offset: int) -> int | None:
        """Virtual address of a file offset."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.size:
                return segment.address + offset - segment.offset
        return None

    def holds(self, address: int) -> bool:
        """Whether ``address`` is loaded from this file."""
        return any(segment.address <= address < segment.address + segment.size for segment in self.segments)


@dataclass(frozen=True)
class Symbols:
    """All kallsyms symbols in address order (aliases in the kernel's own order): addresses, types, names."""

    addresses: NDArray[np.uint64]
    types: str
    names: list[str]


def raw_arm64(data: bytes) -> Image:
    """An uncompressed arm64 Image as linked: its base is the candidate into which most of its own pointers lead."""
    words = np.frombuffer(data, "<u8", len(data) // 8)
    counts = [int(np.count_nonzero((words >= base) & (words < base + len(data)))) for base in _ARM64_BASES]
    return Image(data, (elf.Segment(_ARM64_BASES[int(np.argmax(counts))], 0, len(data)),))


def open_image(data: bytes) -> Image:
    """An Image from the bytes of a vmlinux ELF file or of an uncompressed arm64 Image.

    Raises:
        KallsymsError: neither.
    """
    if data[:4] == elf.MAGIC:
        try:
            return Image(data, elf.parse(data).segments)
        except elf.ElfError as error:
            raise KallsymsError(f"unreadable vmlinux: {error}") from None
    if data[56:60] == b"ARM\x64":
        return raw_arm64(data)
    raise KallsymsError("neither a vmlinux ELF file nor an arm64 Image")


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _tokens(data: bytes) -> tuple[int, list[bytes], int]:
    """(offset of the token table, 256 tokens, end of the token index)."""
    at = -1
    while (at := data.find(_DIGITS, at + 1)) >= 0:
        start = at
        for _ in range(ord("0")):
            start = data.rfind(b"\0", 0, max(start - 1, 0)) + 1
        tokens, offsets, end = [], [], start
        for _ in range(256):
            stop = data.find(b"\0", end)
            if stop < 0:
                break
            tokens.append(data[end:stop])
            offsets.append(end - start)
            end = stop + 1
        if len(tokens) < 256 or offsets[-1] > 0xFFFF:
            continue
        index = struct.pack("<256H", *offsets)
        # The symbol before token "0" may end the padding: the start is where the index agrees.
        for place in {_up(end, 4), _up(end, 8), _up(end, 16)}:
            if data[place : place + 512] == index:
                return start, tokens, place + 512
    raise KallsymsError("no kallsyms tables (is CONFIG_KALLSYMS off in this kernel?)")


def _walk(data: bytes, start: int, count: int, limit: int) -> tuple[int, list[int]] | None:
    """Step over ``count`` length-prefixed names: (end, offsets of every 256th), None if they pass ``limit``."""
    at, marks = start, []
    for i in range(count):
        if not i & 255:
            marks.append(at - start)
        length = data[at]
        at += 1
        if length & 0x80:
            length = (length & 0x7F) | data[at] << 7
            at += 1
        if not length:
            return None
        at += length
        if at > limit:
            return None
    return at, marks


def _counts(data: bytes, tokens_at: int) -> Iterator[tuple[int, int, int]]:
    """Places that could be num_syms, nearest to the tokens first: (place, count, start of names)."""
    floor = max(0, tokens_at - _SEARCH_BYTES)
    top = tokens_at & ~3
    while top > floor:
        bottom = max(floor & ~3, top - _WINDOW_BYTES)
        words = np.frombuffer(data, "<u4", (top - bottom) // 4 + 1, bottom)
        places = bottom + 4 * np.arange(len(words) - 1)
        room = tokens_at - places
        counts = words[:-1].astype(np.int64)
        good = (counts > 0) & (counts < _MAX_SYMBOLS) & (counts * 2 < room) & (counts * 256 + 4096 > room)
        for i in np.flatnonzero(good)[::-1]:
            place, count = int(places[i]), int(counts[i])
            if words[i + 1] == 0 and place % 8 == 0:
                yield place, count, place + 8
            yield place, count, place + 4
        top = bottom


@dataclass(frozen=True)
class _Tables:
    count_at: int
    count: int
    names_at: int
    tokens: list[bytes]
    end: int  # of the token index


def _find(data: bytes) -> _Tables:
    tokens_at, tokens, end = _tokens(data)
    types = frozenset(i for i, token in enumerate(tokens) if token and token[0] in _TYPES)
    for place, count, names_at in _counts(data, tokens_at):
        first = data[names_at + 1 : names_at + 2]
        if not first or first[0] not in types or not 0 < data[names_at] < 0x80:
            continue
        walked = _walk(data, names_at, count, tokens_at)
        if walked is None:
            continue
        markers = struct.pack(f"<{len(walked[1])}I", *walked[1])
        if any(data[_up(walked[0], step) :][: len(markers)] == markers for step in (4, 8)):
            return _Tables(place, count, names_at, tokens, end)
    raise KallsymsError("kallsyms tokens without names: an unknown layout")


def _names(data: bytes, tables: _Tables) -> tuple[str, list[str]]:
    """(one type letter a symbol, names)."""
    tokens, at, types, names = tables.tokens, tables.names_at, [], []
    for _ in range(tables.count):
        length = data[at]
        at += 1
        if length & 0x80:
            length = (length & 0x7F) | data[at] << 7
            at += 1
        text = b"".join([tokens[byte] for byte in data[at : at + length]]).decode("latin-1")
        types.append(text[:1])
        names.append(text[1:])
        at += length
    return "".join(types), names


def _rising(addresses: NDArray[np.uint64]) -> bool:
    return bool(np.all(addresses[1:] >= addresses[:-1]))


def _relocated(image: Image, at: int) -> int:
    """The addend of the R_AARCH64_RELATIVE relocation of the word at file offset ``at``, 0 if there is none."""
    place = image.address_of(at)
    if place is None:
        return 0
    found = image.data.find(struct.pack("<QQ", place, 0x403))
    return int(struct.unpack_from("<Q", image.data, found + 16)[0]) if 0 <= found <= len(image.data) - 24 else 0


def _relative(image: Image, at: int, base_at: int, count: int) -> Iterator[NDArray[np.uint64]]:
    """Addresses of a table with a base, plain and with the ABSOLUTE_PERCPU convention."""
    if at < 0 or base_at < 0 or max(at + 4 * count, base_at + 8) > len(image.data):
        return
    signed = np.frombuffer(image.data, "<i4", count, at).astype(np.int64)
    (base,) = struct.unpack_from("<Q", image.data, base_at)
    base = base or _relocated(image, base_at) or image.segments[0].address
    if base >> 48 != 0xFFFF:
        return
    yield (signed & 0xFFFFFFFF).astype(np.uint64) + np.uint64(base)
    yield np.where(signed >= 0, signed.astype(np.uint64), np.uint64(base - 1) - signed.astype(np.uint64))


def _own_place(image: Image, at: int, count: int) -> Iterator[NDArray[np.uint64]]:
    """Addresses of a table whose entries are relative to themselves."""
    place = image.address_of(at)
    if place is not None and at + 4 * count <= len(image.data):
        signed = np.frombuffer(image.data, "<i4", count, at).astype(np.int64)
        yield np.uint64(place) + (signed + 4 * np.arange(count)).astype(np.uint64)


def _layouts(image: Image, tables: _Tables) -> Iterator[NDArray[np.uint64]]:
    count = tables.count
    for at in (_up(tables.end, 8), _up(tables.end, 4)):
        yield from _relative(image, at, _up(at + 4 * count, 8), count)
    base_at = (tables.count_at & ~7) - 8
    yield from _relative(image, (base_at - 4 * count) & ~7, base_at, count)
    for at in (_up(tables.end, 8), _up(tables.end, 4)):
        yield from _own_place(image, at, count)


def parse(image: Image) -> Symbols:
    """All symbols of the image's kallsyms tables.

    Raises:
        KallsymsError: there are none, or in a layout that is not known.
    """
    tables = _find(image.data)
    types, names = _names(image.data, tables)
    anchor = next((names.index(name) for name in ("_stext", "_text") if name in names), None)
    if anchor is None:
        raise KallsymsError("kallsyms tables without _stext: an unknown layout")
    for addresses in _layouts(image, tables):
        if _rising(addresses) and image.holds(int(addresses[anchor])):
            return Symbols(addresses, types, names)
    raise KallsymsError("kallsyms names without addresses: an unknown layout")
