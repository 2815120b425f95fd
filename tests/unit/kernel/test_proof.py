# SPDX-License-Identifier: GPL-2.0-or-later
"""No name without proof: tables that were damaged or read wrongly give a reason, and never a wrong name."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.kernel import symbols
from unit.kernel import synthetic

ROWS = synthetic.symbols()
TRUE = {(address, name) for address, _, name in ROWS}


def honest(data: bytes) -> symbols.SymbolTable | symbols.NoSymbols:
    """The table of ``data``, after a look at whether each of its names is true."""
    found = symbols.from_image(data)
    if isinstance(found, symbols.SymbolTable):
        assert set(zip(found.addresses.tolist(), found.all_names, strict=True)) <= TRUE
    return found


def why(data: bytes) -> str:
    found = honest(data)
    assert isinstance(found, symbols.NoSymbols)
    return found.why


@pytest.mark.parametrize("layout", ["before", "percpu", "after", "place", "place+4"])
def test_a_true_table_is_proven_in_every_layout(layout: synthetic.Layout) -> None:
    found = honest(synthetic.vmlinux(layout))
    assert isinstance(found, symbols.SymbolTable) and len(found) == 601
    assert found.lookup(synthetic.TEXT + 16 * 5 + 3) == "function_number_5"


def renamed(rows: list[synthetic.Symbol], shift: int) -> list[synthetic.Symbol]:
    """The addresses of ``rows`` with the names of others of them; the bounds stay."""
    inner = [row for row in rows if row[2] not in ("_stext", "_etext", "startup_64", "some_data")]
    names = [inner[(i + shift) % len(inner)][2] for i in range(len(inner))]
    moved = iter([(row[0], row[1], name) for row, name in zip(inner, names, strict=True)])
    return [next(moved) if row in inner else row for row in rows]


def tables_of(rows: list[synthetic.Symbol], layout: synthetic.Layout = "after") -> bytes:
    """The true machine code with the tables of ``rows``."""
    data = synthetic.vmlinux(None)
    at = synthetic.TEXT + len(data) - 4096
    whole = bytearray(data + synthetic.tables(rows, layout, at))
    struct.pack_into("<QQ", whole, 64 + 32, len(whole) - 4096, len(whole) - 4096)
    return bytes(whole)


def test_the_helper_makes_what_a_linker_makes() -> None:
    assert isinstance(honest(tables_of(ROWS)), symbols.SymbolTable)


@pytest.mark.parametrize("shift", [-3, -2, -1, 1, 2, 3, 4])
def test_names_that_are_some_symbols_off_are_refused(shift: int) -> None:
    assert "do not match" in why(tables_of(renamed(ROWS, shift))) or "do not call" in why(
        tables_of(renamed(ROWS, shift))
    )


def test_addresses_that_are_one_symbol_off_are_refused_at_the_entry_point() -> None:
    addresses = [row[0] for row in ROWS]
    shifted = [(to, row[1], row[2]) for to, row in zip([*addresses[1:], addresses[-1] + 64], ROWS, strict=True)]
    assert "not those of its machine code" in why(tables_of(shifted))


def test_a_second_half_that_is_one_symbol_off_is_refused() -> None:
    rows = synthetic.symbols(8000)
    assert isinstance(symbols.from_image(synthetic.vmlinux("after", rows)), symbols.SymbolTable)
    half = len(rows) // 2
    names = [row[2] for row in rows]
    moved = [*names[:half], *names[half + 1 : -2], "intruder", *names[-2:]]
    table = [(row[0], row[1], name) for row, name in zip(rows, moved, strict=True)]
    data = synthetic.vmlinux(None, rows)
    whole = bytearray(data + synthetic.tables(table, "after", synthetic.TEXT + len(data) - 4096))
    struct.pack_into("<QQ", whole, 64 + 32, len(whole) - 4096, len(whole) - 4096)
    found = symbols.from_image(bytes(whole))
    assert isinstance(found, symbols.NoSymbols) and "do not match" in found.why


def test_a_truncated_table_is_refused() -> None:
    assert "_etext" in why(tables_of(ROWS[:300]))
    cut = [*ROWS[:300], (ROWS[299][0] + 16, "T", "_etext")]
    found = symbols.from_image(tables_of(cut))  # names of the first half, and none for the rest
    assert isinstance(found, symbols.NoSymbols) or found.lookup(synthetic.TEXT + 16 * 400) is None


@pytest.mark.parametrize("by", [1 << 12, -(1 << 12), 16, -16, 4, 1 << 40])
def test_a_wrong_relative_base_is_refused(by: int) -> None:
    data = bytearray(synthetic.vmlinux("after"))
    at = data.rindex(struct.pack("<Q", synthetic.TEXT))
    struct.pack_into("<Q", data, at, synthetic.TEXT + by & (1 << 64) - 1)
    assert why(bytes(data))


def corrupted(change: Callable[[bytearray, int], None]) -> bytes:
    """A kernel whose markers (0, and the offset of the 257th name) were changed."""
    data = bytearray(synthetic.vmlinux("after"))
    packed = synthetic.tables(ROWS, "after", 0)
    at = len(data) - len(packed)
    _, markers, _, _ = synthetic._names(ROWS)
    change(data, data.index(markers, at))
    return bytes(data)


def test_corrupt_markers_are_refused() -> None:
    assert "unknown layout" in why(corrupted(lambda data, at: data.__setitem__(at + 4, data[at + 4] ^ 1)))
    assert "unknown layout" in why(corrupted(lambda data, at: data.__setitem__(slice(at, at + 12), b"\xff" * 12)))
    assert "unknown layout" in why(corrupted(lambda data, at: data.__setitem__(slice(at, at + 12), b"\0" * 12)))


def test_an_entry_point_with_another_name_is_refused() -> None:
    rows = [(a, k, "kfree" if n == "startup_64" else n) for a, k, n in ROWS if n != "_stext"]
    assert "_stext" in why(tables_of(rows))
    data = bytearray(synthetic.vmlinux("after"))
    struct.pack_into("<Q", data, 24, 0x1000000 + 32)
    assert "entry point" in why(bytes(data)) and "function_number_2" in why(bytes(data))


def test_a_kernel_without_calls_proves_nothing() -> None:
    data = bytearray(synthetic.vmlinux("after"))
    data[4096 : 4096 + 16 * 601] = b"\x90" * 16 * 601
    assert "direct calls" in why(bytes(data))


def test_a_symbol_table_is_held_against_the_code_too() -> None:
    assert isinstance(honest(synthetic.with_symtab(ROWS)), symbols.SymbolTable)
    assert "symtab" in why(synthetic.with_symtab(renamed(ROWS, 1), true=ROWS))
    saved = honest(synthetic.with_symtab(renamed(ROWS, 1), "place+4", true=ROWS))  # by its kallsyms
    assert isinstance(saved, symbols.SymbolTable) and saved.source == "kallsyms"


def test_a_hostile_image_full_of_tables_ends_soon() -> None:
    digits = b"".join(b"%d\0" % i for i in range(10))
    data = synthetic.vmlinux(None)
    assert why(data + digits * 200_000)
    markers = struct.pack("<5I", 0, 3000, 6000, 9000, 12000)
    _, _, table, index = synthetic._names(ROWS)
    counts = struct.pack("<I", 1200) * 3000
    tail = (counts + markers) * 300 + synthetic._pad(table) + index
    assert why(synthetic._pad(data) + tail)


@settings(max_examples=150)
@given(st.data())
def test_damaged_bytes_in_the_tables_never_make_a_wrong_name(data: st.DataObject) -> None:
    image = bytearray(synthetic.vmlinux("place+4"))
    start = len(image) - len(synthetic.tables(ROWS, "place+4", synthetic.TEXT))
    names, _, table, _ = synthetic._names(ROWS)
    del names
    letters = image.index(table[:40], start)  # a changed letter is a changed name: nothing in the code tells of it
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(letters + len(table), len(image) - 1))
        image[at] = data.draw(st.integers(0, 255))
    found = symbols.from_image(bytes(image))
    if isinstance(found, symbols.SymbolTable):
        wrong = set(zip(found.addresses.tolist(), found.all_names, strict=True)) - TRUE
        assert len(wrong) <= 4, wrong  # one entry each: the address of a function is stored once


@settings(max_examples=50)
@given(st.binary(min_size=0, max_size=400), st.integers(0, 10_000))
def test_any_tail_is_a_reason_and_no_error(tail: bytes, cut: int) -> None:
    data = synthetic.vmlinux("after")
    symbols.from_image(data[: len(data) - cut] + tail)


def test_random_words_are_no_kernel() -> None:
    assert isinstance(symbols.from_image(np.random.default_rng(5).bytes(5000)), symbols.NoSymbols)
