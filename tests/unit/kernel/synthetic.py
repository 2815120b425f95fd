# SPDX-License-Identifier: GPL-2.0-or-later
"""Small made-up kernels: ELF files with kallsyms tables in each layout, bzImages around them, and packages."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import zstandard

TEXT = 0xFFFFFFFF81000000
RELEASE = "6.12.117+test-amd64"
BANNER = f"Linux version {RELEASE} (somebody@here) (gcc) #1\0".encode()
Layout = Literal["before", "percpu", "after", "place", "place+4"]
Symbol = tuple[int, str, str]  # address, type, name


def symbols(count: int = 600) -> list[Symbol]:
    """``count`` functions of 16 bytes between _stext and _etext, with an alias, a long name and data behind.

    Every fourth is the cold part of another one somewhere: in a row they would look alike from everywhere.
    """
    rows: list[Symbol] = [(TEXT, "T", "_stext"), (TEXT, "T", "startup_64")]
    for i in range(1, count):
        part, rest = divmod(i, 4)
        owner = 4 * (part * 37 % max(count // 4, 1)) + 1 + part % 3
        rows.append((TEXT + 16 * i, "t", f"function_number_{i}" if rest else f"function_number_{owner}.cold"))
    rows.append((TEXT + 16 * count, "T", "a_" + "very_" * 40 + "long_name"))
    rows.append((TEXT + 16 * count + 16, "T", "_etext"))
    rows.append((TEXT + 16 * count + 64, "D", "some_data"))
    return rows


def code(rows: list[Symbol]) -> bytes:
    """Machine code for the functions of ``rows``: each calls another one, and jumps to its cold part if it has one."""
    starts = sorted({at for at, kind, name in rows if kind in "tT" and name not in ("_stext", "_etext") and at >= TEXT})
    places = {name: at for at, _, name in rows}
    names = {at: name for at, _, name in rows}
    text = bytearray(b"\x90" * (starts[-1] + 16 - TEXT))
    for number, at in enumerate(starts):
        to = starts[(number * 7 + 3) % len(starts)]
        text[at - TEXT : at - TEXT + 5] = b"\xe8" + struct.pack("<i", to - at - 5)
        if (cold := places.get(names[at] + ".cold")) is not None:
            text[at - TEXT + 5 : at - TEXT + 10] = b"\xe9" + struct.pack("<i", cold - at - 10)
    return bytes(text)


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
    place = layout in ("place", "place+4")
    head = struct.pack("<I" if place else "<Q", len(rows))
    step = 4 if place else 8
    core = head + _pad(names, step) + _pad(markers, step) + _pad(table, step) + _pad(index, step)
    base = struct.pack("<Q", TEXT)
    if place:
        lead = b"\0" * ((4 if layout == "place+4" else 0) - (at + len(core)) & 7)
        first = at + len(lead + core)
        order = sorted(range(len(rows)), key=lambda i: rows[i][2])  # kallsyms_seqs_of_names
        seqs = b"".join(struct.pack(">I", i)[1:] for i in order)
        return lead + core + b"".join(struct.pack("<i", a - (first + 4 * i)) for i, (a, _, _) in enumerate(rows)) + seqs
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
    text = _pad(code(rows), 4096)
    body = text + _pad(note + BANNER + extra, 4096) + b"\x90" * 16384
    body += tables(rows, layout, TEXT + len(body)) if layout else b""
    header = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x1000000, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    loads = struct.pack("<IIQQQQQQ", 1, 5, start, TEXT, 0x1000000, len(body), len(body), 4096)
    notes = struct.pack("<IIQQQQQQ", 4, 4, start + len(text), TEXT + len(text), 0, len(note), len(note), 4)
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


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    "xz": lzma.compress,
    "zst": zstandard.compress,
}
Members = list[tarfile.TarInfo | tuple[str, bytes]]


def tarred(entries: Members) -> bytes:
    """A tar archive with exactly these members, however hostile."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                tar.addfile(entry)
            else:
                info = tarfile.TarInfo(entry[0])
                info.size = len(entry[1])
                tar.addfile(info, io.BytesIO(entry[1]))
    return out.getvalue()


def archived(members: Iterable[tuple[str, bytes]]) -> bytes:
    """An archive as ar(1) writes it."""
    made = b"!<arch>\n"
    for name, data in members:
        made += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode()
        made += data + b"\n" * (len(data) % 2)
    return made


def package(
    path: Path, members: Members, name: str = "linux-image-test", *, control: str = "xz", data: str = "xz"
) -> Path:
    """A .deb at ``path`` with exactly these members; ``control`` and ``data`` are the suffixes of its two archives."""

    def packed(stem: str, kind: str, entries: Members) -> tuple[str, bytes]:
        return f"{stem}.{kind}".rstrip("."), _PACKERS[kind](tarred(entries))

    text = f"Package: {name}\nVersion: 1.0-1\nArchitecture: amd64\nMaintainer: a <a@b>\nDescription: x\n"
    parts = (packed("control.tar", control, [("./control", text.encode())]), packed("data.tar", data, members))
    path.write_bytes(archived([("debian-binary", b"2.0\n"), *parts]))
    return path


def with_symtab(rows: list[Symbol], layout: Layout | None = None, true: list[Symbol] | None = None) -> bytes:
    """``vmlinux`` with a symbol table of ``rows``: global functions, and bounds. Its code is that of ``true``."""
    data = _pad(vmlinux(layout, true or rows))
    strings, symtab = b"\0", b"\0" * 24
    for address, kind, name in rows:
        shndx = 1 if kind in "tT" else 4
        symtab += struct.pack("<IBBHQQ", len(strings), 0x12 if kind in "tT" else 0x11, 0, shndx, address, 16)
        strings += name.encode() + b"\0"
    names = b"\0.text\0.symtab\0.strtab\0"
    at = len(data)
    places = []
    for blob in (symtab, strings, names):
        places.append((at, len(blob)))
        at += len(blob)
    sections = [
        (0, 0, 0, 0, 0, 0, 0),
        (1, 1, 6, TEXT, 4096, len(code(rows)), 0),
        (7, 2, 0, 0, *places[0], 3),
        (15, 3, 0, 0, *places[1], 0),
        (15, 3, 0, 0, *places[2], 0),
    ]
    table = b"".join(struct.pack("<IIQQQQIIQQ", n, k, f, a, o, s, link, 0, 1, 0) for n, k, f, a, o, s, link in sections)
    whole = bytearray(data + symtab + strings + names + table)
    struct.pack_into("<Q", whole, 40, at)
    struct.pack_into("<HHH", whole, 58, 64, len(sections), 4)
    return bytes(whole)
