# SPDX-License-Identifier: GPL-2.0-or-later
"""A program of half a kB with all that kdelta reads of one: a real one takes ten times as long."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from elftools.elf import elffile
from elftools.elf.structs import ELFStructs

_LOAD, _DYNAMIC, _INTERP = 1, 2, 3
_NEEDED, _STRTAB, _STRSZ, _RUNPATH, _RPATH = 1, 5, 10, 29, 15
_HEADER, _SEGMENT = 64, 56
_X86_64, _SHARED = 62, 3


def tiny() -> bytes:
    """ELF as ld writes it of a program that is linked to two libraries (elf(5))."""
    interpreter = b"/lib64/ld-linux-x86-64.so.2\0"
    names = (b"", b"libc.so.6", b"libm.so.6", b"$ORIGIN/../lib:/opt/lib", b"/usr/lib/x")
    strings, at = b"".join(name + b"\0" for name in names), []
    for index in range(len(names)):
        at.append(sum(len(name) + 1 for name in names[:index]))
    interp_at = _HEADER + 3 * _SEGMENT
    strings_at = interp_at + len(interpreter)
    dynamic_at = strings_at + len(strings) + -(strings_at + len(strings)) % 8
    tags = ((_NEEDED, at[1]), (_NEEDED, at[2]), (_RUNPATH, at[3]), (_RPATH, at[4]),
            (_STRTAB, strings_at), (_STRSZ, len(strings)), (0, 0))  # fmt: skip
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    size = dynamic_at + len(dynamic)
    segments = (
        (_INTERP, interp_at, len(interpreter)),
        (_LOAD, 0, size),
        (_DYNAMIC, dynamic_at, len(dynamic)),
    )
    header = struct.pack(
        "<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, _SHARED, _X86_64, 1, 0, _HEADER, 0, 0, _HEADER, _SEGMENT,
        len(segments), 64, 0, 0,
    )  # fmt: skip
    table = b"".join(struct.pack("<IIQQQQQQ", kind, 4, at, at, at, n, n, 8) for kind, at, n in segments)
    body = header + table + interpreter + strings
    return body + bytes(dynamic_at - len(body)) + dynamic


@lru_cache(maxsize=1024)
def _made(little_endian: bool, elfclass: int, *header: str | None) -> dict[str, Any]:
    made = ELFStructs(little_endian, elfclass)
    made.create_basic_structs()
    if header:
        made.create_advanced_structs(*header)
    return vars(made)


class _Kept(ELFStructs):
    """pyelftools builds the parsers of a file's tables anew for each file, which takes longer than to read it."""

    def create_basic_structs(self) -> None:
        vars(self).update(_made(self.little_endian, self.elfclass))

    def create_advanced_structs(
        self, e_type: str | None = None, e_machine: str | None = None, e_ident_osabi: str | None = None
    ) -> None:
        vars(self).update(_made(self.little_endian, self.elfclass, e_type, e_machine, e_ident_osabi))


def keep_structs() -> None:
    """Have pyelftools build its parsers once for each kind of file."""
    vars(elffile)["ELFStructs"] = _Kept
