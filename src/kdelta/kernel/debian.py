# SPDX-License-Identifier: GPL-2.0-or-later
"""Prebuilt kernels and kernel sources from Debian's archive, through a private apt, into the cache."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from kdelta.errors import HostError, UserError
from kdelta.kernel import cache, deb, debver, ingest
from kdelta.kernel.apt import EXPIRED, Apt
from kdelta.kernel.debver import DebianKernel, DebianSource
from kdelta.kernel.package import KernelFiles, members
from kdelta.model import Arch, Progress, Quiet
from kdelta.paths import cache_dir

INDEX_AGE_S = 24 * 3600
_RETRY_AGE_S = 600  # an unknown version does not ask the mirror again within this
_PATTERN = r"^linux-(image|binary|base|source)-[0-9]"
_TARBALL = re.compile(r"^usr/src/linux-source-[^/]+\.tar\.[a-z0-9]+$")
_TARBALL_LIMIT_BYTES = 2 << 30
_FORMAT = 1


class Index(Struct, frozen=True, kw_only=True):
    """What the archive offers for one architecture, and when that was read (seconds since the epoch).

    ``expired``: the suites that were left out then, because the mirror's copy is an old one.
    """

    kernels: list[DebianKernel]
    sources: list[DebianSource]
    read_s: float
    expired: tuple[str, ...] = ()
    format: int = _FORMAT


class Archive:
    """Debian's archive for one architecture. ``now`` is the clock, in seconds since the epoch."""

    def __init__(self, arch: Arch, progress: Progress | None = None, now: Callable[[], float] = time.time) -> None:
        self.arch = arch
        self.progress = progress or Quiet()
        self.now = now
        self.folder = cache_dir() / "apt" / debver.DEBIAN_ARCH[arch]
        self.apt = Apt(self.folder, debver.DEBIAN_ARCH[arch])

    def _stored(self) -> Index | None:
        try:
            index = msgspec.json.decode((self.folder / "index.json").read_bytes(), type=Index)
        except (OSError, msgspec.MsgspecError):
            return None
        return index if index.format == _FORMAT else None

    def update(self) -> Index:
        """Read the index anew from the mirror.

        Raises:
            HostError: apt failed.
        """
        asked_s = self.now()
        with cache.locked(self.folder):
            stored = self._stored()
            if stored is not None and stored.read_s >= asked_s:  # another process did while this one waited
                return stored
            expired = self.apt.update(self.progress)
            self.progress.step(f"reading the index of Debian's archive ({self.apt.architecture})")
            text = self.apt.show(_PATTERN)
            index = Index(
                kernels=debver.kernels(text, self.arch),
                sources=debver.sources(text),
                read_s=self.now(),
                expired=expired,
            )
            cache.write_atomically(self.folder / "index.json", msgspec.json.encode(index))
        return index

    def index(self, older_than_s: float = INDEX_AGE_S) -> Index:
        """The index, updated when it is older than that; where the mirror cannot be reached, the old one with a note.

        Raises:
            HostError: there is no index and none can be had.
        """
        stored = self._stored()
        if stored is not None and self.now() - stored.read_s < older_than_s:
            return stored
        try:
            return self.update()
        except HostError as error:
            if stored is None:
                raise
            self.progress.step(f"using the index of {_day(stored.read_s)} ({error})")
            return stored


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def available(arch: Arch = "x86_64", progress: Progress | None = None) -> list[DebianKernel]:
    """The kernels in Debian's archive, oldest first.

    Raises:
        HostError: apt failed and there is no earlier index.
    """
    return Archive(arch, progress).index().kernels


def known(arch: Arch = "x86_64") -> list[DebianKernel]:
    """The kernels in the index that this machine read last, of any age, else those in the cache; asks no mirror."""
    stored = Archive(arch)._stored()
    return stored.kernels if stored is not None else _from_cache(arch)


def _cached(kernel: DebianKernel) -> cache.Stored | None:
    for stored in cache.entries():
        entry = stored.entry
        if (entry.package, entry.package_version) == (kernel.package, kernel.package_version):
            return cache.get(entry.sha256)
    return None


def _from_cache(arch: Arch) -> list[DebianKernel]:
    """The archive's kernels that are in the cache: what there is without an index."""
    found = []
    for stored in cache.entries():
        entry = stored.entry
        named = debver.release_of(entry.package, arch) if entry.package and entry.arch == arch else None
        if named is not None:
            found.append(
                DebianKernel(
                    release=named[1],
                    upstream=debver.upstream_of(entry.package_version),
                    flavour=named[2],
                    arch=arch,
                    package=entry.package,
                    package_version=entry.package_version,
                    size_bytes=stored.size_bytes,
                )
            )
    return found


