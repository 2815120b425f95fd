# SPDX-License-Identifier: GPL-2.0-or-later
"""The header of an RPM package, and the one of its digests: values by tag. Pure: bytes in, value out.

Source: format_header.md of rpm; lib/header.c (hdrblobVerifyRegion, hdrblobVerifyInfo), whose checks these are.
"""

from __future__ import annotations

import struct
from typing import Literal

from msgspec import Struct

INTRO_BYTES = 16
_MAGIC = b"\x8e\xad\xe8\x01\0\0\0\0"
_ENTRY = struct.Struct(">IIiI")  # tag, type, offset, count
SIGNATURES: Literal[62] = 62  # tags of regions: what the first one of a header may be
IMMUTABLE: Literal[63] = 63
_IMAGE = 61  # of a region in the trailer that some old packages have for SIGNATURES
_TAGS = range(100, 1 << 31)
_MOST_ENTRIES = {SIGNATURES: 32, IMMUTABLE: 0xFFFF}
_MOST_BYTES = {SIGNATURES: 64 << 20, IMMUTABLE: 128 << 20}
_MOST_VALUES = 0xFFFFF
STRING, _BINARY, STRINGS, _TRANSLATED = 6, 7, 8, 9  # types
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, _BINARY: 1}  # of types whose values are of one size
_NUMBERS = {2: "B", 3: "H", 4: "I", 5: "Q"}
_TYPES = {*_SIZES, STRING, STRINGS, _TRANSLATED}
Region = Literal[62, 63]


class HeaderError(Exception):
    """Not such a header; the message says why."""


class _Entry(Struct, frozen=True):
    tag: int
    type: int
    offset: int
    count: int


class Header(Struct, frozen=True):
    """Values by tag, of the first entry that has it; one that is there as another type is not there."""

    entries: dict[int, _Entry]
    data: bytes

    def __contains__(self, tag: int) -> bool:
        return tag in self.entries

    def _found(self, tag: int, *types: int) -> _Entry | None:
        found = self.entries.get(tag)
        return found if found is not None and found.type in types else None

    def strings(self, tag: int, *types: int) -> list[str]:
        """The texts of a tag, none where it has none, or none of ``types`` where some are given."""
        found = self._found(tag, *(types or (STRING, STRINGS, _TRANSLATED)))
        if found is None:
            return []
        end = _end(found, self.data)
        texts = self.data[found.offset : end - 1].split(b"\0")
        return [text.decode("utf-8", "replace") for text in texts]

    def numbers(self, tag: int) -> tuple[int, ...]:
        """The numbers of a tag, none where it has none."""
        found = self._found(tag, *_NUMBERS)
        if found is None:
            return ()
        return struct.unpack_from(f">{found.count}{_NUMBERS[found.type]}", self.data, found.offset)

    def binary(self, tag: int) -> bytes:
        """The bytes of a tag, none where it has none."""
        found = self._found(tag, _BINARY)
        return self.data[found.offset : found.offset + found.count] if found else b""


def lengths(intro: bytes, region: Region) -> tuple[int, int]:
    """(entries, bytes of data) that follow the first 16 bytes of a header.

    Raises:
        HeaderError: it is none, or implausibly large.
    """
    if len(intro) < INTRO_BYTES or not intro.startswith(_MAGIC):
        raise HeaderError("there is no header where it should be")
    count, size = struct.unpack_from(">II", intro, len(_MAGIC))
    if count > _MOST_ENTRIES[region] or size > _MOST_BYTES[region]:
        raise HeaderError(f"a header of {count} entries and {size} bytes")
    return count, size


def size_of(lengths: tuple[int, int]) -> int:
    """Bytes of the entries and their data."""
    return lengths[0] * _ENTRY.size + lengths[1]


def parse(body: bytes, lengths: tuple[int, int], region: Region) -> Header:
    """The header whose entries and data are ``body``.

    Raises:
        HeaderError: it is cut short, or an entry of it is not sound.
    """
    count, size = lengths
    if len(body) < size_of(lengths):
        raise HeaderError("it ends within a header")
    at = count * _ENTRY.size
    entries, data = [_Entry(*fields) for fields in _ENTRY.iter_unpack(body[:at])], body[at : at + size]
    if not entries:
        raise HeaderError("a header without entries")
    trailer = -1
    if entries[0].tag == region:
        trailer = _region(entries.pop(0), count, data, region)
    last = 0
    for entry in entries:
        end = _end(entry, data)
        if (
            entry.tag not in _TAGS
            or entry.offset < last
            or (entry.offset < trailer + _ENTRY.size and end > trailer >= 0)
        ):
            raise HeaderError(f"entry {entry.tag} of a header is not where it should be")
        last = end
    return Header({entry.tag: entry for entry in reversed(entries)}, data)


def _region(first: _Entry, count: int, data: bytes, region: Region) -> int:
    """Where the trailer of the region lies that ``first`` stands for, of a header of ``count`` entries."""
    at = first.offset
    if (first.type, first.count) != (_BINARY, _ENTRY.size) or not 0 <= at <= len(data) - _ENTRY.size:
        raise HeaderError("the region of a header is damaged")
    trailer = _Entry(*_ENTRY.unpack_from(data, at))
    tags = (SIGNATURES, _IMAGE) if region == SIGNATURES else (region,)
    inside, rest = divmod(-trailer.offset, _ENTRY.size)
    if trailer.tag not in tags or (trailer.type, trailer.count) != (_BINARY, _ENTRY.size):
        raise HeaderError("the end of a header's region is damaged")
    whole = region == SIGNATURES or (inside, at + _ENTRY.size) == (count, len(data))
    if rest or not 0 <= inside <= count or not whole:
        raise HeaderError("the region of a header is not all of it")
    return at


def _end(entry: _Entry, data: bytes) -> int:
    """Where the values of ``entry`` end."""
    least = _SIZES.get(entry.type, 1)
    most = len(data) if entry.type == _BINARY else 1 if entry.type == STRING else _MOST_VALUES
    if entry.type not in _TYPES or not 0 < entry.count <= most:
        raise HeaderError(f"entry {entry.tag} of a header is of type {entry.type} with {entry.count} values")
    if (
        entry.offset < 0
        or entry.offset + least * entry.count > len(data)
        or (entry.type in _NUMBERS and entry.offset % least)
    ):
        raise HeaderError(f"entry {entry.tag} of a header is not where it should be")
    if entry.type in _SIZES:
        return entry.offset + least * entry.count
    end = entry.offset
    for _ in range(entry.count):
        end = data.find(b"\0", end) + 1
        if not end:
            raise HeaderError(f"entry {entry.tag} of a header does not end")
    return end
