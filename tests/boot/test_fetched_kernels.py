# SPDX-License-Identifier: GPL-2.0-or-later
"""Needs Debian's archive, or the kernel in the user's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta import digests
from kdelta.kernel import cache, naming, symbols
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.spelling import fold
from unit.kernel import rpms


@pytest.mark.boot
@pytest.mark.parametrize("text", ["debian:6.12/cloud", "debian:7.3/cloud", "debian:6.12/cloud,arch=arm64"])
def test_a_real_kernel_is_fetched_verified_and_has_its_symbols(text: str) -> None:
    kernel = resolve(parse_kernel(text))
    assert digests.of_file(Path(kernel.image_path)) == kernel.image_sha256
    assert kernel.config["MEMCG"] == "y"
    table = naming.load(kernel)
    assert isinstance(table, symbols.SymbolTable)
    names = {fold(name) for name in table.all_names}
    assert {"do_sys_openat2", "pipe_write", "copy_process", "link_path_walk"} <= names | {
        name.removeprefix("anon_") for name in names
    }
    assert len(table) > 30_000


@pytest.mark.skipif(not rpms.works(), reason="rpm and rpmbuild are not installed")
def test_a_real_kernel_in_an_rpm_is_the_same_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = resolve(parse_kernel("debian:6.12/cloud"))
    stored = cache.get(known.image_sha256)
    assert stored is not None
    folder = f"lib/modules/{known.release}"
    files = {
        f"{folder}/vmlinuz": Path(known.image_path).read_bytes(),
        f"{folder}/config": (stored.folder / "config").read_bytes(),
        f"{folder}/kernel/fs/fuse.ko.xz": bytes(1000),
    }
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    kernel = resolve(parse_kernel(f"rpm:{rpms.package(tmp_path, files)}"))
    assert (kernel.image_sha256, kernel.release) == (known.image_sha256, known.release)
    assert known.config.items() <= kernel.config.items()  # an older kdelta may have fetched it, and looked for less
    table = naming.load(kernel)
    assert isinstance(table, symbols.SymbolTable) and len(table) > 30_000
