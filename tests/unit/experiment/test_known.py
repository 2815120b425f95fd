# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known of a kernel is read from its image once, and is nothing where its code does not prove its names."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.attribution.exact import Names
from kdelta.experiment import known
from kdelta.kernel import naming
from kdelta.kernel.symbols import NoSymbols, SymbolTable
from kdelta.model import Kernel
from unit.kernel import synthetic


def kernel(image: Path, digest: str) -> Kernel:
    return Kernel(label=digest, spec="m", release="6.12", image_path=str(image), image_sha256=digest)


def test_an_image_is_read_once_whatever_its_kernels_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    read: list[str] = []
    tell = naming.load

    def load(one: Kernel) -> SymbolTable | NoSymbols:
        read.append(one.label)
        return tell(one)

    monkeypatch.setattr(naming, "load", load)
    image = tmp_path / "vmlinux"
    image.write_bytes(synthetic.vmlinux(None))
    names = known.known()
    first = names(kernel(image, "one"))
    assert first == Names(), "it has no kallsyms"
    assert names(kernel(image, "one")) is first
    names(kernel(image, "two"))
    assert read == ["one", "two"]
