# SPDX-License-Identifier: GPL-2.0-or-later
"""The files that an RPM package's header lists, by number: of payloads whose members have no header of their own. Pure.

Source: lib/rpmfi.c of rpm (iterReadArchiveNext, rpmfilesBuildNLink).
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from functools import cache

from kdelta.kernel.cpio import File
from kdelta.kernel.rpm_header import Header
from kdelta.kernel.unpack import Damaged

_SIZES, _LONG_SIZES, _MODES, _FLAGS, _DEVICES, _INODES = 1028, 5008, 1030, 1037, 1095, 1096  # rpmtag.h
_DIRECTORY_OF, _NAMES, _DIRECTORIES = 1116, 1117, 1118
_GHOST = 1 << 6  # a file that is listed, and not in the payload


def of(header: Header) -> Callable[[int], File]:
    """What gives the file of a number; the list is made when the first is asked for."""

    @cache
    def listed() -> list[File]:
        return _files(header)

    def file(number: int) -> File:
        if number >= len(listed()):
            raise Damaged(f"a member is file {number} of {len(listed())}")
        return listed()[number]

    return file


def _files(header: Header) -> list[File]:
    names, folders, folder_of = header.strings(_NAMES), header.strings(_DIRECTORIES), header.numbers(_DIRECTORY_OF)
    sizes, modes = header.numbers(_LONG_SIZES) or header.numbers(_SIZES), header.numbers(_MODES)
    flags = header.numbers(_FLAGS) or (0,) * len(names)
    if {len(names)} != {len(column) for column in (folder_of, sizes, modes, flags)}:
        raise Damaged("its lists of files do not agree")
    if any(number >= len(folders) for number in folder_of):
        raise Damaged("a file is in a directory that is not listed")
    regular = [stat.S_ISREG(mode) and not flag & _GHOST for mode, flag in zip(modes, flags, strict=True)]
    paths = [(folders[folder] + name).removeprefix("/") for folder, name in zip(folder_of, names, strict=True)]
    links = _links(header, regular)
    return [
        File(
            name=path,
            others=tuple(paths[one] for one in links[number][:-1]),
            size=size if stat.S_ISLNK(mode) or links[number] else 0,  # a link's target is in the payload
            regular=bool(links[number]),
        )
        for number, (path, size, mode) in enumerate(zip(paths, sizes, modes, strict=True))
    ]


def _links(header: Header, regular: list[bool]) -> list[list[int]]:
    """For each file that has its content, the numbers of all that are links to it, itself the last; for others none."""
    places = list(zip(header.numbers(_DEVICES), header.numbers(_INODES), strict=False))
    files: dict[tuple[int, ...], list[int]] = {}
    for number, one in enumerate(regular):
        if one:
            alone = len(places) != len(regular) or not places[number][1]
            files.setdefault((number,) if alone else places[number], []).append(number)
    found: list[list[int]] = [[] for _ in regular]
    for numbers in files.values():
        found[numbers[-1]] = numbers
    return found
