# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the symbol tables that a kernel carries for itself (CONFIG_KALLSYMS), from its image, without booting it.

Distributors strip vmlinux, but the kernel's own tables stay: names compressed with 256 tokens, and addresses.
Where the tables lie is not recorded, so they are found by what must hold: the token index repeats the offsets of
the token table, and the markers repeat the offsets of every 256th name. Three layouts are known:

====================  ==========================================================================================
up to 6.3             offsets, relative_base, num_syms, names, markers, [seqs_of_names from 6.2], tokens, index
6.4 to 6.19           num_syms, names, markers, tokens, index, offsets, relative_base, seqs_of_names
from 7.0              as 6.4, with each offset relative to its own place; no base
====================  ==========================================================================================

How tables are aligned changes with the release and with the length of what lies before them, and is not recorded
either: all that fit are candidates, and ``proof`` decides by the machine code. Up to 6.14 x86 (ABSOLUTE_PERCPU) stores
per-CPU symbols as positive absolute values and all others as ``base - 1 - address``. arm64 leaves the base to a
relocation where it uses RELA; it is then the image's own address.
Source: scripts/kallsyms.c and kernel/kallsyms.c of the kernel; checked against /proc/kallsyms of booted guests.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from kdelta.kernel.memory import Image

_DIGITS = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00"
_TYPES = frozenset(b"aAbBcCdDgGiInNpPrRsStTuUvVwW?-")
_MAX_SYMBOLS = 4_000_000
_SEARCH_BYTES = 64 << 20
_PER_MARKER = 256  # names
_INDEX_REACH = 0xFFFF  # bytes: offsets of tokens have 16 bits
_LONGEST_NAME = 514  # KSYM_NAME_LEN with its length, in bytes; names before 6.1 are shorter
# An image is hostile where more places than this look like a table: real ones have one or two.
_MAX_TRIES = 4096
_MAX_WALKS = 64
_TOO_MANY = "kallsyms tokens with too many possible names: an unknown layout"
_MAX_READ_BYTES = 8 * _SEARCH_BYTES  # for num_syms, in front of all places that look like markers


class KallsymsError(ValueError):
    """The image has no readable kallsyms tables; the message says why."""


@dataclass(frozen=True)
class Symbols:
    """All kallsyms symbols in address order (aliases in the kernel's own order): addresses, types, names."""

    addresses: NDArray[np.uint64]
    types: str
    names: list[str]


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _first_token(data: bytes, at: int) -> int | None:
    """Where the tokens begin whose token "0" is at ``at``: "0" tokens before that; None where no index reaches."""
    low = max(at - 1 - _INDEX_REACH, 0)
    before = data[low : max(at - 1, 0)].rsplit(b"\0", ord("0"))
    if len(before) > ord("0"):
        return low + len(before[0]) + 1
    return None if low else 0


def _tokens(data: bytes) -> tuple[int, list[bytes], int]:
    """(offset of the token table, 256 tokens, end of the token index)."""
    at = -1
    for _ in range(_MAX_TRIES):
        at = data.find(_DIGITS, at + 1)
        if at < 0:
            break
        start = _first_token(data, at)
        tokens = [] if start is None else data[start : start + _INDEX_REACH].split(b"\0", 255)
        if start is None or len(tokens) < 256:
            continue
        offsets = [0, *accumulate(len(token) + 1 for token in tokens[:-1])]
        stop = data.find(b"\0", start + offsets[-1])
        if stop < 0:
            continue
        tokens[-1] = data[start + offsets[-1] : stop]
        index = struct.pack("<256H", *offsets)
        # The symbol before token "0" may end the padding: the start is where the index agrees.
        for place in {_up(stop + 1, 4), _up(stop + 1, 8), _up(stop + 1, 16)}:
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


