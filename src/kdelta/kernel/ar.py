# SPDX-License-Identifier: GPL-2.0-or-later
"""The members of an archive as ar(1) writes it, which is what a Debian package is: found, not read."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from typing import IO

from msgspec import Struct

from kdelta.kernel.unpack import Slice

MAGIC = b"!<arch>\n"
_HEADER_BYTES = 60
_HEADER = re.compile(rb"(.{16})(?:.{32})([0-9]{1,10}) {0,9}`\n", re.DOTALL)  # name; date, owner, group, mode; size


class ArError(Exception):
    """Not such an archive, or cut short; the message says why."""


class Member(Struct, frozen=True, kw_only=True):
    """One member, and where its content begins in the file."""

    name: str
    at: int
    size: int


def header(data: bytes) -> tuple[str, int]:
    """The name and size that a member's header gives. Pure.

    Raises:
        ArError: it is none.
    """
    found = _HEADER.fullmatch(data)
    if found is None:
        raise ArError("a member's header is damaged")
    return found[1].rstrip(b" ").removesuffix(b"/").decode("ascii", "backslashreplace"), int(found[2])


def members(file: IO[bytes]) -> Iterator[Member]:
    """Each member of an archive, which lies in the file as a whole.

    Raises:
        ArError: it is no archive, or ends too early.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise ArError("it does not begin as one")
    at = len(MAGIC)
    while at < end:
        file.seek(at)
        name, size = header(file.read(_HEADER_BYTES))
        at += _HEADER_BYTES
        if at + size > end:
            raise ArError(f"its member {name} ends at byte {at + size}, the file at {end}; is the download complete?")
        yield Member(name=name, at=at, size=size)
        at += size + size % 2


def opened(file: IO[bytes], member: Member) -> IO[bytes]:
    """The content of ``member``, as a file of its own; one of them is read at a time."""
    file.seek(member.at)
    return io.BufferedReader(Slice(file, member.size))
