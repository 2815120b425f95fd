# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of a kernel's data, from images whose kallsyms agree with the proven functions."""

from __future__ import annotations

import numpy as np
import pytest

from kdelta.kernel import symbols, variables
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