def unknown(
    found: list[DebianKernel], version: str, flavour: str, arch: Arch, expired: tuple[str, ...] = ()
) -> UserError:
    """The error for a version or flavour that the archive does not have, naming the nearest that it has."""
    head, _, tail = version.rpartition("-")
    if not flavour and any(k.flavour == tail and debver.matches(head, k.upstream, k.package_version) for k in found):
        return UserError(f"debian:{version}: no version of that name; the flavour {tail} is debian:{head}/{tail}")
    flavours = sorted(
        {kernel.flavour for kernel in found if debver.matches(version, kernel.upstream, kernel.package_version)}
    )
    shown = ", ".join(name or "the generic one" for name in flavours)
    if flavours:
        return UserError(f"debian:{version}/{flavour}: no such flavour for {arch}; {version} comes as {shown}")
    of_flavour = [kernel.upstream for kernel in found if kernel.flavour == flavour]
    if not of_flavour:
        names = ", ".join(sorted({kernel.flavour for kernel in found} - {""}))
        return UserError(f"debian:{version}/{flavour}: no such flavour for {arch}; there are {names or 'none'}")
    series = list(dict.fromkeys(debver.series(upstream) for upstream in sorted(of_flavour, key=debver.version_key)))
    near = ", ".join(debver.nearest(of_flavour, version))
    left_out = f"; {EXPIRED}: {', '.join(expired)}" if expired else ""
    return UserError(
        f"debian:{version}: not in Debian's archive for {arch}; nearest: {near}; series: {', '.join(series)}{left_out}"
    )


def find(version: str, flavour: str, arch: Arch, progress: Progress | None = None) -> DebianKernel:
    """The newest kernel that ``version`` and ``flavour`` name; the index is updated when it is old or lacks it.

    Raises:
        UserError: the archive has no such version or flavour.
        HostError: apt failed and neither an index nor the cache has it.
    """
    archive = Archive(arch, progress)
    exact = re.fullmatch(r"\d+\.\d+", version) is None
    try:
        index = archive.index(float("inf") if exact else INDEX_AGE_S)
        found = debver.newest(index.kernels, version, flavour)
        if found is None:
            index = archive.index(_RETRY_AGE_S)
            found = debver.newest(index.kernels, version, flavour)
    except HostError:
        found = debver.newest(_from_cache(arch), version, flavour)
        if found is None:
            raise
        return found
    if found is None:
        raise unknown(index.kernels, version, flavour, arch, index.expired)
    return found


def find_range(first: str, last: str, flavour: str, arch: Arch, progress: Progress | None = None) -> list[DebianKernel]:
    """The kernels of a range, oldest first (see ``debver.expand``).

    Raises:
        UserError: the range is backwards or holds no kernel.
        HostError: apt failed and neither an index nor the cache is there.
    """
    if debver.compare(first, last) > 0:
        raise UserError(f"debian:{first}..{last}: the range is reversed; write debian:{last}..{first}")
    archive = Archive(arch, progress)
    asked_s = archive.now()
    try:
        index = archive.index()
    except HostError:
        index = Index(kernels=_from_cache(arch), sources=[], read_s=asked_s)
        if not index.kernels:
            raise
    if index.expired and index.read_s < asked_s:  # else it was said just now
        archive.progress.note(f"{EXPIRED}: {', '.join(index.expired)}")
    found = debver.expand(index.kernels, first, last, flavour)
    if not found:
        raise unknown(index.kernels, first, flavour, arch, index.expired)
    return found


def fetch(kernel: DebianKernel, progress: Progress | None = None) -> cache.Stored:
    """The kernel from the cache, else downloaded, verified by apt, unpacked and stored.

    Raises:
        UserError: the package holds no usable kernel.
        HostError: apt failed, or the disk is full.
    """
    if (stored := _cached(kernel)) is not None:
        return stored
    said = progress or Quiet()
    archive = Archive(kernel.arch, said)
    said.step(f"downloading {kernel.release} ({kernel.size_bytes >> 20} MiB)")
    try:
        files = _download(archive, kernel.package, kernel.package_version, kernel.size_bytes)
    except HostError:
        archive.update()  # the mirror may have replaced it since the index was read
        files = _download(archive, kernel.package, kernel.package_version, kernel.size_bytes)
    config = files.config
    if not config and kernel.config_package:
        config = _download(archive, kernel.config_package, kernel.package_version).config
    if not files.image:
        raise UserError(f"{kernel.package}: the package holds no kernel image")
    origin = f"Debian {kernel.package} {kernel.package_version}"
    return ingest.store(origin, files.image, config, origin=origin, package=files.package, version=files.version)


