# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine code of a resolved kernel, by whatever names there are, and that of two kernels compared."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from kdelta.attribution import code, stripped
from kdelta.attribution.code import CodeDiff
from kdelta.attribution.disassembly import Image
from kdelta.errors import UserError
from kdelta.kernel import naming, symbols
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Kernel
from kdelta.spec.kernels import BUILT_KINDS


@lru_cache(maxsize=3)
def _read(path: str, _sha256: str, table: symbols.SymbolTable | None, label: str) -> Image:
    """An image, kept for the next who asks: reading its symbols takes a second."""
    data = Path(path).read_bytes()
    return Image(data, label) if table is None else stripped.NamedImage(data, table, label)


def image_of(kernel: Kernel) -> Image:
    """The functions of a kernel: by its symbol table, else by what stands in for one.

    The table that our own linker made is believed; that of a file from elsewhere must be proven by the code first.

    Raises:
        UserError: it has no names that its code proves, or no ELF image.
    """
    if kernel.vmlinux_path is None:
        raise UserError(f"{kernel.label}: machine code needs the uncompressed image, and none could be unpacked")
    if parse_kernel(kernel.spec.partition("#")[0]).kind in BUILT_KINDS:
        try:
            return _read(kernel.vmlinux_path, kernel.vmlinux_sha256, None, kernel.label)
        except UserError:  # stripped, by its config
            pass
    table = naming.load(kernel)
    if isinstance(table, symbols.NoSymbols):
        raise UserError(f"{kernel.label}: machine code needs the names of its functions: {table.why}")
    named = None if table.source == "symtab" else table
    return _read(kernel.vmlinux_path, kernel.vmlinux_sha256, named, kernel.label)


def alike(before: Image, after: Image) -> tuple[Image, Image]:
    """Both by names of one kind: where one has its kallsyms alone (a distribution's, stripped), both by theirs.

    A symbol table has the sizes of functions, kallsyms have where the next symbol begins: nearly all would differ.
    """
    if isinstance(before, stripped.NamedImage) == isinstance(after, stripped.NamedImage):
        return before, after
    return _by_kallsyms(before), _by_kallsyms(after)


@lru_cache(maxsize=3)
def _by_kallsyms(image: Image) -> Image:
    return stripped.NamedImage.of(image)


@lru_cache(maxsize=8)
def compare(before: Image, after: Image) -> tuple[CodeDiff, bool]:
    """The difference, and whether every instruction was compared (else: sizes only)."""
    before, after = alike(before, after)
    if any(isinstance(image, stripped.NamedImage) for image in (before, after)):
        return stripped.size_diff(before, after), False
    return code.compare(before, after), True
