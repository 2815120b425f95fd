# SPDX-License-Identifier: GPL-2.0-or-later
"""Needs Debian's archive, or the kernel in the user's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.kernel import cache, symbols
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel


@pytest.mark.boot
@pytest.mark.parametrize("text", ["debian:6.12/cloud", "debian:7.3/cloud", "debian:6.12/cloud,arch=arm64"])
def test_a_real_kernel_is_fetched_verified_and_has_its_symbols(text: str) -> None:
    kernel = resolve(parse_kernel(text))
    assert cache.digest(Path(kernel.image_path)) == kernel.image_sha256
    assert kernel.config["MEMCG"] == "y"
    table = symbols.load(kernel)
    assert isinstance(table, symbols.SymbolTable)
    names = {symbols.fold(name) for name in table.all_names}
    assert {"do_sys_openat2", "pipe_write", "copy_process", "link_path_walk"} <= names | {
        name.removeprefix("anon_") for name in names
    }
    assert len(table) > 30_000
