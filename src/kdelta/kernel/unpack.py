# SPDX-License-Identifier: GPL-2.0-or-later
"""Streams of compressed data, read a piece at a time: by the decompressors of Python and zstandard, within limits.

What is asked of a stream and what comes out of it is bounded, and so is the memory of a decompressor.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Literal, Protocol, cast

import zstandard

Kind = Literal["", "gz", "bz2", "lzma", "xz", "zst"]  # as a suffix says it; "" is not compressed
HEADER_BYTES = 1 << 20  # of one member of an archive, with its name and attributes
_PIECE_BYTES = 1 << 18
# A decompressor's: xz -9 asks for 65 MiB; 128 MiB is what zstd, dpkg and rpm take of --long unless told otherwise.
_LZMA_BYTES = 256 << 20
_ZSTD_WINDOW_BYTES = 128 << 20


_MAGIC: tuple[tuple[bytes, Kind], ...] = (
    (b"\x1f\x8b", "gz"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bz2"),
    (b"\x28\xb5\x2f\xfd", "zst"),
)


class Damaged(Exception):
    """Data that cannot be unpacked; the message says why."""


class TooLarge(Damaged):
    """Data that is more than is plausible once it is unpacked."""


class Readable(Protocol):
    """What can be read from its beginning to its end."""

    def read(self, size: int, /) -> bytes:
        """The next ``size`` bytes, fewer at the end."""
        ...


class Slice(io.RawIOBase):
    """The next ``size`` bytes of ``data``, as a file of its own.

    Raises:
        Damaged: there are fewer, where that shows.
    """

    def __init__(self, data: Readable, size: int) -> None:
        self._data, self.left = data, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        wanted = min(len(buffer), self.left)
        found = self._data.read(wanted)
        if len(found) < wanted:
            raise Damaged("unexpected end of data")
        buffer[:wanted] = found
        self.left -= wanted
        return wanted


class _Lzma(io.RawIOBase):
    """One stream of xz or of the older .lzma, as dpkg and rpm read it; Python's own reader limits no memory."""

    def __init__(self, file: Readable, form: int) -> None:
        self._file = file
        self._unpack = lzma.LZMADecompressor(form, memlimit=_LZMA_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        plain = b""
        while not plain and not self._unpack.eof:
            packed = self._file.read(_PIECE_BYTES) if self._unpack.needs_input else b""
            if self._unpack.needs_input and not packed:
                raise EOFError("it ends before its end mark")
            plain = self._unpack.decompress(packed, len(buffer))
        buffer[: len(plain)] = plain
        return len(plain)


def _zstd(file: IO[bytes]) -> object:
    unpack = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    return unpack.stream_reader(file, read_size=_PIECE_BYTES, read_across_frames=True, closefd=False)


_READERS: dict[Kind, Callable[[IO[bytes]], object]] = {
    "gz": lambda file: gzip.GzipFile(fileobj=file),
    "bz2": lambda file: bz2.BZ2File(file),
    "lzma": lambda file: _Lzma(file, lzma.FORMAT_ALONE),
    "xz": lambda file: _Lzma(file, lzma.FORMAT_XZ),
    "zst": _zstd,
}


class Stream:
    """What ``file`` holds, unpacked: read from its beginning to its end, as cpio and tarfile want it.

    Raises:
        Damaged: it cannot be unpacked, or a reader asks for more than it was allowed.
        TooLarge: there is more than ``limit_bytes`` of it.
    """

    def __init__(self, file: IO[bytes], kind: Kind, limit_bytes: int) -> None:
        reader = _READERS.get(kind)
        made = io.BufferedReader(cast(io.RawIOBase, reader(file)), _PIECE_BYTES) if reader else file
        self._file: Readable = made
        self._at, self._limit_bytes, self._allowed_bytes = 0, limit_bytes, HEADER_BYTES

    def allow(self, size: int) -> None:
        """From now on ``size`` bytes may be read; others can only be skipped."""
        self._allowed_bytes = size

    def tell(self) -> int:
        return self._at

    def read(self, size: int, /) -> bytes:
        """The next ``size`` bytes, fewer at the end."""
        if not 0 <= size <= self._allowed_bytes:  # tarfile takes what a header says, and that may be less than nothing
            raise Damaged(f"{size} bytes where no more than {self._allowed_bytes} are plausible")
        self._allowed_bytes -= size
        return self._next(size)

    def seek(self, position: int) -> int:
        """Skip what comes before ``position``."""
        if position < self._at:
            raise Damaged("a member begins before the end of the one before it")
        while self._at < position and self._next(min(position - self._at, _PIECE_BYTES)):
            pass
        return self._at

    def _next(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except (zlib.error, lzma.LZMAError, zstandard.ZstdError, EOFError, OSError, ValueError) as error:
            raise Damaged(str(error)) from None
        self._at += len(data)
        if self._at > self._limit_bytes:
            raise TooLarge(f"it unpacks to more than {self._limit_bytes >> 20} MiB")
        return data


def kind_of(data: bytes) -> Kind:
    """How ``data`` is packed, by how it begins; "" where it is not."""
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), "")


def whole(file: IO[bytes], kind: Kind, limit_bytes: int) -> bytes:
    """All that ``file`` holds.

    Raises:
        Damaged: it cannot be unpacked.
        TooLarge: it is more than ``limit_bytes``.
    """
    stream = Stream(file, kind, limit_bytes)
    stream.allow(limit_bytes + 1)
    return stream.read(limit_bytes + 1)
