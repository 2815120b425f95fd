# SPDX-License-Identifier: GPL-2.0-or-later
"""Small packages for fuzzers and tests, made without dpkg and rpm; and right checksums, whatever else is wrong."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
from collections.abc import Mapping, Sequence

from kdelta.kernel import ar, rpm, rpm_header

Values = str | list[str] | bytes | tuple[str, list[int]]  # the last: a letter of struct's, and numbers of that size
_NUMBERS = {"B": 2, "H": 3, "I": 4, "Q": 5}  # rpm's types
_BLOCK = 512
_NO_CONTENT = b"123456"  # types of members of a tar archive: links, devices, directories
BUILD = {1000: "kernel-core", 1001: "6.12.1", 1002: "1.fc43", 1022: "x86_64"}  # name, version, release, architecture


def tarred(files: Mapping[str, bytes]) -> bytes:
    """A tar archive of files by name, without the padding behind its end."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue().rstrip(b"\0") + bytes(1024)


def archived(members: Mapping[str, bytes]) -> bytes:
    """An archive as ar(1) writes it, which is what a Debian package is."""
    rows = (
        f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2)
        for name, content in members.items()
    )
    return ar.MAGIC + b"".join(rows)


def deb(files: Mapping[str, bytes]) -> bytes:
    """A Debian package of files by name."""
    control = tarred({"./control": b"Package: linux-image-6.12\nVersion: 6.12\nArchitecture: amd64\n"})
    return archived({"debian-binary": b"2.0\n", "control.tar": control, "data.tar": tarred(files)})


def sealed_tar(data: bytes) -> bytes:
    """``data`` with the right checksum in each block that a reader of tar archives takes for a header."""
    made, at = bytearray(data), 0
    while at + _BLOCK <= len(made):
        made[at + 148 : at + 156] = b" " * 8
        total = sum(made[at : at + _BLOCK])
        if total == 8 * 32:
            made[at + 148 : at + 156] = bytes(8)
            break
        made[at + 148 : at + 156] = b"%06o\0 " % total
        size = made[at + 124 : at + 136].strip(b"\0 ")
        at += _BLOCK
        if made[at - _BLOCK + 156] not in _NO_CONTENT and size.isdigit() and not size.strip(b"01234567"):
            at += -(-int(size, 8) // _BLOCK) * _BLOCK
    return bytes(made)


def header(region: int, values: Mapping[int, Values]) -> bytes:
    """A header of an RPM package."""
    entries, data = [], b""
    for tag, value in sorted(values.items()):
        if isinstance(value, str):
            kind, count, raw = 6, 1, value.encode() + b"\0"
        elif isinstance(value, bytes):
            kind, count, raw = 7, len(value), value
        elif isinstance(value, list):
            kind, count, raw = 8, len(value), b"".join(one.encode() + b"\0" for one in value)
        else:
            kind, count, raw = _NUMBERS[value[0]], len(value[1]), struct.pack(f">{len(value[1])}{value[0]}", *value[1])
            data += bytes(-len(data) % struct.calcsize(value[0]))
        entries.append((tag, kind, len(data), count))
        data += raw
    entries.insert(0, (region, 7, len(data), 16))
    data += struct.pack(">IIiI", region, 7, -16 * len(entries), 16)
    begin = b"\x8e\xad\xe8\x01\0\0\0\0" + struct.pack(">II", len(entries), len(data))
    return begin + b"".join(struct.pack(">IIiI", *entry) for entry in entries) + data


def sealed_rpm(data: bytes, digests: Mapping[int, Values] | None = None) -> bytes:
    """The RPM package whose header and payload are ``data``, with its right digest or with other ones."""
    lead = rpm.MAGIC + b"\3\0\0\0\0\1" + b"kernel".ljust(66, b"\0") + b"\0\1\0\5" + bytes(16)
    found = header(rpm_header.SIGNATURES, digests or {1004: hashlib.md5(data, usedforsecurity=False).digest()})
    return lead + found + bytes(-len(found) % 8) + data


def cpio(files: Mapping[str, bytes], links: int = 1) -> bytes:
    """A cpio archive (newc) of files by name, each with so many links; all have one inode."""
    made = b""
    for name, content in (*files.items(), ("TRAILER!!!", b"")):
        fields = (1, 0o100644, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        made += b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        made += bytes(-len(made) % 4) + content
        made += bytes(-len(made) % 4)
    return made


def own_cpio(contents: Sequence[bytes]) -> bytes:
    """An archive in rpm's own form: what the files hold, by their numbers in the package's list."""
    made = b""
    for number, content in enumerate(contents):
        made += b"07070X%08x" % number
        made += bytes(-len(made) % 4) + content
        made += bytes(-len(made) % 4)
    return made + cpio({})


def listed(files: Mapping[str, bytes], letter: str = "I") -> dict[int, Values]:
    """What a header lists of files, by name with a leading slash; sizes by a letter of struct's."""
    folders = sorted({name.rpartition("/")[0] + "/" for name in files})
    return {
        1028 if letter == "I" else 5008: (letter, [len(content) for content in files.values()]),
        1030: ("H", [0o100644] * len(files)),
        1116: ("I", [folders.index(name.rpartition("/")[0] + "/") for name in files]),
        1117: [name.rpartition("/")[2] for name in files],
        1118: folders,
    }
