# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known of a kernel is read from its image once, and is nothing where its code does not prove its names."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.attribution import images
from kdelta.attribution.exact import Names
from kdelta.experiment import known
from kdelta.kernel import naming
from kdelta.kernel.symbols import NoSymbols, SymbolTable
from kdelta.model import Annotations, Kernel, Looked
from unit.attribution.test_code import Maker
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


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_a_function_of_assembly_is_watched_beyond_the_labels_in_it(tmp_path: Path) -> None:
    """A cld behind entry_SYSCALL_64_after_hwframe ran in each call, and "none of its changed instructions ran"."""
    lines = "entry: nop", "nop", "inner: .globl inner", "cld", "ret", ".size entry, . - entry", ".type entry, @function"
    code = "\\n".join(lines)
    (tmp_path / "vmlinux").write_bytes(
        Maker(tmp_path, "x86_64")(f'asm("{code}"); int main_loop(int a) {{ return a; }}')
    )
    one = replace(kernel(tmp_path / "vmlinux", "a"), spec="src:x", vmlinux_path=str(tmp_path / "vmlinux"))
    start = images.image_of(one).functions["entry"].address
    table = SymbolTable(
        source="kallsyms", ranges=(), addresses_le=struct.pack("<2Q", start, start + 2), text="entry\ninner"
    )
    assert known.watch(one, table, {"entry"}) == (("entry", start, start + 4),)
    assert known.watch(one, table, ()) == ()
    assert known.watch(kernel(tmp_path / "none", "b"), table, {"entry"}) == (("entry", start, start + 2),)


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
