# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees of calls: what the plugin is told, what it hands back, how they are stored."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kdelta.attribution import stacks
from kdelta.attribution.profiles import read
from kdelta.errors import GuestError
from kdelta.kernel.symbols import SymbolTable
from unit.attribution.counts import interval, output
from unit.attribution.counts import stacks as section

BASE = 0xFFFFFFFF81000000
NAMES = ("asm_exc_page_fault", "irq_entries_start", "__x86_return_thunk", "foo", "foo.cold", "foo.isra.0", "page_fault")


def _table(names: tuple[str, ...] = NAMES) -> SymbolTable:
    addresses = np.array([BASE + 16 * place for place in range(len(names))], dtype="<u8")
    ranges = ((BASE, BASE + 16 * len(names)),)
    return SymbolTable(source="symtab", ranges=ranges, addresses_le=addresses.tobytes(), text="\n".join(names))


class _Symbols:
    """Names by address, as kernel.calls.Code has them."""

    def names(self, addresses: NDArray[np.uint64], /) -> list[str | None]:
        return _table().names(addresses)

    def calls(self, functions: object, /) -> dict[str, tuple[str, ...]]:
        return {}


def _records(*rows: tuple[int, int, int, int]) -> NDArray[np.int64]:
    """(parent, place in NAMES, instructions, calls), the root put before them with two calls lost."""
    found = [(0, 0, 0, 2), *((parent, BASE + 16 * place - 2**64, n, calls) for parent, place, n, calls in rows)]
    return np.array(found, dtype=np.int64)


def test_the_plugin_is_told_what_each_function_is_and_where_the_code_ends() -> None:
    lines = stacks.listing(_table()).splitlines()
    assert lines[0] == "kdelta-functions 1"
    roles = [line.split()[1] for line in lines[1:]]
    assert roles == ["function", "vector", "part", "function", "part", "function", "entry", "end"]
    assert lines[1] == f"{BASE:x} function"


def test_what_the_compiler_split_off_is_its_function_and_recursion_is_not() -> None:
    foo, cold, isra = 3, 4, 5
    tree = stacks.tree(_records((0, foo, 10, 1), (1, cold, 5, 1), (2, isra, 2, 1), (1, foo, 3, 1)), _Symbols())
    assert list(tree.children) == ["foo"]
    outer = tree.children["foo"]
    assert (outer.instructions, outer.calls) == (17, 1)
    assert {name: (node.instructions, node.calls) for name, node in outer.children.items()} == {"foo": (3, 1)}
    assert tree.calls == 2, "what could not be followed is told"
    assert stacks.by_function(tree) == {"[kernel]": 0, "foo": 20}


def test_a_function_in_two_parts_is_called_once_where_its_head_jumps_to_the_other() -> None:
    names = ("read", "get", "get.part.0", "get.isra.0")

    class Split(_Symbols):
        def names(self, addresses: NDArray[np.uint64], /) -> list[str | None]:
            return _table(names).names(addresses)

    tree = stacks.tree(_records((0, 0, 10, 1), (1, 1, 5, 2), (1, 2, 30, 2), (1, 3, 4, 1)), Split())
    assert {name: (node.instructions, node.calls) for name, node in tree.children["read"].children.items()} == {
        "get": (39, 3)
    }
    inlined = stacks.tree(_records((0, 0, 10, 1), (1, 2, 30, 2)), Split())  # of a caller that has the head inlined
    assert inlined.children["read"].children["get"].calls == 2


def test_a_stored_tree_is_read_back_as_it_was() -> None:
    tree = stacks.tree(_records((0, 0, 10, 1), (1, 3, 5, 7), (1, 6, 1, 1), (2, 2, 4, 7), (0, 6, 3, 1)), _Symbols())
    again = stacks.parse(stacks.text(tree))
    assert again == tree
    assert stacks.stacks_of(again) == stacks.stacks_of(tree)
    assert sum(count for _, count in stacks.stacks_of(tree)) == 23


def test_stacks_as_deep_as_the_plugin_follows_them_are_walked() -> None:
    rows = [(place, 3, 1, 1) for place in range(5000)]
    tree = stacks.tree(_records(*rows), _Symbols())
    assert stacks.text(stacks.parse(stacks.text(tree))) == stacks.text(tree)
    assert max(len(path) for path, _ in stacks.walk(tree)) == 5000


@pytest.mark.parametrize("rows", [[(1, 3, 1, 1)], [(0, 3, 1, 1), (5, 3, 1, 1)], [(-1, 3, 1, 1)]])
def test_a_tree_whose_callers_come_late_is_damaged(rows: list[tuple[int, int, int, int]]) -> None:
    with pytest.raises(GuestError, match="a caller does not come before its callee"):
        stacks.tree(_records(*rows), _Symbols())


def test_a_line_without_its_caller_is_no_stored_tree() -> None:
    with pytest.raises(ValueError, match="without its caller"):
        stacks.parse("0 0 0 [kernel]\n2 1 1 foo")


def test_the_tree_belongs_to_the_interval_before_it() -> None:
    one = interval(7, [(BASE, (1, 0, 0, 0, 0, 0, 0))])
    found = read(output(one + section(7, [(0, 0, 0, 0), (0, BASE, 1, 1)])))[0].stacks
    assert found is not None and found.shape == (2, 4)
    with pytest.raises(GuestError, match="does not start an interval"):
        read(output(one + section(8, [(0, 0, 0, 0)])))
