# SPDX-License-Identifier: GPL-2.0-or-later
"""RPM packages of kernels (Fedora, RHEL: kernel-core; openSUSE: kernel-default).

A lead of 96 bytes, a header of signatures and digests, a header of everything else, and the payload, a compressed cpio
archive. Source: format_v4.md and format_v6.md of rpm. Signatures are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.kernel import cpio, package, rpm_digests, rpm_files, rpm_header, unpack
from kdelta.kernel.package import KernelFiles, Part

MAGIC = b"\xed\xab\xee\xdb"
PARTS: dict[Part, re.Pattern[str]] = {
    "image": re.compile(r"^(boot/(vmlinuz|Image)-[^/]+|(usr/)?lib/modules/[^/]+/(vmlinuz|Image))$"),
    "config": re.compile(r"^(boot/config-[^/]+|(usr/)?lib/modules/[^/]+/config)$"),
    "system_map": re.compile(r"^(boot/System\.map-[^/]+|(usr/)?lib/modules/[^/]+/System\.map)$"),
}
_LEAD_BYTES = 96
_HEADER_SIGNATURE = b"\0\5"  # the only kind of signature there is
_PIECE_BYTES = 1 << 20
_NAME, _VERSION, _RELEASE, _ARCH, _COMPRESSOR = 1000, 1001, 1002, 1022, 1125  # rpmtag.h
_PRINTABLE = re.compile(r"[!-~]+")
_KINDS: dict[str, unpack.Kind] = {"gzip": "gz", "bzip2": "bz2", "lzma": "lzma", "xz": "xz", "zstd": "zst"}
_GZIP = b"\x1f\x8b"


class _Package(Struct, frozen=True):
    """``intro`` and ``body`` are the bytes of ``header``; the payload begins at ``payload_at``."""

    signatures: rpm_header.Header
    header: rpm_header.Header
    raw: bytes
    payload_at: int

    def text(self, tag: int) -> str:
        """The first text of a tag, "" where it has none."""
        return next(iter(self.header.strings(tag)), "")


def _header(file: IO[bytes], region: rpm_header.Region) -> tuple[rpm_header.Header, bytes]:
    intro = file.read(rpm_header.INTRO_BYTES)
    lengths = rpm_header.lengths(intro, region)
    body = file.read(rpm_header.size_of(lengths))
    return rpm_header.parse(body, lengths, region), intro + body


def _read(file: IO[bytes]) -> _Package:
    """Raises:
    HeaderError: the file is no package, or its headers are damaged.
    """
    lead = file.read(_LEAD_BYTES)
    if len(lead) < _LEAD_BYTES or lead[4] not in (3, 4) or lead[78:80] != _HEADER_SIGNATURE:
        raise rpm_header.HeaderError("its first 96 bytes are damaged")
    signatures, raw = _header(file, rpm_header.SIGNATURES)
    file.seek(-len(raw) % 8, 1)
    header, raw = _header(file, rpm_header.IMMUTABLE)
    found = _Package(signatures, header, raw, file.tell())
    for digest in rpm_digests.of_header(signatures):
        digest.hash.update(raw)
        if not digest.holds():
            raise rpm_header.HeaderError("its header is not what its digest says; is the download complete?")
    for tag, name in ((_NAME, "name"), (_VERSION, "version"), (_RELEASE, "release")):
        if not _PRINTABLE.fullmatch(found.text(tag)):
            raise rpm_header.HeaderError(f"its header gives no valid {name}")
    return found


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], _Package]]:
    """Raises:
    UserError: no such file, or not an RPM package.
    """
    try:
        file = path.open("rb")
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    with file:
        if file.read(len(MAGIC)) != MAGIC:
            raise UserError(f"{path}: not an RPM package")
        file.seek(0)
        try:
            found = _read(file)
        except rpm_header.HeaderError as error:
            raise UserError(f"{path}: not a readable RPM package ({error})") from None
        yield file, found


def fields(path: Path) -> tuple[str, str, str]:
    """Name, version with release, and architecture, from the package's header.

    Raises:
        UserError: no such file, or not an RPM package.
    """
    with _opened(path) as (_, found):
        return found.text(_NAME), f"{found.text(_VERSION)}-{found.text(_RELEASE)}", found.text(_ARCH)


def _verify(file: IO[bytes], found: _Package, path: Path) -> None:
    """Raises:
    UserError: the package is not what its digests say, or has none.
    """
    payload, both = rpm_digests.of_payload(found.header), rpm_digests.of_both(found.signatures)
    if not both and not (payload and rpm_digests.of_header(found.signatures)):
        raise UserError(f"{path}: damaged, its digests are missing; is the download complete?")
    for digest in both:
        digest.hash.update(found.raw)
    file.seek(found.payload_at)
    while piece := file.read(_PIECE_BYTES):
        for digest in (*payload, *both):
            digest.hash.update(piece)
    if not all(digest.holds() for digest in (*payload, *both)):
        raise UserError(f"{path}: damaged, its digests do not match; is the download complete?")


def _kind(file: IO[bytes], found: _Package) -> unpack.Kind:
    """How the payload, at which ``file`` stands, is compressed.

    Raises:
        Damaged: in a way that is not known.
    """
    name = found.text(_COMPRESSOR) or "gzip"
    begin = file.read(len(_GZIP))
    file.seek(found.payload_at)
    if name == "gzip" and begin != _GZIP:  # rpm names no compression as gzip, and zlib reads both
        return ""
    if name not in _KINDS:
        raise unpack.Damaged(f"it is compressed by {name[:20]!r}")
    return _KINDS[name]


def read_kernel(path: Path) -> KernelFiles:
    """Kernel image, config and System.map of a package; each may be absent.

    Raises:
        UserError: no such file, not a package, damaged, or implausibly large members.
    """
    with _opened(path) as (file, read), package.readable(path):
        _verify(file, read, path)
        file.seek(read.payload_at)
        data = unpack.Stream(file, _kind(file, read), package.TOTAL_LIMIT_BYTES)
        found = package.parts(cpio.entries(data, rpm_files.of(read.header)), PARTS)
    return KernelFiles(
        package=read.text(_NAME),
        version=f"{read.text(_VERSION)}-{read.text(_RELEASE)}",
        architecture=read.text(_ARCH),
        image=found.get("image", b""),
        config=found.get("config", b""),
        system_map=found.get("system_map", b""),
    )
