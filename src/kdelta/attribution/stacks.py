# SPDX-License-Identifier: GPL-2.0-or-later
"""Call stacks: what the plugin is told of a kernel's functions, and the tree of calls that it hands back. Pure.

The format of both is in ARCHITECTURE.md, "Contract: plugin output"; plugin/stacks.c says how calls are followed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kdelta.attribution import interrupts
from kdelta.attribution.callers import Table
from kdelta.attribution.profiles import Symbols, raw_names
from kdelta.errors import GuestError
from kdelta.kernel.spelling import fold

_HEAD = "kdelta-functions 1"
ROOT = "[kernel]"
# What is a part of the function that jumps there: what the compiler split off, thunks (arch/x86/lib/retpoline.S).
_PART = re.compile(r"\.cold(\.\d+)?$|^(__x86|srso|srso_alias|retbleed|its)_return_thunk$")
_SPLIT = ".part."  # as gcc names what it splits off so that the rest can be inlined
_VECTORS = ("irq_entries_start", "spurious_entries_start")


class Node(Struct, kw_only=True):
    """A function under those that called it: instructions of its own, how often it was entered there, whom it called.

    Counts are of all operations of a profile. Of the root, ``calls`` says how often the plugin could not follow.
    """

    instructions: int = 0
    calls: int = 0
    children: dict[str, Node] = field(default_factory=dict)


def _role(name: str) -> str:
    if _PART.search(name):
        return "part"
    if name in _VECTORS:
        return "vector"
    return "entry" if interrupts.OLD.match(name) else "function"


def listing(table: Table) -> str:
    """The functions of a kernel with these symbols, as the plugin reads them."""
    roles = {int(high): "end" for _, high in table.ranges}
    roles |= zip(table.addresses.tolist(), map(_role, table.all_names), strict=True)
    return "\n".join([_HEAD, *(f"{address:x} {roles[address]}" for address in sorted(roles)), ""])


def tree(records: NDArray[np.int64], symbols: Symbols | None) -> Node:
    """The tree of calls, functions named as in the source, of the plugin's ``records`` (n, 4).

    Raises:
        GuestError: a record's parent does not come before it.
    """
    parents = records[:, 0].tolist()
    if not len(records) or any(not 0 <= parent < place for place, parent in enumerate(parents[1:], 1)):
        raise GuestError("counts: the tree of calls is damaged: a caller does not come before its callee")
    raw = ["", *raw_names(records[1:, 1].astype(np.uint64), symbols)]
    root = Node(instructions=int(records[0, 2]), calls=int(records[0, 3]))
    nodes, entered = [root], defaultdict[tuple[int, str], list[int]](lambda: [0, 0])
    for place in range(1, len(records)):
        parent, instructions, calls = parents[place], int(records[place, 2]), int(records[place, 3])
        name, above = raw[place], raw[parent]
        if name != above and fold(name) == fold(above):  # a part of its caller, and no recursion
            node = nodes[parent]
        else:
            node = nodes[parent].children.setdefault(fold(name), Node())
            entered[parent, fold(name)][_SPLIT in name] += calls
        node.instructions += instructions
        nodes.append(node)
    for (parent, name), calls_of in entered.items():
        nodes[parent].children[name].calls += max(calls_of)  # the head of a function jumps to what was split off
    return root


def walk(root: Node) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Every call stack with its node, callers first; that of the root is empty. No recursion: stacks are deep."""
    waiting: list[tuple[tuple[str, ...], Node]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        yield path, node
        waiting += [((*path, name), child) for name, child in sorted(node.children.items(), reverse=True)]


def text(root: Node) -> str:
    """A tree as it is stored: one line a node, callers first: depth, instructions, calls, name."""
    lines = (f"{len(path)} {node.instructions} {node.calls} {path[-1] if path else ROOT}" for path, node in walk(root))
    return "\n".join(lines)


def parse(stored: str) -> Node:
    """The tree of ``text``.

    Raises:
        ValueError: it is none.
    """
    root = Node()
    above: list[Node] = []
    for line in stored.split("\n"):
        depth, instructions, calls, name = line.split(" ", 3)
        del above[int(depth) :]
        node = Node(instructions=int(instructions), calls=int(calls))
        if not above:
            root = node
        elif len(above) != int(depth):
            raise ValueError(f"a tree of calls has a line without its caller: {line[:80]!r}")
        else:
            above[-1].children[name] = node
        above.append(node)
    return root


def by_function(root: Node) -> dict[str, int]:
    """Instructions of each function itself, whoever called it."""
    found: dict[str, int] = {}
    for path, node in walk(root):
        name = path[-1] if path else ROOT
        found[name] = found.get(name, 0) + node.instructions
    return found


def stacks_of(root: Node) -> Sequence[tuple[tuple[str, ...], int]]:
    """Call stacks with the instructions of their last function, those without any left out."""
    return [(path or (ROOT,), node.instructions) for path, node in walk(root) if node.instructions]
