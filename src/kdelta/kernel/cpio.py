# SPDX-License-Identifier: GPL-2.0-or-later
"""The members of a cpio archive as RPM packages hold it: newc, and a form of rpm's own for files of any size.

Source: buffer-format.rst of the kernel (newc), lib/cpio.c of rpm: in its own form a member's header is its number in
the package's list of files, and its size is there.
"""

from __future__ import annotations

import io
import re
import stat
from collections.abc import Callable, Iterator
from typing import IO, cast

from msgspec import Struct

from kdelta.kernel.package import Entry
from kdelta.kernel.unpack import Damaged, Slice, Stream

_MAGIC_BYTES = 6
_NEWC, _OWN = (b"070701", b"070702"), b"07070X"  # the second has a checksum, which rpm reads over
_FIELDS, _FIELD_BYTES, _NAME_BYTES = 13, 8, 4096
_HEXADECIMAL = re.compile(rb"[0-9A-Fa-f]+")
_TRAILER = "TRAILER!!!"
_NO_FILE = 0xFFFFFFFF
_LINKS_BYTES = 16 << 20  # of names that are kept until the content comes


class File(Struct, frozen=True, kw_only=True):
    """One file as a package lists it; ``size`` is that of what the archive holds for it, ``others`` are its links."""

    name: str
    size: int
    regular: bool
    others: tuple[str, ...] = ()


class _Links:
    """Names of files whose content comes with the last of them, by what says that they are one."""

    def __init__(self) -> None:
        self._names: dict[tuple[int, ...], list[str]] = {}
        self._bytes = 0

    def add(self, place: tuple[int, ...], name: str) -> None:
        self._bytes += len(name)
        if self._bytes > _LINKS_BYTES:
            raise Damaged("more links than are plausible")
        self._names.setdefault(place, []).append(name)

    def of(self, place: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(self._names.pop(place, ()))


def entries(data: Stream, listed: Callable[[int], File]) -> Iterator[Entry]:
    """Each member up to the archive's end mark; ``listed`` gives the file of a number.

    Raises:
        Damaged: it is no such archive, or ends before its end mark.
    """
    links = _Links()
    while True:
        data.allow(_MAGIC_BYTES + _FIELDS * _FIELD_BYTES + _NAME_BYTES)
        found = _file(data, listed, links)
        if found is None:
            return
        _align(data)
        end = data.tell() + found.size
        data.allow(found.size)
        opened = cast(Callable[[], IO[bytes]], lambda size=found.size: io.BufferedReader(Slice(data, size)))
        yield Entry(name=found.name, others=found.others, size=found.size, regular=found.regular, open=opened)
        if data.seek(end) < end:
            raise Damaged("unexpected end of data")
        _align(data)


def _file(data: Stream, listed: Callable[[int], File], links: _Links) -> File | None:
    """What the next member is, None at the end mark."""
    magic = data.read(_MAGIC_BYTES)
    if magic == _OWN:
        number = _numbers(data, 1)[0]
        return None if number == _NO_FILE else listed(number)
    if magic not in _NEWC:
        raise Damaged("a member's header is damaged" if magic else "it ends before its end mark")
    inode, mode, _, _, count, _, size, major, minor, _, _, name_bytes, _ = _numbers(data, _FIELDS)
    if not 0 < name_bytes <= _NAME_BYTES:
        raise Damaged(f"a name of {name_bytes} bytes")
    name = data.read(name_bytes).partition(b"\0")[0].decode("utf-8", "replace")
    if name == _TRAILER:
        return None
    regular = stat.S_ISREG(mode)
    if not regular or count < 2:
        return File(name=name, size=size, regular=regular)
    if not size:
        links.add((major, minor, inode), name)
        return File(name=name, size=0, regular=False)
    return File(name=name, others=links.of((major, minor, inode)), size=size, regular=True)


def _numbers(data: Stream, count: int) -> list[int]:
    text = data.read(count * _FIELD_BYTES)
    if len(text) < count * _FIELD_BYTES or not _HEXADECIMAL.fullmatch(text):
        raise Damaged("a member's header is damaged")
    return [int(text[at : at + _FIELD_BYTES], 16) for at in range(0, len(text), _FIELD_BYTES)]


def _align(data: Stream) -> None:
    data.seek(data.tell() + -data.tell() % 4)
