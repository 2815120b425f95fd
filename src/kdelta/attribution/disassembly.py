# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of a kernel's ELF image, and their instructions with names instead of addresses. Pure over bytes.

A final vmlinux has no relocations, so a reference is named by what it points at: a symbol that covers it, the string
that stands there, or its section. Two builds of one source then read the same wherever the linker put things.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import capstone
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.attribution.pages import Pages
from kdelta.errors import UserError
from kdelta.kernel import elf
from kdelta.kernel.spelling import fold

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("shndx", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_NUMBERED = re.compile(r"\.\d+$")  # CSWTCH.12, __already_done.5: counted by the compiler, anew in each build
_UNIQUE = re.compile(r"^(__UNIQUE_ID_\w*?)_*\d+$")  # by __COUNTER__, which other uses of it in a file move
_DIGITS = re.compile(r"\.\d+")
_BOUND = re.compile(r"^(__start_|__stop_|_[se](?=[a-z]))|_(start|end|stop|begin)$")
# capstone writes large immediates of x86 in decimal
_NUMBER = re.compile(r"(?<![\w.])(-?)(?:0x([0-9a-f]+)|(\d{12,}))(\(%rip\))?")
_ADD = re.compile(r"^(\w+), (\w+), #(0x[0-9a-f]+|\d)$")
_OFFSET = re.compile(r"\[(\w+)(?:, #(0x[0-9a-f]+|\d))?\]")
_DISCARDED = (".exit", "__ksymtab", "__bug", "___k")  # data that no function reads
_BOOT_DATA = (".init.data", ".init.rodata")  # what is initialised and thrown away once the kernel has started
PER_CPU = 1 << 16  # x86-64 before 6.15 links per-CPU variables from 0: no smaller constant is the address of one
_STRING_BYTES = 48
_MOST_OVERLAP = 8  # of symbols; aliases of system calls make it less than 2
_MASK = 0xFFFFFFFFFFFFFFFF  # of addresses
_WEAK = 2  # elf(5): STB_WEAK
BRANCHES = {
    "x86_64": re.compile(r"^(?:j\w+|loop\w*|call\w*)$"),
    "arm64": re.compile(r"^(?:b(?:\.\w+)?|bl|cbn?z|tbn?z)$"),
}
_CALLS = ("call", "callq", "bl")


class Function(Struct, frozen=True, kw_only=True):
    """A function: where it is linked, its size and code in bytes, and its section's name."""

    name: str
    address: int
    code: bytes
    section: str

    @property
    def size(self) -> int:
        return len(self.code)


class DataObject(Struct, frozen=True, kw_only=True):
    """A variable with an initial value: where it is linked, and its content."""

    name: str
    address: int
    content: bytes


class Instruction(Struct, frozen=True, kw_only=True):
    """One instruction; ``text`` has names for addresses, ``target`` is what it calls or jumps to outside, or ""."""

    offset: int
    text: str
    label: str = ""  # set where a jump of the function lands
    target: str = ""
    calls: bool = False


def _kind(section: elf.Section) -> str:
    """What the symbols of a section are of interest as: ``text``, ``data``, ``boot`` or ""."""
    if "text" in section.name:
        return "text"
    if section.name.startswith(".init"):
        return "boot" if section.kind == 1 and section.name in _BOOT_DATA else ""
    return "data" if section.kind == 1 and not section.name.startswith(_DISCARDED) else ""


def _cover(symbols: NDArray[np.void], kinds: Sequence[str]) -> float:
    """Bytes of code and data under all ``symbols``; aliases count several times."""
    content = np.array([bool(kind) for kind in kinds])
    return float(symbols["size"][content[symbols["shndx"]]].astype(np.float64).sum())


def _source(key: str) -> str:
    """The function in the source that one of ``Image.functions`` belongs to."""
    return fold(key.partition("#")[0])


def _part(function: Function) -> tuple[str, int]:
    """The order of a function's parts, for two builds alike: compilers number them anew each time."""
    return _DIGITS.sub("", function.name.partition("#")[0]), function.address


class Image:
    """A kernel's functions and the names of its addresses."""

    def __init__(self, data: bytes, name: str = "kernel") -> None:
        """Parse ``data``, the bytes of a vmlinux with its symbols.

        Raises:
            UserError: no ELF file, stripped, or for another architecture.
        """
        try:
            self._file = elf.parse(data)
        except elf.ElfError as error:
            raise UserError(f"{name}: {error}; machine code needs a vmlinux with symbols") from None
        self.aliases: dict[str, str] = {}  # further names in the source of a function -> the one that it goes by
        self.arch = self._file.machine
        if self.arch not in BRANCHES:
            raise UserError(f"{name}: machine code of {self.arch} is not supported; x86_64 and arm64 are")
        self._read_symbols(name)

    def _read_symbols(self, name: str) -> None:
        file = self._file
        table = next((section for section in file.sections if section.kind == 2), None)
        if table is None or table.link >= len(file.sections) or table.offset + table.size > len(file.data):
            raise UserError(f"{name}: stripped; machine code needs a vmlinux with symbols")
        raw = np.frombuffer(file.data, _SYMBOL, table.size // _SYMBOL.itemsize, table.offset)
        strings = file.sections[table.link]
        pool = file.data[strings.offset : strings.offset + strings.size]
        in_section = (raw["shndx"] > 0) & (raw["shndx"] < len(file.sections))
        kept = raw[in_section & np.isin(raw["info"] & 15, (0, 1, 2, 10))]
        kept = kept[np.lexsort((kept["name"], kept["value"]))]
        kinds = [_kind(section) for section in file.sections]
        if _cover(kept, kinds) > _MOST_OVERLAP * len(file.data):
            raise UserError(f"{name}: its symbols cover it more than {_MOST_OVERLAP} times over: it is damaged")
        self._addresses: list[int] = []
        self._symbols: list[tuple[str, int]] = []
        self.functions: dict[str, Function] = {}
        objects: dict[str, dict[str, list[DataObject]]] = {"data": {}, "boot": {}}
        seen: dict[str, int] = {}
        weak: set[str] = set()
        for text, info, shndx, value, size in zip(
            *(kept[field].tolist() for field in ("name", "info", "shndx", "value", "size")), strict=True
        ):
            label = elf.name_at(pool, text)
            if not label or label.startswith((".L", "$", "__pfx_")):  # __pfx_: padding before functions
                continue
            name = _NUMBERED.sub("", label) if "." in label else _UNIQUE.sub(r"\1", label)
            self._addresses.append(value)
            self._symbols.append((name, size))
            kind = kinds[shndx] if size else ""
            if kind == "text" and info & 15 in (0, 2):  # assembly's SYM_CODE has no type
                seen[label] = seen.get(label, 0) + 1  # several static ones have one name
                key = label if seen[label] == 1 else f"{label}#{seen[label]}"
                weak |= {key} if info >> 4 == _WEAK else set()
                code, section = self._content(file.sections[shndx], value, size), file.sections[shndx].name
                self.functions[key] = Function(name=key, address=value, code=code, section=section)
            elif kind in objects and info & 15 == 1:
                made = DataObject(name=name, address=value, content=self._content(file.sections[shndx], value, size))
                objects[kind].setdefault(name, []).append(made)
        self.objects, self.boot_objects = (
            {name: tuple(found) for name, found in objects[kind].items()} for kind in ("data", "boot")
        )
        self._merge_aliases(weak)

    def _merge_aliases(self, weak: Collection[str]) -> None:
        """One function for all names of one address and size, by that of them which kallsyms takes: what is counted
        goes by it.
        """
        places: dict[tuple[int, int], list[str]] = {}
        for key, one in self.functions.items():
            places.setdefault((one.address, one.size), []).append(key)
        for keys in places.values():
            first, *others = sorted(keys, key=lambda key: elf.preference(key.partition("#")[0], key in weak))
            for key in others:
                del self.functions[key]
                self.aliases[_source(key)] = _source(first)
        for name in map(_source, self.functions):
            self.aliases.pop(name, None)

    def _content(self, section: elf.Section, address: int, size: int) -> bytes:
        start = section.offset + address - section.address
        return self._file.data[start : start + size]

    def symbols(self) -> tuple[list[int], list[str], list[int]]:
        """Addresses, names and sizes of all symbols; names without the numbers that a compiler appends."""
        return self._addresses, [name for name, _ in self._symbols], [size for _, size in self._symbols]

    def sections(self) -> Iterator[tuple[str, int, int]]:
        """(name, address, size) of every section that is loaded, by address."""
        return ((section.name, section.address, section.size) for section in self._loaded)

    def function_at(self, address: int) -> Function | None:
        """The function whose code covers ``address``."""
        starts, functions = self._by_address
        place = bisect_right(starts, address) - 1
        found = functions[place] if place >= 0 else None
        return found if found is not None and address < found.address + found.size else None

    @cached_property
    def _by_address(self) -> tuple[list[int], list[Function]]:
        functions = sorted(self.functions.values(), key=lambda one: one.address)
        return [one.address for one in functions], functions

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """(address, content) of each section of code."""
        for section in self._loaded:
            if "text" in section.name and section.kind == 1:
                yield section.address, self._file.data[section.offset : section.offset + section.size]

    @cached_property
    def sources(self) -> dict[str, tuple[Function, ...]]:
        """The parts of each function as the source names it: ``f``, ``f.isra.0``, ``f.cold``, others of that name.

        Those of an alias are its function's.
        """
        found: dict[str, list[Function]] = {}
        for key, function in self.functions.items():
            found.setdefault(_source(key), []).append(function)
        parts = {name: tuple(sorted(parts, key=_part) if len(parts) > 1 else parts) for name, parts in found.items()}
        return parts | {alias: parts[name] for alias, name in self.aliases.items()}

    @cached_property
    def _loaded(self) -> list[elf.Section]:
        return sorted((s for s in self._file.sections if s.address and s.size), key=lambda s: s.address)

    def section_bytes(self, name: str) -> bytes:
        """Content of a section, b"" where there is none."""
        section = self._file.section(name)
        return self._file.data[section.offset : section.offset + section.size] if section else b""

    def content(self, address: int, size: int) -> bytes:
        """The bytes at ``address``, b"" where the file holds none."""
        section = next((s for s in self._loaded if s.kind == 1 and s.address <= address < s.address + s.size), None)
        return self._content(section, address, min(size, section.address + section.size - address)) if section else b""

    def _aliases(self, address: int) -> list[tuple[bool, bool, str]]:
        """Symbols at or over ``address``, things before labels of where a section happens to begin or end."""
        last = bisect_right(self._addresses, address)
        if not last:
            return []
        start = self._addresses[last - 1]
        offset = address - start
        suffix = f"+{offset:#x}" if offset else ""
        symbols = self._symbols[bisect_left(self._addresses, start) : last]
        return sorted(
            (not size, bool(_BOUND.search(name)), name + suffix)
            for name, size in symbols
            if address < start + max(size, 1)
        )

    def name_of(self, address: int, strings: bool = False) -> str:
        """What ``address`` is: ``symbol+0x10``, a section (with ``strings`` its text), or "" outside of the image."""
        aliases = self._aliases(address)
        return aliases[0][2] if aliases else self._unnamed(address, strings)

    def names_of(self, address: int) -> frozenset[str]:
        """All names of what ``address`` is; two builds may share only one of them."""
        aliases = self._aliases(address)
        return frozenset(name for _, _, name in aliases) if aliases else frozenset({self._unnamed(address, False)})

    def has_symbol(self, address: int) -> bool:
        """Whether a symbol is at or over ``address``."""
        return bool(self._aliases(address))

    def _unnamed(self, address: int, strings: bool) -> str:
        section = next((s for s in self._loaded if s.address <= address < s.address + s.size), None)
        if section is None:
            return ""
        if strings and section.kind != 8:  # SHT_NOBITS has no content
            at = section.offset + address - section.address
            text = self._file.data[at : at + _STRING_BYTES].split(b"\0")[0]
            if len(text) > 1 and all(32 <= byte < 127 or byte in b"\n\t\x01" for byte in text):
                return repr(text.decode("ascii"))
        return f"[{section.name}]"

    @cached_property
    def _engine(self) -> capstone.Cs:
        if self.arch == "x86_64":
            engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
            engine.syntax = capstone.CS_OPT_SYNTAX_ATT
        else:
            engine = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
        return engine

    def raw(self, function: Function) -> Iterator[tuple[int, int, str, str]]:
        """(offset, length, mnemonic, operands); what is no instruction comes as bytes."""
        at = 0
        while at < function.size:
            for address, length, mnemonic, operands in self._engine.disasm_lite(
                function.code[at:], function.address + at
            ):
                yield address - function.address, length, mnemonic, operands
                at = address - function.address + length
            if at < function.size:
                step = 1 if self.arch == "x86_64" else 4
                yield at, step, ".byte", function.code[at : at + step].hex()
                at += step

    def instructions(self, function: Function, strings: bool = False) -> list[Instruction]:
        """The instructions of ``function``; jumps inside it go to labels that are numbered in order.

        ``strings`` shows texts that have no symbol; without, they are their section: data, not code.
        """
        raw = list(self.raw(function))
        inside = self._landings(function, raw)
        pages = Pages(raw, function.address) if self.arch == "arm64" else None
        out = []
        for index, (offset, length, mnemonic, operands) in enumerate(raw):
            branch = bool(BRANCHES[self.arch].match(mnemonic))
            text, target = self._named(function, offset + length, operands, branch, inside, strings)
            if pages:
                text = self._paged(index, mnemonic, operands, text, pages, strings)
            out.append(
                Instruction(
                    offset=offset,
                    text=f"{mnemonic} {text}".rstrip(),
                    label=inside.get(offset, ""),
                    target=target,
                    calls=mnemonic in _CALLS and bool(target),
                )
            )
        return out

    def _landings(self, function: Function, raw: list[tuple[int, int, str, str]]) -> dict[int, str]:
        targets = set()
        for _, _, mnemonic, operands in raw:
            if BRANCHES[self.arch].match(mnemonic) and (match := re.search(r"0x([0-9a-f]+)$", operands)):
                offset = int(match[1], 16) - function.address
                if 0 < offset < function.size:
                    targets.add(offset)
        return {offset: f"L{number}" for number, offset in enumerate(sorted(targets), 1)}

    def _named(
        self, function: Function, end: int, operands: str, branch: bool, inside: dict[int, str], strings: bool
    ) -> tuple[str, str]:
        """Operands with names, and the outside target of a branch."""
        target = ""

        def name(match: re.Match[str]) -> str:
            nonlocal target
            value = (int(match[2], 16) if match[2] else int(match[3])) * (-1 if match[1] else 1)
            if match[4]:
                address = function.address + end + value & _MASK
                place = self.name_of(address, strings)
                if not place and operands[: match.start()].endswith("%gs:"):
                    place = self._in_per_cpu(address)
                return f"{place}(%rip)" if place else match[0]
            address = value & _MASK
            offset = address - function.address
            if branch and match.end() == len(operands):
                if 0 < offset < function.size:
                    return inside.get(offset, f"+{offset:#x}")
                target = "itself" if offset == 0 else self.name_of(address)
                return target or match[0]
            # an immediate or a displacement: 32 bits, sign-extended on x86
            if address < 1 << 32 and address >= 1 << 31 and self.arch == "x86_64":
                address |= 0xFFFFFFFF00000000
            if address >= 1 << 47:
                return self.name_of(address, strings) or match[0]
            displaces = operands[match.end() : match.end() + 1] == "("
            return (self._per_cpu(address) if displaces else "") or match[0]

        return _NUMBER.sub(name, operands), target

    def _per_cpu(self, place: int) -> str:
        """The variable at a place in the memory of each CPU, where that is linked from 0 (x86 before 6.15), else ""."""
        return self.name_of(place) if place >= PER_CPU and self._in_per_cpu(place) else ""

    def _in_per_cpu(self, place: int) -> str:
        """That section, where it is linked from 0 and has this place, else ""."""
        section = self._file.section(".data..percpu")
        return f"[{section.name}]" if section is not None and not section.address and place < section.size else ""

    def _paged(self, index: int, mnemonic: str, operands: str, text: str, pages: Pages, strings: bool) -> str:
        """arm64 builds addresses from a page (adrp) and an offset: name the sum, not the parts."""
        if mnemonic == "adrp":
            return f"{operands.partition(', ')[0]}, [page]"
        added = _ADD.match(operands) if mnemonic == "add" else None
        match = added or _OFFSET.search(operands)
        register, offset = (match[2], match[3]) if added and match else (match[1], match[2]) if match else ("", "")
        page = pages.of(register, index) if match else None
        place = self.name_of(page + int(offset or "0", 0), strings) if page is not None else ""
        if not place or not match:
            return text
        if added:
            return f"{match[1]}, {register}, {place}"
        return operands[: match.start()] + f"[{register}, {place}]" + operands[match.end() :]

    def listing(self, function: Function, strings: bool = True) -> list[str]:
        """Lines of a disassembly without addresses: labels at the margin, instructions behind a tab."""
        lines = []
        for one in self.instructions(function, strings):
            if one.label:
                lines.append(f"{one.label}:")
            lines.append(f"\t{one.text}")
        return lines
