# SPDX-License-Identifier: GPL-2.0-or-later
"""Take single files out of a distribution's package without trusting it.

The distribution's own program streams the package as tar and tarfile reads it: nothing is unpacked to a directory, no
link is followed, no member name becomes a path on this machine, and sizes are limited.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from msgspec import Struct

from kdelta.errors import HostError, UserError

Part = Literal["image", "config", "system_map"]
_LIMIT_BYTES: dict[Part, int] = {"image": 512 << 20, "config": 4 << 20, "system_map": 64 << 20}
_TOTAL_LIMIT_BYTES = 16 << 30


class KernelFiles(Struct, frozen=True, kw_only=True):
    """What a kernel package holds: contents of files, empty where it has none."""

    package: str
    version: str
    architecture: str
    image: bytes = b""
    config: bytes = b""
    system_map: bytes = b""


def program(name: str, debian_package: str, purpose: str) -> str:
    """The path of a program.

    Raises:
        HostError: it is not installed.
    """
    found = shutil.which(name)
    if found is None:
        raise HostError(f"{name} is not installed: install {debian_package} {purpose}")
    return found


@contextmanager
def stream(data: IO[bytes], path: Path) -> Iterator[tarfile.TarFile]:
    """A tar stream for ``members``; ``path`` is the package that it is of.

    Raises:
        UserError: it is damaged or cut short, also where that shows only while a member is read.
    """
    try:
        with tarfile.open(fileobj=data, mode="r|") as tar:
            yield tar
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"{path}: its data cannot be read ({error}); is the download complete?") from None


@contextmanager
def contents(argv: Sequence[str], path: Path) -> Iterator[tarfile.TarFile]:
    """What ``argv`` makes of the package at ``path``, also its standard input, as a tar stream for ``members``.

    A reader that stops early ends the program.

    Raises:
        UserError: as ``stream``.
    """
    with path.open("rb") as package:
        process = subprocess.Popen(argv, stdin=package, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        with stream(process.stdout, path) as tar:
            yield tar
    finally:
        process.stdout.close()
        process.terminate()
        process.wait()


def _name(member: tarfile.TarInfo) -> str | None:
    """The member's name without ./, None for one that climbs out or is absolute."""
    name = member.name.removeprefix("./")
    return None if name.startswith("/") or ".." in name.split("/") else name


def members(tar: tarfile.TarFile, want: Callable[[str], int | None]) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, open file) of each regular member for which ``want(name)`` gives a size limit in bytes.

    Each file must be read before the next is asked for, inside the ``contents`` that gave ``tar``.

    Raises:
        UserError: a wanted member is over its limit, or all of them together are implausible.
    """
    total_bytes = 0
    for member in tar:
        total_bytes += member.size
        if total_bytes > _TOTAL_LIMIT_BYTES:
            raise UserError(f"{member.name}: the package unpacks to more than {_TOTAL_LIMIT_BYTES >> 30} GiB")
        name = _name(member)
        limit = want(name) if name is not None and member.isreg() else None
        if name is None or limit is None:
            continue
        if member.size > limit:
            raise UserError(f"{name}: {member.size} bytes in a package, more than the {limit} that are plausible")
        opened = tar.extractfile(member)
        if opened is not None:
            yield name, opened


def parts(tar: tarfile.TarFile, patterns: dict[Part, re.Pattern[str]]) -> dict[Part, bytes]:
    """The first member that each of ``patterns`` matches; what follows the last one wanted is not read.

    Raises:
        UserError: as ``members``.
    """
    found: dict[Part, bytes] = {}

    def part(name: str) -> Part | None:
        return next((one for one, pattern in patterns.items() if one not in found and pattern.match(name)), None)

    def want(name: str) -> int | None:
        one = part(name)
        return None if one is None else _LIMIT_BYTES[one]

    for name, opened in members(tar, want):
        if one := part(name):
            found[one] = opened.read()
        if len(found) == len(patterns):  # the modules that follow are most of the package
            break
    return found