def _download(archive: Archive, package: str, version: str, size_bytes: int = 0) -> KernelFiles:
    with archive.apt.download(package, version, size_bytes) as path:
        return deb.read_kernel(path)


def source_of(version: str, progress: Progress | None = None) -> DebianSource:
    """The newest linux-source package that ``version`` names (6.12, 6.12.117, 6.12.117-1).

    Raises:
        UserError: the archive has no source of that version.
        HostError: apt failed, or the disk is full.
    """
    archive = Archive("x86_64", progress)
    index = archive.index(INDEX_AGE_S if re.fullmatch(r"\d+\.\d+", version) else float("inf"))
    found = _newest_source(index.sources, version)
    if found is None:
        index = archive.index(_RETRY_AGE_S)
        found = _newest_source(index.sources, version)
    if found is None:
        near = ", ".join(debver.nearest([source.upstream for source in index.sources], version))
        raise UserError(f"src:debian:{version}: no linux-source of that version; nearest: {near or 'none'}")
    return found


@contextmanager
def _package(found: DebianSource, progress: Progress) -> Iterator[Path]:
    progress.step(f"downloading {found.package} {found.package_version} ({found.size_bytes >> 20} MiB)")
    apt = Archive("x86_64", progress).apt
    with apt.download(found.package, found.package_version, 2 * found.size_bytes) as path:
        yield path


def _tarball(found: DebianSource) -> Path:
    """Where its tarball is kept, without the suffixes."""
    return cache_dir() / "sources" / f"linux-source-{found.package_version}"


def _kept(found: DebianSource) -> Path | None:
    stem = _tarball(found)
    return min(stem.parent.glob(f"{stem.name}.tar.*"), default=None)


def fetch_source(version: str, progress: Progress | None = None) -> Path:
    """The tarball of the newest linux-source package that ``version`` names, from the cache or the archive.

    Raises:
        UserError, HostError: as ``source_of``.
    """
    said = progress or Quiet()
    found = source_of(version, said)
    with cache.locked(_tarball(found).parent):
        if (kept := _kept(found)) is not None:
            return kept
        with _package(found, said) as path:
            return extract(path, _TARBALL, _tarball(found), _TARBALL_LIMIT_BYTES)


@contextmanager
def read_source(found: DebianSource, progress: Progress) -> Iterator[IO[bytes]]:
    """The packed tarball of ``found``, read as it comes: where it is not in the cache it is not kept there either.

    Raises:
        UserError, HostError: as ``source_of``; a package without a tarball.
    """
    if (kept := _kept(found)) is not None:
        with kept.open("rb") as file:
            yield file
        return
    with _package(found, progress) as path, deb.contents(path) as entries:
        for _, opened in members(entries, lambda member: _TARBALL_LIMIT_BYTES if _TARBALL.match(member) else None):
            yield opened
            return
        raise UserError(f"{path.name}: the package holds no {_TARBALL.pattern}")


def _newest_source(sources: list[DebianSource], version: str) -> DebianSource | None:
    fitting = [source for source in sources if debver.matches(version, source.upstream, source.package_version)]
    return max(fitting, key=lambda source: debver.version_key(source.package_version), default=None)


def extract(package: Path, pattern: re.Pattern[str], target: Path, limit_bytes: int) -> Path:
    """Copy the first regular file of a .deb whose name matches to ``target`` plus its suffixes from ``.tar`` on.

    Raises:
        UserError: the package is damaged or has no such file.
        HostError: disk full.
    """
    with deb.contents(package) as entries:
        for name, opened in members(entries, lambda member: limit_bytes if pattern.match(member) else None):
            final = target.with_name(target.name + name[name.find(".tar") :]) if ".tar" in name else target
            _copy(opened, final)
            return final
    raise UserError(f"{package.name}: the package holds no {pattern.pattern}")


def _copy(opened: IO[bytes], final: Path) -> None:
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=final.parent, prefix=".", delete=False) as file:
            try:
                shutil.copyfileobj(opened, file, 1 << 20)
                os.replace(file.name, final)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise cache.disk_error(error, final) from None
