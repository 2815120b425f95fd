# SPDX-License-Identifier: GPL-2.0-or-later
"""Function symbols of a kernel, so that instruction addresses become names.

From ``.symtab`` where the image has one, else from its own kallsyms tables (see ``kallsyms``), else from the text of a
guest's /proc/kallsyms. Addresses are as linked: guests boot with ``nokaslr``. Tables are cached by build id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.kernel import cache, elf, kallsyms
from kdelta.model import Kernel
from kdelta.paths import cache_dir

FORMAT = 1  # of the cached tables: raised when their content changes
_FUNCTION_TYPES = "tTwW"
_BOUNDS = (("_stext", "_etext"), ("_sinittext", "_einittext"))
# What compilers and the kernel's macros append to the name of the function that a person wrote.
_SUFFIX = re.compile(r"(\.(part|isra|constprop|cold|lto_priv|localalias|llvm|ipa_sra|__uniq)(\.\d+)*|\.\d+|_noprof)+$")
_LINE = re.compile(r"^([0-9a-f]{8,16}) ([A-Za-z]) (\S+)$", re.MULTILINE)


class NoSymbols(Struct, frozen=True):
    """Why a kernel has no symbol table: a value, since exact results without names are still results."""

    why: str


class SymbolTable(Struct, frozen=True, kw_only=True, dict=True):
    """Functions in address order; of several at one address only the kernel's own first choice.

    ``addresses_le`` is little-endian u64; ``text`` one name a line; ``ranges`` are the half-open address ranges of
    kernel code, outside of which nothing has a name.
    """

    source: str  # symtab | kallsyms | guest
    ranges: tuple[tuple[int, int], ...]
    addresses_le: bytes
    text: str
    format: int = FORMAT

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


def fold(name: str) -> str:
    """The name as in the source: ``__slab_free.isra.0.cold`` -> ``__slab_free``, ``kmalloc_noprof`` -> ``kmalloc``.

    Compilers split and clone functions differently in each build; unfolded, a difference would show as gone and new.
    """
    folded = _SUFFIX.sub("", name)
    return folded or name


def _ranges(marks: dict[str, int], addresses: NDArray[np.uint64]) -> tuple[tuple[int, int], ...]:
    found = [(marks[low], marks[high]) for low, high in _BOUNDS if low in marks and marks.get(high, 0) > marks[low]]
    if found:
        return tuple(found)
    return ((int(addresses[0]), int(addresses[-1]) + 1),) if len(addresses) else ()


def _table(source: str, addresses: NDArray[np.uint64], names: list[str], marks: dict[str, int]) -> SymbolTable:
    """A table of symbols that are in address order, first choice first."""
    ranges = _ranges(marks, addresses)
    inside = np.zeros(addresses.shape, dtype=bool)
    for low, high in ranges:
        inside |= (addresses >= np.uint64(low)) & (addresses < np.uint64(high))
    inside[1:] &= addresses[1:] != addresses[:-1]
    kept = np.flatnonzero(inside)
    return SymbolTable(
        source=source,
        ranges=ranges,
        addresses_le=addresses[kept].astype("<u8").tobytes(),
        text="\n".join(names[i] for i in kept.tolist()),
    )


def _from_symtab(file: elf.Elf) -> SymbolTable | None:
    addresses, names, bindings, marks = elf.functions(file)
    if not names:
        return None

    def rank(i: int) -> tuple[int, bool, bool, int, str]:
        """The order of aliases in scripts/kallsyms.c: weak ones and the linker script's last, few underscores first."""
        name = names[i]
        linker = name in elf.BOUNDS or (name.startswith("__") and name.endswith(("_start", "_end")))
        return int(addresses[i]), bool(bindings[i] == 2), linker, len(name) - len(name.lstrip("_")), name

    order = [i for i in sorted(range(len(names)), key=rank) if names[i] not in elf.BOUNDS]
    return _table("symtab", addresses[order], [names[i] for i in order], marks)


def _from_all(source: str, symbols: kallsyms.Symbols) -> SymbolTable:
    marks = dict.fromkeys(elf.BOUNDS, 0)
    for i, name in enumerate(symbols.names):
        if name in marks:
            marks[name] = int(symbols.addresses[i])
    marks = {name: value for name, value in marks.items() if value}
    kept = [i for i, kind in enumerate(symbols.types) if kind in _FUNCTION_TYPES and symbols.names[i] not in marks]
    return _table(source, symbols.addresses[kept], [symbols.names[i] for i in kept], marks)


def from_image(data: bytes) -> SymbolTable | NoSymbols:
    """The table of an uncompressed kernel: vmlinux, or an arm64 Image."""
    try:
        if data[:4] == elf.MAGIC and (table := _from_symtab(elf.parse(data))) is not None:
            return table
        return _from_all("kallsyms", kallsyms.parse(kallsyms.open_image(data)))
    except (elf.ElfError, kallsyms.KallsymsError) as error:
        return NoSymbols(str(error))


def from_text(lines: Iterable[str]) -> SymbolTable | NoSymbols:
    """The table of a guest's /proc/kallsyms; module symbols and lines that do not fit are left out."""
    rows = [(int(m[1], 16), m[2], m[3]) for line in lines if (m := _LINE.match(line.rstrip("\r\n")))]
    if not any(address for address, _, _ in rows):
        return NoSymbols("the kernel hides its addresses (kptr_restrict), or printed none")
    addresses = np.array([row[0] for row in rows], dtype=np.uint64)
    order = np.argsort(addresses, kind="stable")
    ordered = [rows[i] for i in order.tolist()]
    return _from_all(
        "guest", kallsyms.Symbols(addresses[order], "".join(r[1] for r in ordered), [r[2] for r in ordered])
    )


def _cached(path: Path) -> SymbolTable | None:
    try:
        table = msgspec.msgpack.decode(path.read_bytes(), type=SymbolTable)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
    return table if table.format == FORMAT and table.text.count("\n") + 1 == len(table) else None


def image_path(kernel: Kernel) -> Path | None:
    """The file that holds the kernel's code uncompressed, None where it is not readable here."""
    path = Path(kernel.vmlinux_path or kernel.image_path)
    return path if kernel.image_path and path.is_file() else None


def cached_path(kernel: Kernel, image: Path, kind: str = "") -> Path:
    """Where in the cache that belongs which was read from ``image``: by build id, and ``kind`` of knowledge."""
    key = kernel.build_id or kernel.image_sha256 or hashlib.sha256(image.read_bytes()).hexdigest()
    return cache_dir() / "symbols" / f"{key}{kind}.msgpack"


def symbols_of(kernel: Kernel) -> SymbolTable | None:
    """``load`` for callers to whom the reason does not matter: None without symbols."""
    table = load(kernel)
    return table if isinstance(table, SymbolTable) else None


def load(kernel: Kernel) -> SymbolTable | NoSymbols:
    """The symbol table of a kernel, from the cache where it is there.

    Raises:
        HostError: the cache cannot be written.
    """
    path = image_path(kernel)
    if path is None:
        return NoSymbols(f"no image of {kernel.label} is readable here")
    stored = cached_path(kernel, path)
    if (table := _cached(stored)) is not None:
        return table
    made = from_image(path.read_bytes())
    if isinstance(made, SymbolTable):
        cache.write_atomically(stored, msgspec.msgpack.encode(made))
    return made