def _runs(data: bytes, tokens_at: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Places that could be the markers, nearest to the tokens first: (place, values that rise as markers do)."""
    floor = max(0, tokens_at - _SEARCH_BYTES) & ~3
    words = np.frombuffer(data, "<u4", (tokens_at - floor) // 4, floor)
    if not len(words):
        return
    steps = words[1:] - words[:-1]
    good = np.append((steps >= 2 * _PER_MARKER) & (steps <= _LONGEST_NAME * _PER_MARKER), False)
    stops = np.flatnonzero(~good)
    # One alone is of up to 256 names, right before the tokens: 6.2 and 6.3 have 3 bytes a name between them.
    near = np.arange(len(words)) >= len(words) - 4 * _PER_MARKER
    starts = np.flatnonzero((words == 0) & (good | near))[::-1][:_MAX_TRIES]
    for start, stop in zip(starts.tolist(), stops[np.searchsorted(stops, starts)].tolist(), strict=True):
        yield floor + 4 * start, words[start : stop + 1].astype(np.int64)


@dataclass(frozen=True)
class _Tables:
    count_at: int
    count: int
    names_at: int
    tokens: list[bytes]
    end: int  # of the token index


def _counts(data: bytes, place: int, markers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(places that could be num_syms, last first, what is there); ``markers`` are the first of those of its names."""
    low = max(0, place - int(markers[-1]) - _LONGEST_NAME * _PER_MARKER - 16) & ~3
    counts = np.frombuffer(data, "<u4", (place - low) // 4, low).astype(np.int64)
    places = low + 4 * np.arange(len(counts))
    needed = (counts + _PER_MARKER - 1) // _PER_MARKER
    last = markers[np.clip(needed - 1, 0, len(markers) - 1)]
    gap = place - places - last  # what the names behind the last marker and the padding may take
    good = (counts > 0) & (counts < _MAX_SYMBOLS) & (needed <= len(markers))
    good &= (gap > 4) & (gap <= _LONGEST_NAME * _PER_MARKER + 16)
    found = np.flatnonzero(good)[::-1]
    return places[found], counts[found]


def _find(data: bytes) -> _Tables:
    tokens_at, tokens, end = _tokens(data)
    typed = np.array([bool(token) and token[0] in _TYPES for token in tokens])
    every = np.frombuffer(data, np.uint8)
    tries = walks = read_bytes = 0
    for place, markers in _runs(data, tokens_at):
        read_bytes += min(place, int(markers[-1]))
        if read_bytes > _MAX_READ_BYTES:
            raise KallsymsError("kallsyms tokens with too many possible markers: an unknown layout")
        places, counts = _counts(data, place, markers)
        begins = (places[:, np.newaxis] + (8, 4)).ravel()  # of the names
        length, first = every[begins], every[begins + 1]
        last = -1
        for last in np.flatnonzero((length > 0) & (length < 0x80) & typed[first]).tolist():
            if tries + last >= _MAX_TRIES or walks > _MAX_WALKS:
                raise KallsymsError(_TOO_MANY)
            count_at, count, names_at = int(places[last // 2]), int(counts[last // 2]), int(begins[last])
            begin = _walk(data, names_at, min(count, _PER_MARKER), place)
            if begin is None or (count > _PER_MARKER and begin[0] - names_at != markers[1]):
                continue
            walks += 1
            walked = _walk(data, names_at, count, place)
            if walked is None or walked[1] != markers[: len(walked[1])].tolist():
                continue
            if place in (_up(walked[0], 4), _up(walked[0], 8)):
                return _Tables(count_at, count, names_at, tokens, end)
        tries += len(begins)
        if tries > _MAX_TRIES or (walks > _MAX_WALKS and last < len(begins) - 1):
            raise KallsymsError(_TOO_MANY)
    raise KallsymsError("kallsyms tokens without names: an unknown layout")


def _names(data: bytes, tables: _Tables) -> tuple[str, list[str]]:
    """(one type letter a symbol, names).

    Raises:
        KallsymsError: a symbol has not even a type.
    """
    tokens, at = tables.tokens, tables.names_at
    types: list[str] = []
    names: list[str] = []
    for _ in range(tables.count):
        length = data[at]
        at += 1
        if length & 0x80:
            length = (length & 0x7F) | data[at] << 7
            at += 1
        text = b"".join([tokens[byte] for byte in data[at : at + length]]).decode("latin-1")
        if not text:
            raise KallsymsError(f"kallsyms symbol {len(names)} has no type: an unknown layout")
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
    base = base or _relocated(image, base_at) or next((segment.address for segment in image.segments), 0)
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
    """Addresses as each known layout would have them: most of them nonsense."""
    count = tables.count
    starts = sorted({_up(tables.end, 4), _up(tables.end, 8)})
    for at in starts:
        for base_at in sorted({_up(at + 4 * count, 4), _up(at + 4 * count, 8)}):
            yield from _relative(image, at, base_at, count)
    for at in starts:
        yield from _own_place(image, at, count)
    for base_at in sorted({tables.count_at - 8, (tables.count_at & ~7) - 8}):
        for at in sorted({base_at - 4 * count, (base_at - 4 * count) & ~7}):
            yield from _relative(image, at, base_at, count)


def candidates(image: Image) -> Iterator[Symbols]:
    """All symbols of the image's kallsyms tables, once for each layout in which they can be read: one is true.

    Raises:
        KallsymsError: there are no tables, or in no layout that is known.
    """
    tables = _find(image.data)
    types, names = _names(image.data, tables)
    anchor = next((names.index(name) for name in ("_stext", "_text") if name in names), None)
    if anchor is None:
        raise KallsymsError("kallsyms tables without _stext: an unknown layout")
    known = False
    for addresses in _layouts(image, tables):
        if _rising(addresses) and image.holds(int(addresses[anchor])):
            known = True
            yield Symbols(addresses, types, names)
    if not known:
        raise KallsymsError("kallsyms names without addresses: an unknown layout")
