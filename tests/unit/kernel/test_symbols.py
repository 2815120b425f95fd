# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kdelta.kernel import naming, symbols
from kdelta.kernel.spelling import fold
from kdelta.model import Kernel
from unit.kernel import synthetic


def _table() -> symbols.SymbolTable:
    table = symbols.from_image(synthetic.vmlinux("after"))
    assert isinstance(table, symbols.SymbolTable)
    return table


def test_an_address_inside_a_function_gets_its_name() -> None:
    table = _table()
    assert table.lookup(synthetic.TEXT + 16 * 7) == "function_number_7"
    assert table.lookup(synthetic.TEXT + 16 * 7 + 15) == "function_number_7"


def test_addresses_outside_of_code_have_no_name() -> None:
    table = _table()
    end = table.ranges[0][1]
    assert table.lookup(synthetic.TEXT - 1) is None
    assert table.lookup(end) is None
    assert table.lookup(end - 1) is not None
    assert table.lookup(0) is None


def test_many_addresses_are_named_as_one_by_one() -> None:
    table = _table()
    wanted = np.random.default_rng(3).integers(synthetic.TEXT - 64, synthetic.TEXT + 10_000, 500, dtype=np.uint64)
    assert table.names(wanted) == [table.lookup(int(address)) for address in wanted]


def test_data_and_bounds_are_no_functions_and_aliases_appear_once() -> None:
    table = _table()
    assert not {"_stext", "_etext", "some_data"} & set(table.all_names)
    assert len(set(table.addresses.tolist())) == len(table) == len(table.all_names)


def test_a_function_is_found_by_its_other_names() -> None:
    rows = synthetic.symbols()
    rows.insert(41, (rows[40][0], "T", f"_{rows[40][2]}_alias"))
    image = synthetic.with_symtab(rows, "after")
    table = symbols.from_image(image)
    assert isinstance(table, symbols.SymbolTable) and rows[41][2] not in table.all_names
    assert symbols.by_other_names(image, table, [rows[41][2], "nothing"]) == {rows[41][2]: rows[40][2]}
    assert symbols.by_other_names(b"no image", table, ["nothing"]) == {}


def test_a_guests_kallsyms_text_gives_the_same_table() -> None:
    lines = [f"{address:016x} {kind} {name}\n" for address, kind, name in synthetic.symbols()]
    lines += ["ffffffffc0000000 t module_function\t[module]\n", "noise\n"]
    table = symbols.from_text(lines, "guest", synthetic.vmlinux(None))
    assert isinstance(table, symbols.SymbolTable)
    assert (table.addresses_le, table.text, table.ranges) == (_table().addresses_le, _table().text, _table().ranges)


def test_hidden_addresses_are_a_reason_not_a_table() -> None:
    table = symbols.from_text(["0000000000000000 T _stext\n", "0000000000000000 T do_fork\n"], "guest", b"")
    assert isinstance(table, symbols.NoSymbols)
    assert "kptr_restrict" in table.why


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("__slab_free.isra.0", "__slab_free"),
        ("do_sys_poll.part.0.constprop.3", "do_sys_poll"),
        ("copy_process.cold", "copy_process"),
        ("kmem_cache_alloc_noprof", "kmem_cache_alloc"),
        ("foo_noprof.isra.0.cold", "foo"),
        ("step_into", "step_into"),
        ("partial.helper", "partial.helper"),
        (".L", ".L"),
        ("_noprof", "_noprof"),
        ("asm_exc_page_fault", "asm_exc_page_fault"),
    ],
)
def test_compiler_made_names_fold_to_the_source_name(name: str, folded: str) -> None:
    assert fold(name) == folded


def _kernel(image: Path, label: str = "a") -> Kernel:
    return Kernel(
        label=label, spec="a", release="6.12", image_path=str(image), image_sha256="0" * 64, vmlinux_path=str(image)
    )


def test_a_table_is_cached_by_the_images_content_and_a_damaged_cache_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    image = tmp_path / "vmlinux"
    image.write_bytes(synthetic.vmlinux())
    first = naming.load(_kernel(image))
    (stored,) = (tmp_path / "cache" / "symbols").iterdir()
    monkeypatch.setattr(symbols, "from_image", lambda data: symbols.NoSymbols("made anew"))
    assert naming.load(_kernel(image)) == first
    damaged = bytearray(stored.read_bytes())
    damaged[-20] ^= 1  # a letter of a name
    stored.write_bytes(damaged)
    assert naming.load(_kernel(image)) == symbols.NoSymbols("made anew")


def test_an_image_replaced_behind_its_name_does_not_keep_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    image = tmp_path / "vmlinux"
    image.write_bytes(synthetic.vmlinux())
    assert isinstance(naming.load(_kernel(image)), symbols.SymbolTable)
    image.write_bytes(synthetic.vmlinux(None))
    assert isinstance(naming.load(_kernel(image)), symbols.NoSymbols)


def test_names_come_from_the_system_map_beside_the_image_else_from_a_guest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    image = tmp_path / "vmlinux"
    image.write_bytes(synthetic.vmlinux(None))
    assert isinstance(naming.load(_kernel(image)), symbols.NoSymbols)
    text = "".join(f"{address:016x} {kind} {name}\n" for address, kind, name in synthetic.symbols()).encode()
    (tmp_path / "System.map").write_bytes(text.replace(b"number_21\n", b"number_2x\n"))
    beside = naming.load(_kernel(image))
    assert isinstance(beside, symbols.SymbolTable) and beside.source == "System.map"
    assert "function_number_2x" in beside.all_names
    (tmp_path / "System.map").write_text("ffffffffffffffff B The real System.map is in another package\n")
    naming.keep_guest_text(_kernel(image), text)
    asked = naming.load(_kernel(image))
    assert isinstance(asked, symbols.SymbolTable) and asked.source == "guest"
    assert asked.all_names == _table().all_names


def test_without_an_image_the_reason_names_the_kernel() -> None:
    kernel = Kernel(label="mine", spec="running", release="6.12", image_path="", image_sha256="")
    table = naming.load(kernel)
    assert isinstance(table, symbols.NoSymbols)
    assert "mine" in table.why


def test_a_symbol_table_of_the_build_wins_over_kallsyms() -> None:
    rows = synthetic.symbols()
    rows.insert(40, (rows[40][0], "T", "__lock_text_start"))
    table = symbols.from_image(synthetic.with_symtab(rows, "after"))
    assert isinstance(table, symbols.SymbolTable)
    assert table.source == "symtab"
    assert "__lock_text_start" not in table.all_names and rows[41][2] in table.all_names
    assert (table.all_names, table.ranges) == (_table().all_names, _table().ranges)
