# SPDX-License-Identifier: GPL-2.0-or-later
"""The store of kernels in the user's cache: one directory an image, named by its sha256.

``image`` is what QEMU boots, ``vmlinux`` the uncompressed kernel where there is one, ``config`` its .config,
``System.map`` its symbols where they came with it, ``types`` its types (BTF) where its build said them, ``meta.json``
an Entry. A directory appears whole (rename) or not at all; everything in it can be fetched again.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import msgspec
from msgspec import Struct

from kdelta import digests, vouched
from kdelta.errors import HostError
from kdelta.model import Arch
from kdelta.paths import cache_dir

SYSTEM_MAP, TYPES = "System.map", "types"
_NOTHING: Mapping[str, bytes] = MappingProxyType({})
_REMEDY = "free space, 'kdelta kernels prune', or set KDELTA_CACHE"
_ELSEWHERE = "set KDELTA_CACHE to a directory that you can write to"
_FIRST_BYTES = 1 << 30  # the first comparison of two of Debian's kernels left 395 MiB, and its index alone needs 256


class Entry(Struct, frozen=True, kw_only=True):
    """What is known of a stored image. Times are seconds since the epoch."""

    sha256: str
    vmlinux_sha256: str = ""
    release: str
    arch: Arch
    form: str
    build_id: str | None = None
    origin: str = ""
    package: str = ""  # the package that was asked for, "" for a file
    package_version: str = ""
    source_sha256: str = ""  # of the file it was made from, where that was unpacked first
    config: dict[str, str] = {}
    config_source: str = ""  # package | image | symbols | ""
    added_s: float = 0.0


class Stored(Struct, frozen=True, kw_only=True):
    """An entry in its directory. ``used_s`` is when it was last resolved, ``size_bytes`` what it occupies."""

    entry: Entry
    folder: Path
    used_s: float
    size_bytes: int

    @property
    def image(self) -> Path:
        return self.folder / "image"

    @property
    def vmlinux(self) -> Path | None:
        path = self.folder / "vmlinux"
        return path if path.is_file() else None

    @property
    def config_text(self) -> Path | None:
        path = self.folder / "config"
        return path if path.is_file() else None


def root() -> Path:
    """The directory of all stored kernels."""
    return cache_dir() / "kernels"


def _free_bytes(path: Path) -> int:
    place = path.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def _said(error: OSError, path: Path) -> tuple[str, str]:
    """(an error of the disk with the path, and the free space where that is the matter; the remedy)."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.filename or path}: {error.strerror or error}", _ELSEWHERE
    return f"{path}: disk full ({_free_bytes(path) >> 20} MiB free)", _REMEDY


def disk_error(error: OSError, path: Path) -> HostError:
    """An error of the disk as one line with its remedy."""
    return HostError("; ".join(_said(error, path)))


def shortcoming() -> tuple[str, str]:
    """(what this user's cache lacks for a first comparison, the remedy); both "" where it lacks nothing."""
    place = cache_dir()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        return _said(error, place)
    if (free_bytes := _free_bytes(place)) < _FIRST_BYTES:
        return f"{free_bytes >> 20} MiB free in {place}: little for kernels and snapshots", _REMEDY
    return "", ""


