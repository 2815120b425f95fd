# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine code of a resolved kernel, by whatever names there are, and that of two kernels compared."""

from __future__ import annotations

from pathlib import Path

from kdelta.attribution import code, stripped
from kdelta.attribution.code import CodeDiff
from kdelta.attribution.disassembly import Image
from kdelta.errors import UserError
from kdelta.kernel import symbols
from kdelta.model import Kernel


def image_of(kernel: Kernel) -> Image:
    """The functions of a kernel: by its symbol table, else by its kallsyms.

    Raises:
        UserError: neither is there, or no ELF image.
    """
    if kernel.vmlinux_path is None:
        raise UserError(f"{kernel.label}: machine code needs the uncompressed image, and none could be unpacked")
    data = Path(kernel.vmlinux_path).read_bytes()
    table = symbols.load(kernel)
    if isinstance(table, symbols.SymbolTable) and table.source != "symtab":
        return stripped.NamedImage(data, table, kernel.label)
    return Image(data, kernel.label)


def compare(before: Image, after: Image) -> tuple[CodeDiff, bool]:
    """The difference, and whether every instruction was compared (else: sizes only)."""
    if any(isinstance(image, stripped.NamedImage) for image in (before, after)):
        return stripped.size_diff(before, after), False
    return code.compare(before, after), True
