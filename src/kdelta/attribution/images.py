# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine code of a resolved kernel, by whatever names there are, and that of two kernels compared."""

from __future__ import annotations

from pathlib import Path

from kdelta.attribution import code, stripped
from kdelta.attribution.code import CodeDiff
from kdelta.attribution.disassembly import Image
from kdelta.errors import UserError
from kdelta.kernel import naming, symbols
from kdelta.model import Kernel


def image_of(kernel: Kernel) -> Image:
    """The functions of a kernel: by its symbol table, else by what stands in for one.

    Raises:
        UserError: it has no names that its code proves, or no ELF image.
    """
    if kernel.vmlinux_path is None:
        raise UserError(f"{kernel.label}: machine code needs the uncompressed image, and none could be unpacked")
    data = Path(kernel.vmlinux_path).read_bytes()
    table = naming.load(kernel)
    if isinstance(table, symbols.NoSymbols):
        raise UserError(f"{kernel.label}: machine code needs the names of its functions: {table.why}")
    return Image(data, kernel.label) if table.source == "symtab" else stripped.NamedImage(data, table, kernel.label)


def compare(before: Image, after: Image) -> tuple[CodeDiff, bool]:
    """The difference, and whether every instruction was compared (else: sizes only)."""
    if any(isinstance(image, stripped.NamedImage) for image in (before, after)):
        return stripped.size_diff(before, after), False
    return code.compare(before, after), True
