# SPDX-License-Identifier: GPL-2.0-or-later
"""ELF files as strangers may write them."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from kdelta.attribution.disassembly import Image
from kdelta.errors import UserError
from kdelta.kernel import elf
from unit.kernel import synthetic


def _with_sizes(size: int) -> bytes:
    """A kernel whose symbols all claim ``size`` bytes."""
    data = bytearray(synthetic.with_symtab(synthetic.symbols(40)))
    table = next(section for section in elf.parse(bytes(data)).sections if section.kind == 2)
    for at in range(table.offset, table.offset + table.size, 24):
        struct.pack_into("<Q", data, at + 16, size)
    return bytes(data)


def test_a_name_that_does_not_end_is_cut_off() -> None:
    assert elf.name_at(b"\0first\0" + b"x" * 100_000, 1) == "first"
    assert elf.name_at(b"\0first\0" + b"x" * 100_000, 7) == "x" * 512


def test_symbols_that_cover_the_file_many_times_over_are_refused() -> None:
    assert Image(_with_sizes(16)).functions
    with pytest.raises(UserError, match="more than 8 times over"):
        Image(_with_sizes(1 << 20))
    with pytest.raises(UserError, match="more than 8 times over"):
        Image(_with_sizes(int(np.iinfo(np.uint64).max)))
