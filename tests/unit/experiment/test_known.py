# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known of a kernel is read from its image once, and is nothing where its code does not prove its names."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from kdelta.attribution import images
from kdelta.attribution.exact import Names
from kdelta.experiment import known
from kdelta.kernel import described, naming, products, types
from kdelta.kernel.symbols import NoSymbols, SymbolTable
from kdelta.model import Annotations, Kernel, Looked
from unit.attribution.test_code import Maker
from unit.kernel import synthetic
from unit.store.store_builders import experiment


def kernel(image: Path, digest: str) -> Kernel:
    return Kernel(label=digest, spec="m", release="6.12", image_path=str(image), image_sha256=digest)


def test_the_parts_of_what_a_patch_changed_are_watched() -> None:
    looked = Looked(functions=9, differ=4, candidates=5, measured=("f", "ops (data)", "n (new)"), untouched=("g",))
    assert known.watched(experiment(annotations=Annotations(looked=looked))) == {"f", "g", "n"}
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


def test_that_fields_have_no_names_is_said_with_what_mends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that an older kdelta built took the names of fields from a whole experiment, without a word."""
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(types, "described", lambda kernel: kernel.label == "new")
    home = products.folder("one")
    home.mkdir(parents=True)
    (home / "build.log").write_text("CC init/main.o\n")
    built = products.Built(image_sha256="old" * 5, origin="src:x", log=str(home / "build.log"))
    (home / "built.json").write_bytes(msgspec.json.encode(built))
    new, old, package = (kernel(tmp_path, name) for name in ("new", "old", "deb"))
    old = replace(old, image_sha256="old" * 5)
    assert known.untyped([new]) == ""
    assert known.untyped([new, old]) == (
        "fields of what moves between CPUs have no names, as old does not say what types it has "
        "(an older kdelta built it: kdelta kernels prune --only oldoldoldold, then the same again)"
    )
    assert known.untyped([package, old]).startswith(
        "fields of what moves between CPUs have no names, as deb, old do not"
    )
    (home / "build.log").write_text(f"gcc -gbtf {described.SOURCE}: error: not known\n")  # a compiler that cannot
    assert known.untyped([new, old]).endswith("as old does not say what types it has")


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
