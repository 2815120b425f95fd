# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of Debian's kernel sources: the C and assembly that kernels of guests run, with an index of functions.

One ZIP a release in the cache, a thirtieth of the unpacked source. The least recently used make way; all of them can be
made again.
"""

from __future__ import annotations

import os
import re
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import IO

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.kernel import cache, debian, definitions, unpack
from kdelta.kernel.package import entries, members, of_tarfile
from kdelta.model import Kernel, Progress
from kdelta.paths import cache_dir

LIMIT_BYTES = 1 << 30  # of all that is kept: some twenty releases
_FOLDERS = (
    "arch/arm64/", "arch/x86/", "block/", "crypto/", "drivers/base/", "drivers/block/", "drivers/char/",
    "drivers/clocksource/", "drivers/cpuidle/", "drivers/dma-buf/", "drivers/tty/", "fs/", "include/", "init/",
    "io_uring/", "ipc/", "kernel/", "lib/", "mm/", "net/", "security/", "virt/",
)  # fmt: skip
_CODE = (".c", ".h", ".S")
_FILE_LIMIT_BYTES = 64 << 20
_UNPACKED_BYTES = 256 << 20
_INDEX, _WORDS = ".functions", ".words"
_ORIGIN = re.compile(r"Debian linux-\S+ (\S+)")
_SUFFIX = ".functions.zip"


class Kept(Struct, frozen=True, kw_only=True):
    """One release's file; ``used_s`` is when it was last opened, in seconds since the epoch."""

    name: str
    path: Path
    used_s: float
    size_bytes: int


class Excerpt:
    """The source of one release as far as it is kept (a ``rewrites.Source``)."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)
        self._paths = frozenset(self._zip.namelist())

    @cached_property
    def _index(self) -> bytes:  # searched as it is: a table of 165,000 functions is made in longer than it is asked
        return self._zip.read(_INDEX)

    @cached_property
    def _words(self) -> bytes:
        return self._zip.read(_WORDS)

    def where(self, name: str) -> list[str]:
        """The files that define a function."""
        return _line(self._index, name.encode()).decode().split("\t")[1:]

    def read(self, path: str) -> str:
        """The text of a file, "" where there is none."""
        return self._zip.read(path).decode("utf-8", "replace") if path in self._paths else ""

    def has_word(self, name: str) -> bool:
        """Whether an identifier occurs anywhere."""
        return bool(_line(self._words, name.encode()))


def _line(lines: bytes, name: bytes) -> bytes:
    """The line whose first word is ``name``, b"" without one; each of the sorted ``lines`` begins behind a newline."""
    low, high = 0, len(lines) - 1  # newlines, between which it is
    while low < high:
        begin = lines.rfind(b"\n", low, (low + high) // 2 + 1)
        end = lines.index(b"\n", begin + 1)
        line = lines[begin + 1 : end]
        word = line.partition(b"\t")[0]
        if word == name:
            return line
        low, high = (end, high) if word < name else (low, begin)
    return b""


def version_of(kernel: Kernel) -> str:
    """The version of Debian's package that a kernel is from, and so of its source; "" of another kernel."""
    found = _ORIGIN.fullmatch(kernel.origin)
    return found[1] if found else ""


def _path(version: str) -> Path:
    return cache_dir() / "sources" / f"{version}{_SUFFIX}"


def at_hand(version: str) -> Excerpt | None:
    """The source of a version of Debian's package, where it is kept and whole; of "" there is none."""
    path = _path(version)
    try:
        found = Excerpt(path)
        os.utime(path)
    except (OSError, zipfile.BadZipFile):
        return None
    return found


def fetched(version: str, progress: Progress) -> Excerpt:
    """``at_hand``; where it is not, made from Debian's package (160 MB to download, a minute to read).

    Raises:
        UserError: the archive has no source of that version.
        HostError: apt failed, or the disk is full.
    """
    if (known := at_hand(version)) is not None:
        return known
    path = _path(version)
    with cache.locked(path.parent):
        found = debian.source_of(version, progress)
        cache.require_space(path.parent, _UNPACKED_BYTES, f"the functions of {version}")
        with debian.read_source(found, progress) as tarball:
            progress.step(f"reading the functions of {version}")
            _make(path, tarball)
        for one in doomed(kept(), path):
            remove(one)
    return Excerpt(path)


def _wanted(name: str) -> int | None:
    inside = name.partition("/")[2]
    return _FILE_LIMIT_BYTES if inside.endswith(_CODE) and inside.startswith(_FOLDERS) else None


def _make(path: Path, tarball: IO[bytes]) -> None:
    """Write the file of a release whose packed source is ``tarball``; whole, or not at all."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
            try:
                with of_tarfile(partial(tarfile.open, fileobj=tarball, mode="r|*")) as tar:
                    found = members(entries(tar), _wanted)
                    write(file, ((name.partition("/")[2], opened.read()) for name, opened in found))
                os.replace(file.name, path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except (tarfile.TarError, EOFError, unpack.Damaged) as error:
        raise UserError(f"{path.name}: the source cannot be read ({error}); is the download complete?") from None
    except OSError as error:
        raise cache.disk_error(error, path) from None


def write(file: IO[bytes], files: Iterator[tuple[str, bytes]]) -> None:
    """Write the (path, text) of a source with its index."""
    where: dict[str, list[str]] = defaultdict(list)
    words: set[bytes] = set()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, text in files:
            packed.writestr(path, text)
            words |= definitions.words(text)
            for name in definitions.names(path, text.decode("utf-8", "replace")):
                where[name].append(path)
        lines = ["\t".join([name, *sorted(paths)]) for name, paths in sorted(where.items())]
        packed.writestr(_INDEX, "\n".join(["", *lines, ""]))
        packed.writestr(_WORDS, b"\n" + b"\n".join(sorted(words)) + b"\n")


def kept() -> list[Kept]:
    """All releases that are kept, by name."""
    found = sorted(_path("").parent.glob(f"*{_SUFFIX}"))
    stats = ((path, path.stat()) for path in found)
    return [
        Kept(name=path.name.removesuffix(_SUFFIX), path=path, used_s=stat.st_mtime, size_bytes=512 * stat.st_blocks)
        for path, stat in stats
    ]


def doomed(found: list[Kept], spared: Path, limit_bytes: int = LIMIT_BYTES) -> list[Kept]:
    """Which go, least recently used first, until the others fit; never ``spared``. Pure."""
    excess, gone = sum(one.size_bytes for one in found) - limit_bytes, []
    for one in sorted(found, key=lambda one: one.used_s):
        if excess > 0 and one.path != spared:
            gone.append(one)
            excess -= one.size_bytes
    return gone


def remove(one: Kept) -> None:
    """Delete it; who has it open reads on.

    Raises:
        HostError: not permitted.
    """
    try:
        one.path.unlink(missing_ok=True)
    except OSError as error:
        raise cache.disk_error(error, one.path) from None
