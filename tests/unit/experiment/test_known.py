# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known of a kernel is read from its image once, and is nothing where its code does not prove its names."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kdelta.attribution.exact import Names
from kdelta.experiment import known
from kdelta.kernel import naming
from kdelta.kernel.symbols import NoSymbols, SymbolTable
from kdelta.model import Annotations, Kernel, Looked
from unit.kernel import synthetic
from unit.store.store_builders import experiment


def kernel(image: Path, digest: str) -> Kernel:
    return Kernel(label=digest, spec="m", release="6.12", image_path=str(image), image_sha256=digest)


def test_the_parts_of_what_a_patch_changed_are_watched() -> None:
    looked = Looked(functions=9, differ=4, candidates=5, measured=("f", "ops (data)"), untouched=("g",))
    assert known.watched(experiment(annotations=Annotations(looked=looked))) == {"f", "g"}
    assert known.watched(experiment()) == frozenset()
    table = SymbolTable(
        source="symtab", ranges=(), addresses_le=struct.pack("<4Q", 16, 32, 64, 80), text="a\nf\nf.cold.3\ng"
    )
    parts = (("f", 32, 64), ("f.cold.3", 64, 80), ("g", 80, 81))
    assert tuple(known.parts(table, {"f", "g"})) == parts and not tuple(known.parts(table, ()))


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
