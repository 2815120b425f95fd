# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a kernel takes and releases mutexes, as the counting plugin needs it."""

from __future__ import annotations

from pathlib import Path

from kdelta.attribution import holds
from kdelta.errors import UserError
from kdelta.kernel import naming, symbols
from kdelta.model import Kernel


def of_kernel(kernel: Kernel) -> holds.Sites | str:
    """Where ``kernel`` takes and releases mutexes, or why that is not known."""
    table = naming.load(kernel)
    if isinstance(table, symbols.NoSymbols):
        return f"no function names: {table.why}"
    try:
        return holds.find(Path(kernel.vmlinux_path or kernel.image_path).read_bytes(), table, kernel.label)
    except UserError as error:
        return str(error)