def require_space(path: Path, needed_bytes: int, purpose: str) -> None:
    """Refuse early what cannot fit under ``path``.

    Raises:
        HostError: less than ``needed_bytes`` are free.
    """
    free_bytes = _free_bytes(path)
    if free_bytes < needed_bytes:
        raise HostError(
            f"{path}: {purpose} needs {needed_bytes >> 20} MiB, there are {free_bytes >> 20} MiB free; {_REMEDY}"
        )


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that readers see the old content or the new, never a part.

    Raises:
        HostError: disk full or not writable.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
            try:
                file.write(data)
                file.flush()
                os.replace(file.name, path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise disk_error(error, path) from None


def write_checked(path: Path, data: bytes) -> None:
    """``write_atomically`` with a digest in front, for ``read_checked``."""
    write_atomically(path, hashlib.sha256(data).digest() + data)


def read_checked(path: Path) -> bytes | None:
    """What ``write_checked`` wrote; None where there is no such file, or it is not what was written."""
    try:
        whole = path.read_bytes()
    except FileNotFoundError:
        return None
    data = whole[32:]
    return data if hashlib.sha256(data).digest() == whole[:32] else None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a directory's lock, against other processes and threads.

    Raises:
        HostError: the lock file cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise disk_error(error, folder) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _read(folder: Path) -> Stored | None:
    try:
        entry = msgspec.json.decode((folder / "meta.json").read_bytes(), type=Entry)
        sizes = [child.stat().st_size for child in folder.iterdir()]
        used_s = (folder / "meta.json").stat().st_mtime
    except (OSError, msgspec.MsgspecError):
        return None
    return (
        Stored(entry=entry, folder=folder, used_s=used_s, size_bytes=sum(sizes))
        if entry.sha256 == folder.name
        else None
    )


def entries() -> list[Stored]:
    """All readable entries, by release."""
    folders = [folder for folder in root().iterdir() if folder.is_dir()] if root().is_dir() else []
    found = (_read(folder) for folder in folders)
    return sorted((stored for stored in found if stored), key=lambda s: (s.entry.arch, s.entry.release, s.entry.sha256))


def _intact(stored: Stored) -> bool:
    """Whether its files have their sums, as was seen now or since when nothing changed: ten kernels are 800 MB."""
    entry, vmlinux = stored.entry, stored.vmlinux
    sums = {stored.image: entry.sha256}
    if entry.vmlinux_sha256:
        if vmlinux is None:
            return False
        sums[vmlinux] = entry.vmlinux_sha256
    book = stored.folder / "seen"
    try:
        said = vouched.stamp(list(sums))
        said = said and f"{said}{' '.join(sums.values())}\n"
        if vouched.is_vouched(book, said):
            for path, sha256 in sums.items():
                digests.believe(path, sha256)
            return True
        sound = all(digests.of_file(path) == sha256 for path, sha256 in sums.items())
    except OSError:
        return False
    if sound:
        vouched.vouch(book, said)
    return sound


def get(sha256: str) -> Stored | None:
    """The entry of an image, checked against its hashes; a damaged one is removed, so that it is fetched again."""
    stored = _read(root() / sha256)
    if stored is None:
        return None
    if not _intact(stored):
        remove(stored)
        return None
    return _read(stored.folder)


def vmlinux_sum(sha256: str, path: Path) -> str:
    """The sum recorded for ``path``, if that is the uncompressed kernel of the entry of an image; else ""."""
    stored = _read(root() / sha256)
    return stored.entry.vmlinux_sha256 if stored is not None and path == stored.folder / "vmlinux" else ""


def touch(stored: Stored, now_s: float) -> None:
    """Record when an entry was used; a cache that is not writable stays as it is."""
    if os.access(stored.folder / "meta.json", os.W_OK):
        os.utime(stored.folder / "meta.json", (now_s, now_s))


def put(
    entry: Entry, image: bytes, vmlinux: bytes | None, config: str, beside: Mapping[str, bytes] = _NOTHING
) -> Stored:
    """Store an image under ``entry.sha256``; an intact entry of that name is kept, its facts renewed.

    ``beside``: files that may lie there, by ``SYSTEM_MAP`` and ``TYPES``.

    Raises:
        HostError: disk full or not writable.
    """
    folder = root() / entry.sha256
    with locked(root()):
        known = get(entry.sha256)
        if known is None:
            _create(folder, entry, image, vmlinux, config, beside)
        else:
            _renew(known, entry, config, beside)
    stored = _read(folder)
    if stored is None:
        raise HostError(f"{folder}: disappeared while it was being stored; is another program cleaning {root()}?")
    return stored


def _renew(known: Stored, entry: Entry, config: str, beside: Mapping[str, bytes]) -> None:
    """Keep the better knowledge: a config from a package beats one that was guessed, a package's name beats none.

    What was built here has the config of its last build: programs that it names may be others than the first time.
    """
    for name, data in beside.items():
        if data and not (known.folder / name).is_file():
            write_atomically(known.folder / name, data)
    if config and (known.config_text is None or not (known.entry.package or entry.package)):
        write_atomically(known.folder / "config", config.encode())
    keep = (
        known.entry
        if (known.config_text is not None or known.entry.package) and not (config or entry.package)
        else entry
    )
    write_atomically(known.folder / "meta.json", msgspec.json.encode(keep))


def _create(
    folder: Path, entry: Entry, image: bytes, vmlinux: bytes | None, config: str, beside: Mapping[str, bytes]
) -> None:
    parts = {"image": image, "vmlinux": vmlinux, "config": config.encode(), **beside}
    parts["meta.json"] = msgspec.json.encode(entry)
    temporary = None
    try:
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
        for name, data in parts.items():
            if data:
                (temporary / name).write_bytes(data)
        temporary.chmod(0o755)
        if folder.exists():  # unreadable leftovers
            shutil.rmtree(folder)
        temporary.rename(folder)
    except OSError as error:
        raise disk_error(error, folder) from None
    finally:
        if temporary is not None and temporary.exists():
            shutil.rmtree(temporary, ignore_errors=True)


def remove(stored: Stored) -> None:
    """Delete an entry.

    Raises:
        HostError: not permitted.
    """
    try:
        shutil.rmtree(stored.folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk_error(error, stored.folder) from None


def doomed(
    found: list[Stored], *, now_s: float, keep: frozenset[str] = frozenset(), older_than_s: float | None = None,
    limit_bytes: int | None = None, everything: bool = False,
) -> list[Stored]:  # fmt: skip
    """Which entries a prune removes, least recently used first. Pure.

    ``keep`` are sha256 sums that stay; ``older_than_s`` removes what was not used for so long; ``limit_bytes`` removes
    until the rest fits; ``everything`` removes all but ``keep``.
    """
    candidates = sorted((s for s in found if s.entry.sha256 not in keep), key=lambda s: s.used_s)
    total = sum(s.size_bytes for s in found)
    gone = []
    for stored in candidates:
        stale = older_than_s is not None and now_s - stored.used_s > older_than_s
        over = limit_bytes is not None and total > limit_bytes
        if everything or stale or over:
            gone.append(stored)
            total -= stored.size_bytes
    return gone
