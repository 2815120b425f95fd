# SPDX-License-Identifier: GPL-2.0-or-later
"""Take single files out of a distribution's package without trusting it.

It is read as a stream (unpack.py), by tarfile or cpio.py: nothing is unpacked to a directory, no link is followed,
no member name becomes a path on this machine, and sizes are limited.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Literal, TypeVar, cast

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.kernel import unpack

Part = Literal["image", "config", "system_map"]
_Read = TypeVar("_Read")
_LIMIT_BYTES: dict[Part, int] = {"image": 512 << 20, "config": 4 << 20, "system_map": 64 << 20}
TOTAL_LIMIT_BYTES = 16 << 30


class KernelFiles(Struct, frozen=True, kw_only=True):
    """What a kernel package holds: contents of files, empty where it has none."""

    package: str
    version: str
    architecture: str
    image: bytes = b""
    config: bytes = b""
    system_map: bytes = b""


class Entry(Struct, frozen=True, kw_only=True):
    """A member of an archive; ``open`` gives the content of a regular file, until the next member is asked for.

    ``others`` are names of links to it that came before.
    """

    name: str
    others: tuple[str, ...] = ()
    size: int
    regular: bool
    open: Callable[[], IO[bytes]]


def of_tarfile(read: Callable[[], _Read]) -> _Read:
    """What tarfile reads. It calls itself for each header that stands before a member, and takes any text for a number
    in maps of sparse files, and for the length of an extended header.

    Raises:
        unpack.Damaged: where it raises what it does not declare.
    """
    try:
        return read()
    except (ValueError, ArithmeticError, LookupError, TypeError, RecursionError) as error:
        raise unpack.Damaged(f"a member's header: {error}") from None


def entries(tar: tarfile.TarFile, data: unpack.Stream | None = None) -> Iterator[Entry]:
    """The members of a tar archive, none of which is kept; ``data`` is what ``tar`` reads."""
    while True:
        if data is not None:
            data.allow(unpack.HEADER_BYTES)
        if (member := of_tarfile(tar.next)) is None:
            return
        tar.members = []  # type: ignore[attr-defined]
        if member.size < 0:
            raise unpack.Damaged(f"a member of {member.size} bytes")
        if data is not None:
            data.allow(member.size)
        opened = cast(Callable[[], IO[bytes]], partial(tar.extractfile, member))
        yield Entry(name=member.name, size=member.size, regular=member.isreg(), open=opened)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Within it, what is wrong with the archive in the package at ``path`` is the user's to know.

    Raises:
        UserError: it is damaged, cut short or implausibly large, also where that shows only while a member is read.
    """
    try:
        yield
    except unpack.TooLarge as error:
        raise UserError(f"{path}: {error}") from None
    except (tarfile.TarError, EOFError, unpack.Damaged) as error:
        raise UserError(f"{path}: its data cannot be read ({error}); is the download complete?") from None


@contextmanager
def stream(data: unpack.Stream, path: Path) -> Iterator[Iterator[Entry]]:
    """A tar archive's members, for ``members``; ``path`` is the package that it is of.

    Raises:
        UserError: as ``readable``.
    """
    # not tarfile.open: as a stream it takes headers of any size into memory
    opened = partial(tarfile.TarFile, fileobj=cast(IO[bytes], data))
    with readable(path), of_tarfile(opened) as tar:
        yield entries(tar, data)


def _name(name: str) -> str | None:
    """A member's name without ./, None for one that climbs out or is absolute."""
    name = name.removeprefix("./")
    return None if name.startswith("/") or ".." in name.split("/") else name


def _wanted(entry: Entry, want: Callable[[str], int | None]) -> tuple[str, int]:
    """The first name of a regular file that is wanted, with its limit; "" where none is."""
    for name in (entry.name, *entry.others) if entry.regular else ():
        plain = _name(name)
        if plain and (limit := want(plain)) is not None:
            return plain, limit
    return "", 0


def members(found: Iterator[Entry], want: Callable[[str], int | None]) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, open file) of each regular member for which ``want(name)`` gives a size limit in bytes.

    Each file must be read before the next is asked for, inside the ``stream`` that gave ``found``.

    Raises:
        UserError: a wanted member is over its limit, or all of them together are implausible.
    """
    total_bytes = 0
    for entry in found:
        total_bytes += entry.size
        if total_bytes > TOTAL_LIMIT_BYTES:
            raise UserError(f"{entry.name}: the package unpacks to more than {TOTAL_LIMIT_BYTES >> 30} GiB")
        name, limit = _wanted(entry, want)
        if not name:
            continue
        if entry.size > limit:
            raise UserError(f"{name}: {entry.size} bytes in a package, more than the {limit} that are plausible")
        yield name, entry.open()


def parts(found: Iterator[Entry], patterns: dict[Part, re.Pattern[str]]) -> dict[Part, bytes]:
    """The first member that each of ``patterns`` matches; what follows the last one wanted is not read.

    Raises:
        UserError: as ``members``.
    """
    read: dict[Part, bytes] = {}

    def part(name: str) -> Part | None:
        return next((one for one, pattern in patterns.items() if one not in read and pattern.match(name)), None)

    def want(name: str) -> int | None:
        one = part(name)
        return None if one is None else _LIMIT_BYTES[one]

    for name, opened in members(found, want):
        if one := part(name):
            read[one] = opened.read()
        if len(read) == len(patterns):  # the modules that follow are most of the package
            break
    return read
