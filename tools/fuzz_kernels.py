# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzzing targets for kernels: images, their symbols, types, machine code. The seeds are small kernels, made here."""

from __future__ import annotations

import gzip
import lzma
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal

from kdelta.attribution import alternatives, disassembly, jump_labels
from kdelta.kernel import banner, btf, calls, elf, image, kallsyms, kconfig, memory, symbols, variables

Target = Callable[[bytes], object]
TEXT = 0xFFFFFFFF81000000
_ARM64 = 183  # EM_AARCH64
_BANNER = b"Linux version 6.12.1 (a@b) (gcc 14) #1\0"
_NOTES = struct.pack("<III4s4xIII4s4x", 4, 4, 3, b"GNU", 4, 4, 18, b"Xen")
Layout = Literal["before", "after", "place"]
Section = tuple[str, int, int, int, bytes, int]  # name, kind, flags, address, content, link


def _elf(data: bytes) -> None:
    file = elf.parse(data)
    elf.build_id(file)
    elf.has_pvh(file)
    elf.functions(file)


def _kallsyms(data: bytes) -> None:
    for read in kallsyms.candidates(memory.open_image(data)):
        assert len(read.addresses) == len(read.types) == len(read.names)


def _symbols(data: bytes) -> None:
    table = symbols.from_image(data)
    if isinstance(table, symbols.SymbolTable):
        known = calls.from_image(data, table)
        assert isinstance(known, calls.CallGraph)
        for name in known.text.split("\n")[:8]:
            known.callees(name), known.callers(name)
        variables.from_image(data, table)


def _system_map(data: bytes) -> None:
    symbols.from_text(data.decode("utf-8", "replace").splitlines(), "System.map", _named())


def _btf(data: bytes) -> None:
    types = btf.parse(data)
    for ident in range(min(len(types.offsets), 40) + 1):
        types.size(ident)
        for field in types.fields(ident)[:8]:
            types.offset(ident, field.name)
            types.path(ident, field.offset)
            types.begins(ident, field.offset, "lockref")
    types.struct("page")
    types.variable("runqueues")


def _machine_code(data: bytes) -> None:
    found = disassembly.Image(data)
    for function in list(found.functions.values())[:8]:
        found.listing(function)
    for address, key in list(jump_labels.sites(found))[:8]:
        found.name_of(address), found.names_of(key)
    alternatives.differing(found, found)
    list(found.pieces()), found.sources


def _image(data: bytes) -> None:
    found = image.unpack("fuzz", data)
    banner.compiler_in(found.plain or found.boot)
    if found.config:
        kconfig.facts(found.config)


TARGETS: dict[str, Target] = {
    "elf": _elf,
    "kallsyms": _kallsyms,
    "symbols": _symbols,
    "system-map": _system_map,
    "btf": _btf,
    "machine-code": _machine_code,
    "image": _image,
    "kconfig": lambda data: kconfig.facts(data.decode("utf-8", "replace")),
}


def _vmlinux(parts: Sequence[Section], machine: int = 62) -> bytes:
    """An ELF file with these sections, one loaded segment over all of it at TEXT, and its notes."""
    names = b"\0" + b"\0".join(name.encode() for name, *_ in parts) + b"\0.names\0"
    every = [("", 0, 0, 0, b"", 0), *parts, (".names", 3, 0, 0, names, 0)]
    body, table = bytearray(_NOTES), b""
    start = 64 + 2 * 56
    for name, kind, flags, address, content, link in every:
        body += b"\0" * (-len(body) % 8)
        at = start + len(body)
        table += struct.pack(
            "<IIQQQQIIQQ", names.find(name.encode()), kind, flags, address, at, len(content), link, 0, 1, 0
        )
        body += content
    size = start + len(body) + len(table)
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, TEXT, 64, start + len(body), 0, 64, 56, 2, 64, len(every), len(every) - 1
    )
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, TEXT - start - len(_NOTES), 0x1000000, size, size, 4096)
    head += struct.pack("<IIQQQQQQ", 4, 4, start, 0, 0, len(_NOTES), len(_NOTES), 4)
    return head + bytes(body) + table


def _functions(count: int) -> dict[str, int]:
    """Where functions lie, of 16 bytes each: every second is the cold part of another."""
    names = [f"f{i}" if i % 2 == 0 else f"f{(i * 7 - 1) % count & ~1}.cold" for i in range(count)]
    return {name: TEXT + 16 * i for i, name in reversed(list(enumerate(names)))}


