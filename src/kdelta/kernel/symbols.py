# SPDX-License-Identifier: GPL-2.0-or-later
"""Function symbols of a kernel, so that instruction addresses become names.

From ``.symtab`` where the image has one, else from its own kallsyms tables (see ``kallsyms``), else from the text of a
System.map or of a guest's /proc/kallsyms. Whatever it was read from, no table leaves here before the machine code has
proven it (see ``proof``). Addresses are as linked: guests boot with ``nokaslr``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.kernel import elf, kallsyms, memory, proof
from kdelta.kernel.memory import Image, Span

Source = Literal["symtab", "kallsyms", "System.map", "guest"]
_FUNCTION_TYPES = "tTwW"
_BOUNDS = (("_stext", "_etext"), ("_sinittext", "_einittext"))
_LINE = re.compile(r"^([0-9a-f]{8,16}) ([A-Za-z]) (\S+)$", re.MULTILINE)


class NoSymbols(Struct, frozen=True):
    """Why a kernel has no symbol table: a value, since exact results without names are still results."""

    why: str


class SymbolTable(Struct, frozen=True, kw_only=True, dict=True):
    """Functions in address order; of several at one address only the kernel's own first choice.

    ``addresses_le`` is little-endian u64; ``text`` one name a line; ``ranges`` are the half-open address ranges of
    kernel code, outside of which nothing has a name.
    """

    source: Source
    ranges: tuple[Span, ...]
    addresses_le: bytes
    text: str

    def __len__(self) -> int:
        return len(self.addresses_le) // 8

    @cached_property
    def addresses(self) -> NDArray[np.uint64]:
        """Start of each function, shape (n,), rising."""
        return np.frombuffer(self.addresses_le, "<u8").astype(np.uint64)

    @cached_property
    def all_names(self) -> tuple[str, ...]:
        """Name of each function, as the kernel spells it."""
        return tuple(self.text.split("\n")) if self.text else ()

    def index(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """For each address the function that it lies in (an index into ``all_names``), -1 outside of all code."""
        wanted = np.asarray(addresses, dtype=np.uint64)
        found = np.searchsorted(self.addresses, wanted, side="right").astype(np.int64) - 1
        inside = np.zeros(wanted.shape, dtype=bool)
        for low, high in self.ranges:
            inside |= (wanted >= np.uint64(low)) & (wanted < np.uint64(high))
        return np.where(inside, found, -1)

    def names(self, addresses: NDArray[np.uint64]) -> list[str | None]:
        """For each address the name of its function, None outside of all code."""
        names = self.all_names
        return [names[i] if i >= 0 else None for i in self.index(addresses).tolist()]

    def lookup(self, address: int) -> str | None:
        """The name of the function that ``address`` lies in, or None."""
        return self.names(np.array([address], dtype=np.uint64))[0]


class _Reading(Struct, frozen=True, kw_only=True):
    """All symbols of a source in address order, the first choice of several at one address first; (n,) each."""

    source: Source
    addresses: NDArray[np.uint64]
    functions: NDArray[np.bool_]
    names: list[str]


def _marks(reading: _Reading) -> dict[str, int]:
    return {name: int(reading.addresses[i]) for i, name in enumerate(reading.names) if name in elf.BOUNDS}


def _at(reading: _Reading, address: int | None) -> frozenset[str]:
    if address is None:
        return frozenset()
    return frozenset(reading.names[i] for i in np.flatnonzero(reading.addresses == np.uint64(address)).tolist())


def _proven(image: Image, reading: _Reading) -> SymbolTable | NoSymbols:
    """The functions of ``reading`` if the machine code says that they are there."""
    marks = _marks(reading)
    ranges = tuple((marks[a], marks[b]) for a, b in _BOUNDS if a in marks and marks.get(b, 0) > marks[a])
    addresses, inside = reading.addresses, np.zeros(reading.addresses.shape, bool)
    for low, high in ranges:
        inside |= (addresses >= np.uint64(low)) & (addresses < np.uint64(high))
    inside &= reading.functions & ~np.isin(np.array(reading.names), elf.BOUNDS)
    places = np.flatnonzero(inside)
    places = places[np.unique(addresses[places], return_index=True)[1]]
    names = [reading.names[i] for i in places.tolist()]
    claim = proof.Claim(
        addresses=addresses[places],
        names=names,
        ranges=ranges,
        entry=_at(reading, image.entry),
        end=marks.get("_end"),
    )
    if why := proof.doubt(image, claim):
        return NoSymbols(f"the names of its {reading.source} are not those of its machine code: {why}")
    return SymbolTable(
        source=reading.source,
        ranges=ranges,
        addresses_le=addresses[places].astype("<u8").tobytes(),
        text="\n".join(names),
    )


def _from_symtab(file: elf.Elf) -> Iterator[_Reading]:
    addresses, names, bindings, marks = elf.functions(file)

    def rank(i: int) -> tuple[int, tuple[bool, bool, int, str]]:
        return int(addresses[i]), elf.preference(names[i], bool(bindings[i] == 2))

    if names:
        order = sorted(range(len(names)), key=rank)
        bounds = sorted(marks.items(), key=lambda mark: mark[1])
        yield _Reading(
            source="symtab",
            addresses=np.append(addresses[order], np.array([a for _, a in bounds], np.uint64)),
            functions=np.append(np.ones(len(order), bool), np.zeros(len(bounds), bool)),
            names=[*(names[i] for i in order), *(name for name, _ in bounds)],
        )


def _reading(source: Source, symbols: kallsyms.Symbols) -> _Reading:
    functions = np.array([kind in _FUNCTION_TYPES for kind in symbols.types], bool)
    return _Reading(source=source, addresses=symbols.addresses, functions=functions, names=symbols.names)


def _readings(image: Image) -> Iterator[_Reading]:
    """What the image says of its symbols, in every way in which it can be read."""
    if image.data[:4] == elf.MAGIC:
        yield from _from_symtab(elf.parse(image.data))
    for symbols in kallsyms.candidates(image):
        yield _reading("kallsyms", symbols)


def from_image(data: bytes, *, kallsyms_alone: bool = False) -> SymbolTable | NoSymbols:
    """The table of an uncompressed kernel: vmlinux, or an arm64 Image."""
    first: NoSymbols | None = None
    try:
        image = memory.open_image(data)
        for reading in _readings(image):
            if kallsyms_alone and reading.source != "kallsyms":
                continue
            found = _proven(image, reading)
            if isinstance(found, SymbolTable):
                return found
            first = first or found
    except (elf.ElfError, memory.ImageError, kallsyms.KallsymsError) as error:
        return first or NoSymbols(str(error))
    return first or NoSymbols("it has no symbols")


def by_other_names(data: bytes, table: SymbolTable, names: Iterable[str]) -> dict[str, str]:
    """Those of ``names`` by which an uncompressed kernel knows a function that ``table`` has by another one, with that.

    __x64_sys_getppid is __do_sys_getppid: a system call without arguments is an alias of its own function.
    """
    wanted = set(names)
    starts = dict(zip(table.addresses.tolist(), table.all_names, strict=True))
    try:
        for reading in _readings(memory.open_image(data)):
            found = {
                name: starts[address]
                for name, address in zip(reading.names, reading.addresses.tolist(), strict=True)
                if name in wanted and address in starts
            }
            if found:
                return found
    except (elf.ElfError, memory.ImageError, kallsyms.KallsymsError):
        pass  # named by its System.map or a guest: these names alone are known
    return {}


def from_text(lines: Iterable[str], source: Source, data: bytes) -> SymbolTable | NoSymbols:
    """The table in a System.map or a guest's /proc/kallsyms, proven by the uncompressed kernel ``data``.

    Module symbols and lines that do not fit are left out.
    """
    rows = [(int(m[1], 16), m[2], m[3]) for line in lines if (m := _LINE.match(line.rstrip("\r\n")))]
    if not any(address for address, _, _ in rows):
        return NoSymbols("it shows no addresses (kptr_restrict, or a stub)")
    addresses = np.array([row[0] for row in rows], dtype=np.uint64)
    order = np.argsort(addresses, kind="stable")
    ordered = [rows[i] for i in order.tolist()]
    read = kallsyms.Symbols(addresses[order], "".join(r[1] for r in ordered), [r[2] for r in ordered])
    try:
        return _proven(memory.open_image(data), _reading(source, read))
    except memory.ImageError as error:
        return NoSymbols(str(error))
