# SPDX-License-Identifier: GPL-2.0-or-later
"""The initramfs: an uncompressed newc cpio archive made from memory, identical for identical input.

Source: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel. Uncompressed, because the guest's
emulated decompression costs more than reading a few MiB from RAM.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kdelta import digests

_HEADER = b"070701" + 13 * b"%08x"
_PADDING = (b"", b"\0\0\0", b"\0\0", b"\0")  # to a multiple of four, by what is over


def _entry(
    inode: int, name: str, mode: int, data: bytes = b"", rdev: tuple[int, int] = (0, 0), mtime_s: int = 0
) -> bytes:
    encoded = os.fsencode(name) + b"\0"
    fields = (inode, mode, 0, 0, 1, mtime_s & 0xFFFFFFFF, len(data), 0, 0, rdev[0], rdev[1], len(encoded), 0)
    head = _HEADER % fields + encoded
    return b"".join((head, _PADDING[len(head) % 4], data, _PADDING[len(data) % 4]))


def _folders(names: Iterable[str]) -> list[str]:
    found: set[str] = set()
    for name in names:
        parts = name.split("/")[:-1]
        found.update("/".join(parts[: i + 1]) for i in range(len(parts)))
    return sorted(found)


def initramfs(files: Mapping[str, bytes], executable: frozenset[str] = frozenset({"init"})) -> bytes:
    """Pack ``files`` (path without a leading slash -> content) into a cpio archive with /dev/console.

    /dev/console must exist before init mounts devtmpfs, or PID 1 starts without standard streams.
    """
    parts = []
    inode = 1
    for folder in sorted({"dev", "proc", "sys", "tmp", "data", *_folders(files)}):
        parts.append(_entry(inode, folder, stat.S_IFDIR | 0o755))
        inode += 1
    parts.append(_entry(inode, "dev/console", stat.S_IFCHR | 0o600, rdev=(5, 1)))
    for name in sorted(files):
        inode += 1
        mode = stat.S_IFREG | (0o755 if name in executable else 0o644)
        parts.append(_entry(inode, name, mode, files[name]))
    parts.append(_entry(0, "TRAILER!!!", 0))
    return b"".join(parts)


class Node(Struct, frozen=True):
    """A file, directory or link: its mode with the type; its content, the file that has it, or the link's target."""

    mode: int
    source: bytes | Path = b""


def archive(nodes: Iterable[tuple[str, Node]]) -> bytes:
    """A further archive, which the kernel unpacks behind another; directories come before what is in them.

    Files keep their time of modification (CONFIG_INITRAMFS_PRESERVE_MTIME, v5.18): Python takes a compiled module only
    where it is its source's, and else compiles at every start.

    Raises:
        OSError: a file cannot be read.
    """
    parts = []
    for inode, (name, node) in enumerate(nodes):
        data, mtime_s = node.source, 0
        if isinstance(data, Path):
            with open(data, "rb", buffering=0) as file:
                mtime_s = int(os.fstat(file.fileno()).st_mtime)
                data = file.readall()
        parts.append(_entry(inode, name, node.mode, data, mtime_s=mtime_s))
    return b"".join([*parts, _entry(0, "TRAILER!!!", 0)])


def payload(
    binary: Path,
    data: Mapping[str, Path],
    jobs: str | None,
    programs: Mapping[str, Path] | None = None,
    trees: Sequence[Path] = (),
) -> bytes:
    """The initramfs of a boot: the guest binary as /init, the workloads' data files, the job list, other programs.

    ``programs``: path in the guest without its leading slash -> file; all of them may be executed. ``trees``:
    archives to unpack after it. Without ``jobs`` they are in an archive of their own (``jobs_archive``).
    """
    files = {"init": binary.read_bytes()}
    if jobs is not None:
        files["jobs"] = jobs.encode("ascii")
    for name, path in data.items():
        files[f"data/{name}"] = path.read_bytes()
    others = {name: path.read_bytes() for name, path in (programs or {}).items()}
    first = initramfs(files | others, executable=frozenset({"init", *others}))
    return b"".join([first, *(tree.read_bytes() for tree in trees)])


def content(
    binary: Path,
    data: Mapping[str, Path],
    jobs: str | None,
    programs: Mapping[str, Path] | None = None,
    trees: Sequence[Path] = (),
) -> bytes:
    """What ``payload`` is made of, as a digest of 32 bytes: files are read once a process, and nothing is put together.

    A program with its libraries is 80 MB, of which each boot is known (experiment/boot_once.py, identity).
    """
    named = {"init": binary} | {f"data/{name}": path for name, path in data.items()}
    parts = [f"{name} {digests.of_file(path)}" for name, path in sorted(named.items())]
    parts += ["programs", *(f"{name} {digests.of_file(path)}" for name, path in sorted((programs or {}).items()))]
    parts += ["trees", *(digests.of_file(tree) for tree in trees), "jobs", "none" if jobs is None else f"text {jobs}"]
    return hashlib.sha256("\0".join(parts).encode()).digest()


def jobs_archive(jobs: str) -> bytes:
    """The job list alone, to be unpacked behind a ``payload`` without one."""
    return initramfs({"jobs": jobs.encode("ascii")})
