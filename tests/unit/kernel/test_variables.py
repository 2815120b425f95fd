# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of a kernel's data, from images whose kallsyms agree with the proven functions."""

from __future__ import annotations

import numpy as np
import pytest

from kdelta.kernel import kallsyms, symbols, variables
from unit.kernel import synthetic


@pytest.mark.parametrize("layout", ["before", "after", "place"])
def test_data_of_the_image_is_named_with_its_offset(layout: synthetic.Layout) -> None:
    image = synthetic.vmlinux(layout)
    functions = symbols.from_image(image)
    assert isinstance(functions, symbols.SymbolTable)
    found = variables.from_image(image, functions)
    assert found is not None
    address = next(a for a, _, name in synthetic.symbols() if name == "some_data")
    assert found.name(address + 8, []) == ("some_data", 8)
    assert found.name(0xFFFF888100000000, []) is None, "what was allocated has no name"


def test_names_that_do_not_fit_the_proven_functions_are_not_believed() -> None:
    image = synthetic.vmlinux("after")
    functions = symbols.from_image(image)
    assert isinstance(functions, symbols.SymbolTable)
    moved = symbols.SymbolTable(
        source=functions.source,
        ranges=functions.ranges,
        addresses_le=(functions.addresses + np.uint64(16)).astype("<u8").tobytes(),
        text=functions.text,
    )
    assert variables.from_image(image, moved) is None
    assert variables.from_image(b"no kernel", functions) is None


@pytest.mark.parametrize(
    ("linked", "base"),
    [(0, 0xFFFF88803EC00000), (0xFFFFFFFF83CE0000, 0xFFFF88803EC00000 - 0xFFFFFFFF83CE0000 & 2**64 - 1)],
    ids=["up to 6.14", "from 6.15 on"],
)
def test_each_cpus_copy_of_a_variable_has_its_name(linked: int, base: int) -> None:
    known = variables.Variables(
        addresses_le=np.array([linked, linked + 256], "<u8").tobytes(),
        text="gdt_page\nrunqueues",
        per_cpu=(linked, linked + 4096),
        end=0xFFFFFFFF84000000,
    )
    bases = [base, (base + 0x10000) & 2**64 - 1]
    assert known.name(0xFFFF88803EC00000 + 264, bases) == ("runqueues", 8)
    assert known.name(0xFFFF88803EC10000 + 256, bases) == ("runqueues", 0)
    assert known.name(0xFFFF88803EC20000, bases) is None


def test_data_whose_symbols_are_of_the_type_of_text_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # As in Debian's 7.0: a line of init_css_set was "__BTF_ID__func__...+0x20c380", megabytes away.
    image = synthetic.vmlinux("after")
    functions = symbols.from_image(image)
    assert isinstance(functions, symbols.SymbolTable)
    at = {
        "_etext": 0x82000000,
        "__BTF_ID__x": 0x82000100,
        "tasklist_lock": 0x82400000,
        "_sinittext": 0x82600000,
        "start_kernel": 0x82600040,
        "_einittext": 0x82700000,
        "_end": 0x82800000,
    }
    known = list(zip(functions.addresses.tolist(), functions.all_names, strict=True))
    pairs = sorted(known + [(0xFFFFFFFF00000000 + address, name) for name, address in at.items()])
    read = kallsyms.Symbols(
        addresses=np.array([address for address, _ in pairs], np.uint64),
        types="".join("r" if name == "__BTF_ID__x" else "T" for _, name in pairs),
        names=[name for _, name in pairs],
    )
    monkeypatch.setattr(kallsyms, "candidates", lambda _: [read])
    found = variables.from_image(image, functions)
    assert found is not None
    assert found.name(0xFFFFFFFF82400040, []) == ("tasklist_lock", 64)
    assert found.name(0xFFFFFFFF82600048, []) != ("start_kernel", 8)
