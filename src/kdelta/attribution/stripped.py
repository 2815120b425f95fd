# SPDX-License-Identifier: GPL-2.0-or-later
"""Machine code of kernels without a symbol table (a distribution's), by the names of their kallsyms. Pure over bytes.

A function reaches to the next symbol: its size has the padding behind it, less the traps that fill it. Kernels of two
releases differ in nearly every function, so of these only sizes are compared as a whole; one function can be read.
"""

from __future__ import annotations

from kdelta.attribution.code import CodeDiff, FunctionCode, names_of_both, size_of
from kdelta.attribution.disassembly import Function, Image
from kdelta.errors import UserError
from kdelta.kernel import symbols
from kdelta.kernel.symbols import SymbolTable

IDENTICAL = "the machine code is identical"
_PADDING = b"\xcc\x90"  # int3 and nop, of x86
_PREFIX = "__pfx_"  # padding before a function: bounds the one before it


class NamedImage(Image):
    """An image whose functions come from a symbol table beside it."""

    def __init__(self, data: bytes, table: SymbolTable, name: str = "kernel") -> None:
        """Parse ``data``, the bytes of a vmlinux with its sections.

        Raises:
            UserError: no ELF file, or for another architecture.
        """
        self._table = table
        super().__init__(data, name)

    @classmethod
    def of(cls, image: Image) -> Image:
        """``image`` by its own kallsyms, where it has any; of what has a symbol table that is passed over."""
        if isinstance(image, cls):
            return image
        data = image._file.data
        table = symbols.from_image(data, kallsyms_alone=True)
        return image if isinstance(table, symbols.NoSymbols) else cls(data, table)

    def _read_symbols(self, name: str) -> None:
        self._addresses, self._symbols, self.functions = [], [], {}
        starts = [int(address) for address in self._table.addresses]
        ends = [*starts[1:], self._table.ranges[-1][1] if self._table.ranges else 0]
        for label, start, end in zip(self._table.all_names, starts, ends, strict=True):
            if label.startswith(_PREFIX):
                continue
            section = next((s for s in self._loaded if s.address <= start < s.address + s.size and s.kind != 8), None)
            end = min(end, section.address + section.size if section else start)  # behind the last one is data
            self._addresses.append(start)
            self._symbols.append((label, max(0, end - start)))
            if section is None or end <= start:
                continue
            at = section.offset + start - section.address
            code = _unpadded(self._file.data[at : at + end - start])
            if not code:  # the linker script's label at the end of a section: 1.7 MB of Debian's 6.1 are behind one
                continue
            key, count = label, 1
            while key in self.functions:
                count += 1
                key = f"{label}#{count}"
            self.functions[key] = Function(name=key, address=start, code=code, section=section.name)
        if not self.functions:
            raise UserError(f"{name}: no function of its kallsyms lies in its image")


def _unpadded(code: bytes) -> bytes:
    """Without the traps behind the last instruction."""
    return code.rstrip(_PADDING)


def size_diff(before: Image, after: Image) -> CodeDiff:
    """Functions whose sizes differ, the largest change first; what changed at the same size is not seen.

    Raises:
        UserError: images of two architectures.
    """
    if before.arch != after.arch:
        raise UserError(f"machine code of {before.arch} and {after.arch} cannot be compared")
    found = []
    for name in names_of_both(before, after):
        old, new = size_of(before.sources.get(name, ())), size_of(after.sources.get(name, ()))
        if old != new:
            note = "gone" if new is None else "new" if old is None else ""
            found.append(FunctionCode(name=name, size_before=old, size_after=new, note=note))
    return CodeDiff(
        functions=tuple(sorted(found, key=lambda one: (-abs(one.delta), one.name))),
        total_before=sum(function.size for function in before.functions.values()),
        total_after=sum(function.size for function in after.functions.values()),
    )


def sentence(diff: CodeDiff, limit: int = 4) -> str:
    """One line on a difference: how many functions, by how much, and string instructions that came in."""
    if diff.identical:
        return IDENTICAL
    if not diff.functions:
        return f"{IDENTICAL} but for instructions that are patched in at boot"
    total = diff.total_after - diff.total_before
    shown = ", ".join(f"{one.name} {one.delta:+d}" for one in diff.functions[:limit])
    more = f" and {len(diff.functions) - limit} more" if len(diff.functions) > limit else ""
    text = f"machine code of {_counted(diff)} differs, {total:+d} byte{'' if abs(total) == 1 else 's'}"
    text += f": {shown}{more}" if shown else ""
    introduced = [f"{one.note.split(' introduced')[0]} in {one.name}" for one in diff.functions if _has_rep(one)]
    if introduced:
        text += f"; introduced: {', '.join(introduced[:limit])}"
    return text


def _counted(diff: CodeDiff) -> str:
    count = len(diff.functions)
    return f"{count} function" + ("s" if count != 1 else "")


def _has_rep(one: FunctionCode) -> bool:
    return one.note.endswith(" introduced")
