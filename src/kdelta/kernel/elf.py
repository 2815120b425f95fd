# SPDX-License-Identifier: GPL-2.0-or-later
"""The little of ELF64 that kernels need: loaded segments, sections, symbols and the build id.

Files come from strangers, so every offset is checked before it is followed. Pure: bytes in, values out.
Source: System V ABI, ELF-64 object file format.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x7fELF"
MACHINES = {62: "x86_64", 183: "arm64"}
BOUNDS = ("_text", "_stext", "_etext", "_sinittext", "_einittext", "_end")
_SYMTAB, _NOTE = 2, 7
_NAME_BYTES = 512  # KSYM_NAME_LEN; else a million symbols could share one name as long as the file
_EXECUTED = 4  # SHF_EXECINSTR
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("shndx", "<u2"), ("value", "<u8"), ("size", "<u8")]
)


class ElfError(ValueError):
    """The bytes are no usable little-endian ELF64 file; the message says in which way."""


@dataclass(frozen=True)
class Segment:
    """``size`` bytes at ``offset`` of the file, loaded at virtual ``address``; in ``memory`` bytes there."""

    address: int
    offset: int
    size: int
    physical: int = 0
    memory: int = 0


@dataclass(frozen=True)
class Section:
    """A section header; ``link`` names the section of its strings."""

    name: str
    kind: int
    address: int
    offset: int
    size: int
    link: int
    executable: bool = False


@dataclass(frozen=True)
class Elf:
    """A parsed file; ``data`` is all of it."""

    data: bytes
    machine: str
    segments: tuple[Segment, ...]
    notes: tuple[Segment, ...]
    sections: tuple[Section, ...]
    entry: int = 0

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)


def name_at(table: bytes, offset: int) -> str:
    """The name at ``offset`` of a section of strings; one that does not end is cut off."""
    end = table.find(b"\0", offset, offset + _NAME_BYTES)
    return table[offset : end if end >= 0 else offset + _NAME_BYTES].decode("latin-1")


def _sections(data: bytes, offset: int, size: int, count: int, names: int) -> tuple[Section, ...]:
    if not count:
        return ()
    if size != 64 or offset + count * size > len(data):
        raise ElfError("its section headers lie outside the file")
    raw = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    if names >= count:
        raise ElfError("its section names are missing")
    strings = data[raw[names][4] : raw[names][4] + raw[names][5]]
    return tuple(Section(name_at(strings, r[0]), r[1], r[3], r[4], r[5], r[6], bool(r[2] & _EXECUTED)) for r in raw)


def parse(data: bytes) -> Elf:
    """Parse an ELF64 little-endian file.

    Raises:
        ElfError: not such a file, or cut short.
    """
    if len(data) < 64 or data[:4] != MAGIC or data[4:6] != b"\x02\x01":
        raise ElfError("it is not a 64-bit little-endian ELF file")
    _, machine, _, entry, phoff, shoff, _, _, phsize, phnum, shsize, shnum, shstr = struct.unpack_from(
        "<HHIQQQIHHHHHH", data, 16
    )
    if phnum and (phsize != 56 or phoff + phnum * phsize > len(data)):
        raise ElfError("its program headers lie outside the file")
    segments, notes = [], []
    for i in range(phnum):
        kind, _, offset, address, physical, size, memory, _ = struct.unpack_from("<IIQQQQQQ", data, phoff + i * phsize)
        if kind in (1, 4) and offset + size > len(data):
            raise ElfError(f"it is truncated: a segment ends at {offset + size}, the file at {len(data)}")
        if kind == 1:
            segments.append(Segment(address, offset, size, physical, memory))
        elif kind == 4:
            notes.append(Segment(address, offset, size))
    sections = _sections(data, shoff, shsize, shnum, shstr)
    return Elf(data, MACHINES.get(machine, f"machine {machine}"), tuple(segments), tuple(notes), sections, entry)


def _notes(elf: Elf) -> list[bytes]:
    places = [(note.offset, note.size) for note in elf.notes]
    places += [(s.offset, s.size) for s in elf.sections if s.kind == _NOTE]
    return [elf.data[offset : offset + size] for offset, size in places]


def _entries(notes: bytes) -> list[tuple[bytes, int, bytes]]:
    """(owner, type, description) of each note."""
    entries, at = [], 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, at)
        name_at = at + 12
        desc_at = name_at + (name_size + 3) // 4 * 4
        end = desc_at + (size + 3) // 4 * 4
        if desc_at + size > len(notes):
            break
        entries.append((notes[name_at : name_at + name_size].rstrip(b"\0"), kind, notes[desc_at : desc_at + size]))
        at = end
    return entries


def build_id_of(notes: bytes) -> str | None:
    """The GNU build id (in hex) among the notes of a file or of /sys/kernel/notes, or None."""
    for owner, kind, value in _entries(notes):
        if owner == b"GNU" and kind == 3 and value:
            return value.hex()
    return None


def build_id(elf: Elf) -> str | None:
    """The GNU build id in hex, or None."""
    return next((found for notes in _notes(elf) if (found := build_id_of(notes))), None)


def has_pvh(elf: Elf) -> bool:
    """Whether a 32-bit PVH entry note (XEN_ELFNOTE_PHYS32_ENTRY, 18) is there: QEMU can boot the ELF file itself."""
    return any(owner == b"Xen" and kind == 18 for notes in _notes(elf) for owner, kind, _ in _entries(notes))


def preference(name: str, weak: bool) -> tuple[bool, bool, int, str]:
    """The order of aliases in scripts/kallsyms.c: weak ones and the linker script's last, few underscores first."""
    linker = name in BOUNDS or (name.startswith("__") and name.endswith(("_start", "_end")))
    return weak, linker, len(name) - len(name.lstrip("_")), name


def functions(elf: Elf) -> tuple[NDArray[np.uint64], list[str], NDArray[np.uint8], dict[str, int]]:
    """Functions of ``.symtab``: addresses, names, bindings (0 local, 1 global, 2 weak), and the bounds of the text.

    A function is a named symbol in a text section (STT_FUNC, or STT_NOTYPE from assembly). Empty when stripped.
    """
    table = next((section for section in elf.sections if section.kind == _SYMTAB), None)
    if table is None or table.link >= len(elf.sections) or table.offset + table.size > len(elf.data):
        return np.empty(0, np.uint64), [], np.empty(0, np.uint8), {}
    symbols = np.frombuffer(elf.data, _SYMBOL, table.size // _SYMBOL.itemsize, table.offset)
    text = {i for i, s in enumerate(elf.sections) if s.name.endswith(".text") or s.name.startswith(".text")}
    link = elf.sections[table.link]
    strings = elf.data[link.offset : link.offset + link.size]
    kind = symbols["info"] & 15
    keep = np.isin(symbols["shndx"], list(text)) & ((kind == 2) | (kind == 0) | (kind == 10))
    chosen = symbols[keep]
    names = [name_at(strings, int(offset)) for offset in chosen["name"]]
    named = np.array([bool(name) and not name.startswith(("$", ".L")) for name in names], dtype=bool)
    names = [name for name, good in zip(names, named, strict=True) if good]
    chosen = chosen[named]
    wanted = symbols[(symbols["info"] >> 4) == 1]
    marks = {name_at(strings, int(s["name"])): int(s["value"]) for s in wanted if s["shndx"]}
    bounds = {name: marks[name] for name in BOUNDS if name in marks}
    addresses: NDArray[np.uint64] = chosen["value"].astype(np.uint64)
    bindings: NDArray[np.uint8] = (chosen["info"] >> 4).astype(np.uint8)
    return addresses, names, bindings, bounds
