# SPDX-License-Identifier: GPL-2.0-or-later
"""Static branches: where code asks for a static key without having its address. Pure over bytes.

The instruction is a NOP or a jump, and the kernel patches it by what the key holds. ``__jump_table`` says which key:
include/linux/jump_label.h (struct jump_entry, of CONFIG_HAVE_ARCH_JUMP_LABEL_RELATIVE: x86-64 and arm64).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kdelta.attribution.disassembly import Image

_ENTRY = np.dtype([("code", "<i4"), ("target", "<i4"), ("key", "<i8")])  # each relative to its own place
_FLAGS = 3  # in the key's lowest bits: which way the branch goes


def sites(image: Image) -> Iterator[tuple[int, int]]:
    """(address of the instruction, address of the key) of each static branch."""
    addresses, names, _ = image.symbols()
    bounds = {name: at for at, name in zip(addresses, names, strict=True) if name.endswith("___jump_table")}
    start, stop = bounds.get("__start___jump_table", 0), bounds.get("__stop___jump_table", 0)
    content = image.content(start, stop - start) if start < stop else b""
    for index, entry in enumerate(np.frombuffer(content, _ENTRY, len(content) // _ENTRY.itemsize).tolist()):
        at = start + index * _ENTRY.itemsize
        yield at + entry[0], at + 8 + entry[2] & ~_FLAGS
