# SPDX-License-Identifier: GPL-2.0-or-later
"""Small made-up kernels: ELF files with kallsyms tables in each layout, bzImages around them, and packages."""

from __future__ import annotations

import io
import lzma
import struct
import subprocess
import tarfile
from pathlib import Path
from typing import Literal

TEXT = 0xFFFFFFFF81000000
RELEASE = "6.12.117+test-amd64"
BANNER = f"Linux version {RELEASE} (somebody@here) (gcc) #1\0".encode()
Layout = Literal["before", "percpu", "after", "place"]
Symbol = tuple[int, str, str]  # address, type, name


def symbols(count: int = 600) -> list[Symbol]:
    """``count`` functions of 16 bytes between _stext and _etext, with an alias, a long name and data behind."""
    rows: list[Symbol] = [(TEXT, "T", "_stext"), (TEXT, "T", "startup_64")]
    rows += [(TEXT + 16 * i, "t", f"function_number_{i}") for i in range(1, count)]
    rows.append((TEXT + 16 * count, "T", "a_" + "very_" * 40 + "long_name"))
    rows.append((TEXT + 16 * count + 16, "T", "_etext"))
    rows.append((TEXT + 16 * count + 64, "D", "some_data"))
    return rows


def _names(rows: list[Symbol]) -> tuple[bytes, bytes, bytes, bytes]:
    """(names, markers, token table, token index) with one token a character, and one for "function"."""
    tokens = [bytes([i]) if i > 32 else b"" for i in range(256)]
    tokens[1] = b"function"
    names, markers = b"", []
    for i, (_, kind, name) in enumerate(rows):
        if not i % 256:
            markers.append(len(names))
        packed = (kind + name).encode().replace(b"function", b"\x01")
        size = len(packed)
        names += (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + packed
    table, index = b"", []
    for token in tokens:
        index.append(len(table))
        table += token + b"\0"
    return names, struct.pack(f"<{len(markers)}I", *markers), table, struct.pack("<256H", *index)


def _pad(data: bytes, step: int = 8) -> bytes:
    return data + b"\0" * (-len(data) % step)


def tables(rows: list[Symbol], layout: Layout, at: int) -> bytes:
    """kallsyms tables that will lie at virtual address ``at`` (a multiple of 8)."""
    names, markers, table, index = _names(rows)
    head = struct.pack("<Q", len(rows)) if layout != "place" else struct.pack("<I", len(rows))
    step = 4 if layout == "place" else 8
    core = head + _pad(names, step) + _pad(markers, step) + _pad(table, step) + _pad(index, step)
    base = struct.pack("<Q", TEXT)
    if layout == "place":
        first = at + len(core)
        return core + b"".join(struct.pack("<i", a - (first + 4 * i)) for i, (a, _, _) in enumerate(rows))
    if layout == "percpu":
        offsets = b"".join(struct.pack("<i", a if a < TEXT else TEXT - 1 - a) for a, _, _ in rows)
    else:
        offsets = b"".join(struct.pack("<I", a - TEXT) for a, _, _ in rows)
    return core + _pad(offsets) + base if layout == "after" else _pad(offsets) + base + core


def vmlinux(layout: Layout | None = "after", rows: list[Symbol] | None = None, extra: bytes = b"") -> bytes:
    """An x86-64 ELF file with one segment at TEXT, a build id, a PVH note, the banner and, by ``layout``, kallsyms."""
    rows = symbols() if rows is None else rows
    note = (
        struct.pack("<III", 4, 20, 3)
        + b"GNU\0"
        + bytes(range(20))
        + struct.pack("<III", 4, 8, 18)
        + b"Xen\0"
        + b"\0" * 8
    )
    start = 4096
    body = _pad(note + BANNER + extra, 4096) + b"\x90" * 16384
    body += tables(rows, layout, TEXT + len(body)) if layout else b""
    header = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x1000000, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    loads = struct.pack("<IIQQQQQQ", 1, 5, start, TEXT, 0x1000000, len(body), len(body), 4096)
    notes = struct.pack("<IIQQQQQQ", 4, 4, start, TEXT, 0x1000000, len(note), len(note), 4)
    return _pad(header + loads + notes, start) + body


def bzimage(plain: bytes | None = None) -> bytes:
    """A bzImage (boot protocol 2.15) around ``plain``, packed as the kernel does with xz."""
    plain = vmlinux() if plain is None else plain
    payload = lzma.compress(plain, lzma.FORMAT_XZ, check=lzma.CHECK_CRC32) + struct.pack("<I", len(plain))
    image = bytearray(1024)
    image[0x1F1] = 1
    code = _pad(payload, 16)
    struct.pack_into("<I", image, 0x1F4, len(code) // 16)
    image[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", image, 0x206, 0x20F)
    struct.pack_into("<H", image, 0x20E, 0x300 - 0x200)
    image[0x300 : 0x300 + len(RELEASE) + 5] = RELEASE.encode() + b" #1 x"
    struct.pack_into("<II", image, 0x248, 0, len(payload))
    return bytes(image) + code


def package(path: Path, members: list[tarfile.TarInfo | tuple[str, bytes]], name: str = "linux-image-test") -> Path:
    """A .deb at ``path`` with exactly these members, however hostile."""

    def packed(entries: list[tarfile.TarInfo | tuple[str, bytes]]) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:xz", format=tarfile.GNU_FORMAT) as tar:
            for entry in entries:
                if isinstance(entry, tarfile.TarInfo):
                    tar.addfile(entry)
                else:
                    info = tarfile.TarInfo(entry[0])
                    info.size = len(entry[1])
                    tar.addfile(info, io.BytesIO(entry[1]))
        return out.getvalue()

    control = f"Package: {name}\nVersion: 1.0-1\nArchitecture: amd64\nMaintainer: a <a@b>\nDescription: x\n".encode()
    path.write_bytes(b"!<arch>\n")
    parts = (
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", packed([("./control", control)])),
        ("data.tar.xz", packed(members)),
    )
    with path.open("ab") as file:
        for member, data in parts:
            file.write(
                f"{member:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode()
                + data
                + b"\n" * (len(data) % 2)
            )
    return path


def dpkg_works() -> bool:
    """Whether this machine can read packages at all."""
    try:
        return subprocess.run(["dpkg-deb", "--version"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def with_symtab(rows: list[tuple[int, str]]) -> bytes:
    """An ELF file with only a .text section and a symbol table of global functions (address, name)."""
    strings, symtab = b"\0", b"\0" * 24
    for address, name in rows:
        symtab += struct.pack("<IBBHQQ", len(strings), 0x12, 0, 1, address, 16)
        strings += name.encode() + b"\0"
    names = b"\0.text\0.symtab\0.strtab\0"
    at = 64
    places = []
    for blob in (symtab, strings, names):
        places.append((at, len(blob)))
        at += len(blob)
    sections = [
        (0, 0, 0, 0, 0, 0),
        (1, 1, TEXT, 64, 0, 0),
        (7, 2, 0, *places[0], 3),
        (15, 3, 0, *places[1], 0),
        (15, 3, 0, *places[2], 0),
    ]
    table = b"".join(struct.pack("<IIQQQQIIQQ", n, k, 0, a, o, s, link, 0, 1, 0) for n, k, a, o, s, link in sections)
    header = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, TEXT, 0, at, 0, 64, 56, 0, 64, len(sections), 4)
    return header + symtab + strings + names + table