def _leads(at: int, to: int, call: bool, machine: int) -> bytes:
    """A call or a jump: of x86-64 by 32 bits from its end, of arm64 by 26 bits of words from itself."""
    if machine == _ARM64:
        return struct.pack("<I", (0x94000000 if call else 0x14000000) | (to - at) // 4 & 0x3FFFFFF)
    return (b"\xe8" if call else b"\xe9") + struct.pack("<i", to - at - 5)


def _idle(size: int, machine: int) -> bytes:
    """Code that does nothing, in few instructions, as compilers pad with: each is decoded for each input."""
    if machine == _ARM64:
        return b"\x1f\x20\x03\xd5" * (size // 4)
    long, rest = divmod(size, 8)
    return bytes.fromhex("0f1f840000000000") * long + (b"\x66" * (rest - 1) + b"\x90" if rest else b"")


def _code(places: dict[str, int], count: int, machine: int = 62) -> bytes:
    """Each function calls another one, and jumps to its cold part."""
    text = bytearray(_idle(16, machine) * count)
    for name, at in places.items():
        done = _leads(at, TEXT + 16 * ((at - TEXT) // 16 * 5 % count), True, machine)
        if cold := places.get(f"{name}.cold"):
            done += _leads(at + len(done), cold, False, machine)
        text[at - TEXT : at - TEXT + 16] = done + _idle(16 - len(done), machine)
    return bytes(text)


@cache
def _named(count: int = 120, machine: int = 62) -> bytes:
    """A kernel with a table of symbols that its code proves."""
    places = _functions(count)
    marks = {"startup_64": TEXT, "_stext": TEXT, "_etext": TEXT + 16 * count}
    every = [(name, at, 2, 1) for name, at in places.items()] + [(name, at, 0x10, 1) for name, at in marks.items()]
    strings, table = b"\0", bytes(24)
    for name, at, info, section in every:
        table += struct.pack("<IBBHQQ", len(strings), info, 0, section, at, 16 if info == 2 else 0)
        strings += name.encode() + b"\0"
    text = (".text", 1, 6, TEXT, _code(places, count, machine), 0)
    return _vmlinux([text, (".symtab", 2, 0, 0, table, 3), (".strtab", 3, 0, 0, strings, 0)], machine)


def _padded(data: bytes, step: int) -> bytes:
    return data + b"\0" * (-len(data) % step)


def _tables(rows: Sequence[tuple[int, str]], layout: Layout, at: int) -> bytes:
    """The tables of kallsyms for ``rows`` (address, type and name), as they lie at ``at`` (see kernel/kallsyms.py)."""
    tokens = [bytes([i]) if i > 32 else b"" for i in range(256)]
    index = [sum(len(one) + 1 for one in tokens[:i]) for i in range(256)]
    names = b"".join(bytes([len(name)]) + name.encode() for _, name in rows)
    step = 4 if layout == "place" else 8
    core = struct.pack("<I" if layout == "place" else "<Q", len(rows)) + _padded(names, step)
    core += _padded(bytes(4), step) + _padded(b"".join(one + b"\0" for one in tokens), step)
    core += _padded(struct.pack("<256H", *index), step)
    if layout == "place":
        core = b"\0" * (-(at + len(core)) & 7) + core
        first = at + len(core)
        return (
            core
            + b"".join(struct.pack("<i", a - first - 4 * i) for i, (a, _) in enumerate(rows))
            + bytes(3 * len(rows))
        )
    offsets = _padded(b"".join(struct.pack("<I", a - TEXT) for a, _ in rows), 8) + struct.pack("<Q", TEXT)
    return core + offsets if layout == "after" else offsets + core


def _with_kallsyms(layout: Layout, count: int = 0) -> bytes:
    """A kernel that has its names from kallsyms alone; with ``count`` functions they are proven."""
    places = _functions(count)
    rows = [(TEXT, "T_stext"), (TEXT, "Tstartup_64"), *((at, f"t{name}") for name, at in places.items())]
    rows += [(TEXT + 16 * count + 16, "T_etext"), (TEXT + 16 * count + 32, "Ddata")]
    code = _code(places, count) + bytes(64)
    at = TEXT + len(code)
    tables = _tables(sorted(rows, key=lambda row: row[0]), layout, at)
    return _vmlinux([(".text", 1, 6, TEXT, code, 0), (".rodata", 1, 2, at, tables, 0)])


def _arm64_code() -> bytes:
    """An address of a text, made of a page and an offset; a load; a call; a branch; what is no instruction."""
    code = bytes.fromhex("20000090 00100091 010440f9 fcffff97 40000054 ffffffff c0035fd6")
    symtab = bytes(24) + struct.pack("<IBBHQQ", 1, 2, 0, 1, TEXT, len(code))
    return _vmlinux([
        (".text", 1, 6, TEXT, code, 0), (".rodata", 1, 2, TEXT + 0x4004, b"some text\0", 0),
        (".symtab", 2, 0, 0, symtab, 4), (".strtab", 3, 0, 0, b"\0first\0", 0),
    ], _ARM64)  # fmt: skip


def _types() -> bytes:
    """A section .BTF: a number, another name of it, an array, a struct, a union, and a struct of all of these."""
    strings = b"\0u64\0name_t\0lockref\0count\0page\0inner\0slots\0"

    def name(text: str) -> int:
        return strings.find(b"\0" + text.encode() + b"\0") + 1

    def made(kind: int, text: str, size: int, *fields: tuple[str, int, int]) -> bytes:
        rows = b"".join(struct.pack("<3I", name(field), ident, 8 * at) for field, ident, at in fields)
        return struct.pack("<3I", name(text) if text else 0, kind << 24 | len(fields), size) + rows

    types = (
        made(1, "u64", 8) + struct.pack("<I", 64) + made(8, "name_t", 1) + made(3, "", 0) + struct.pack("<3I", 4, 1, 8)
    )
    types += made(4, "lockref", 8, ("count", 1, 0)) + made(5, "", 16, ("inner", 2, 0), ("count", 1, 8))
    types += made(4, "page", 96, ("", 5, 0), ("slots", 3, 16), ("inner", 4, 80), ("name_t", 6, 88))
    return struct.pack("<HBBI4I", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings)) + types + strings


def _bzimage(packed: bytes) -> bytes:
    """Boot protocol 2.15 around what is ``packed``."""
    code, head = _padded(packed, 16), bytearray(1024)
    struct.pack_into("<B", head, 0x1F1, 1)
    struct.pack_into("<I", head, 0x1F4, len(code) // 16)
    struct.pack_into("<4sH6xH", head, 0x202, b"HdrS", 0x20F, 0x100)
    struct.pack_into("<II", head, 0x248, 0, len(packed))
    head[0x300:0x30C] = b"6.12.1 #1 x\0"
    return bytes(head) + code


def _images() -> list[bytes]:
    config = gzip.compress(b"CONFIG_SMP=y\n# CONFIG_NUMA is not set\n")
    plain = _vmlinux([(".text", 1, 6, TEXT, bytes(16) + _BANNER + b"IKCFG_ST" + config, 0)])
    raw = (
        b"MZ\0\0"
        + bytes(52)
        + b"ARM\x64"
        + struct.pack("<I", 64)
        + b"PE\0\0"
        + bytes(2)
        + b"\1\0"
        + bytes(56)
        + _BANNER
    )
    packed = gzip.compress(raw)
    zboot = b"MZ\0\0zimg" + struct.pack("<II8x40s", 64, len(packed), b"gzip") + packed
    sized = lzma.compress(plain, lzma.FORMAT_XZ, check=lzma.CHECK_NONE) + struct.pack("<I", len(plain))
    return [plain, raw, packed, zboot, _bzimage(sized), _bzimage(plain), b"!<arch>\ndebian-binary"]


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made."""
    layouts: tuple[Layout, ...] = ("before", "after", "place")
    places = {**_functions(120), "_stext": TEXT, "_etext": TEXT + 16 * 120, "startup_64": TEXT}
    found: dict[str, Callable[[], list[bytes]]] = {
        "elf": lambda: [_named(6)],
        "kallsyms": lambda: [_with_kallsyms(layout, 2) for layout in layouts],
        "symbols": lambda: [_named(), _named(machine=_ARM64), _with_kallsyms("after", 120)],
        "system-map": lambda: ["".join(f"{at:016x} t {one}\n" for one, at in places.items()).encode()],
        "btf": lambda: [_types()],
        "machine-code": lambda: [_machine(), _arm64_code()],
        "image": _images,
        "kconfig": lambda: [b"CONFIG_SMP=y\n# CONFIG_NUMA is not set\nCONFIG_HZ=250\n"],
    }
    return found[name]()


def _machine() -> bytes:
    """Two functions, an object, a place that is patched at boot, and a static branch."""
    code = bytes.fromhex("e80b000000 488d05f4ffffff 7402 90 c3 0000 0f1f440000 c3 90") + bytes(9)
    table, other, jumps = TEXT + 0x1000, TEXT + 0x2000, TEXT + 0x3000
    patched = struct.pack("<iiIBB", 16 - 0x1000, 0x1000 - 4, 5, 5, 3)
    branch = struct.pack("<iiq", 16 - 0x3000, 0, 0x100)
    strings = b"\0first\0second\0thing\0__start___jump_table\0__stop___jump_table\0"
    rows = (("first", 0x12, 1, TEXT, 16), ("second", 2, 1, TEXT + 16, 16), ("thing", 0x11, 2, table, 12),
            ("__start___jump_table", 0x10, 4, jumps, 0), ("__stop___jump_table", 0x10, 4, jumps + 16, 0))  # fmt: skip
    symtab = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", strings.find(name.encode()), info, 0, section, at, size)
        for name, info, section, at, size in rows
    )
    return _vmlinux([
        (".text", 1, 6, TEXT, code, 0), (".altinstructions", 1, 2, table, patched, 0),
        (".altinstr_replacement", 1, 6, other, b"\x90\x90\x90", 0), ("__jump_table", 1, 3, jumps, branch, 0),
        (".symtab", 2, 0, 0, symtab, 6), (".strtab", 3, 0, 0, strings, 0),
    ])  # fmt: skip
