# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import synthetic

from kdelta.kernel import symbols
from kdelta.model import Kernel


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


def test_a_guests_kallsyms_text_gives_the_same_table() -> None:
    lines = [f"{address:016x} {kind} {name}\n" for address, kind, name in synthetic.symbols()]
    lines += ["ffffffffc0000000 t module_function\t[module]\n", "noise\n"]
    table = symbols.from_text(lines)
    assert isinstance(table, symbols.SymbolTable)
    assert (table.addresses_le, table.text, table.ranges) == (_table().addresses_le, _table().text, _table().ranges)


def test_hidden_addresses_are_a_reason_not_a_table() -> None:
    table = symbols.from_text(["0000000000000000 T _stext\n", "0000000000000000 T do_fork\n"])
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
    assert symbols.fold(name) == folded


def test_a_table_is_cached_by_build_id_and_a_damaged_cache_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    image = tmp_path / "vmlinux"
    image.write_bytes(synthetic.vmlinux())
    kernel = Kernel(label="a", spec="a", release="6.12", image_path=str(image), image_sha256="0" * 64, build_id="abcd")
    first = symbols.load(kernel)
    stored = tmp_path / "cache" / "symbols" / "abcd.msgpack"
    image.write_bytes(b"gone")
    assert symbols.load(kernel) == first
    stored.write_bytes(stored.read_bytes()[:100])
    assert isinstance(symbols.load(kernel), symbols.NoSymbols)
    assert symbols.symbols_of(kernel) is None


def test_without_an_image_the_reason_names_the_kernel() -> None:
    kernel = Kernel(label="mine", spec="running", release="6.12", image_path="", image_sha256="")
    table = symbols.load(kernel)
    assert isinstance(table, symbols.NoSymbols)
    assert "mine" in table.why


def test_a_symbol_table_of_the_build_wins_over_kallsyms() -> None:
    rows = [(synthetic.TEXT + 16 * i, name) for i, name in enumerate(["first", "__lock_text_start", "second"])]
    rows += [(synthetic.TEXT + 16, "between"), (synthetic.TEXT, "_stext"), (synthetic.TEXT + 48, "_etext")]
    table = symbols.from_image(synthetic.with_symtab(rows))
    assert isinstance(table, symbols.SymbolTable)
    assert (table.source, table.all_names) == ("symtab", ("first", "between", "second"))
    assert table.ranges == ((synthetic.TEXT, synthetic.TEXT + 48),)
