# SPDX-License-Identifier: GPL-2.0-or-later
"""Which cases execute which functions of a kernel: the map that one exact repetition of each case gives. Pure.

The plugin counts by address, so the executions of a function's first instruction are its calls (a loop back to that
instruction would count too; compilers put it behind the prologue). One repetition sees what a case always does, and by
chance what interrupts it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from kdelta.attribution.moved import INTERRUPT_ENTRIES
from kdelta.attribution.profiles import Interval
from kdelta.kernel.spelling import fold
from kdelta.kernel.symbols import SymbolTable
from kdelta.model import State

_KERNEL_HALF = np.uint64(1 << 63)
_NO_FUNCTIONS = ("__pfx_", "__cfi_")  # padding and type hashes before functions
_OF_MEMCGS = re.compile(r"memcg|mem_cgroup|objcg|obj_cgroup|page_counter|_stock\b|_stock_")
_MOST = 0.8  # of the cases that an interrupt came into
_OPTION = re.compile(r"\bCONFIG_[A-Z0-9_]+")  # as a case names what it needs (guest/case.h, NEED)
_FARTHEST = 4  # calls between a function that nothing executes and those that are named as near it


class Ran(Struct, frozen=True):
    """What a case executed of a function, over all of its operations: ``calls`` is 0 where it was entered by a jump."""

    calls: int
    instructions: int


class Row(Struct, frozen=True, kw_only=True):
    """One case: the functions that its operations execute, of ``total`` kernel instructions in ``ops`` operations.

    Where ``state`` is not ok there are none, and ``why`` says why. ``elapsed_s`` is what the repetition took here.
    ``digest`` is what the case was (``spec/sameness.py``), "" in what an older kdelta counted. ``beyond``: what differs
    from the kernels that it was taken over from (``experiment/reach_carried.py``); () where it was counted.
    """

    case: str
    state: State
    why: str = ""
    ops: int = 0
    total: int = 0
    functions: dict[str, Ran] = {}
    elapsed_s: float = 0.0
    digest: str = ""
    beyond: tuple[str, ...] = ()

    def share(self, names: Iterable[str]) -> float:
        """The part of the case's kernel instructions that it executes in these functions, 0 to 1."""
        spent = sum(self.functions[name].instructions for name in names if name in self.functions)
        return spent / self.total if self.total else 0.0

    def calls_per_op(self, name: str) -> float:
        """How often an operation calls the function."""
        return self.functions[name].calls / self.ops if self.ops and name in self.functions else 0.0


class Near(Struct, frozen=True, kw_only=True):
    """A function that some case executes, from which a number of direct calls leads to the one asked for."""

    function: str
    path: tuple[str, ...]  # from it to the one asked for
    cases: int


class Reach(Struct, frozen=True, kw_only=True, dict=True):
    """The map of one image; for the cases ``no_time`` there was none."""

    kernel: str
    rows: tuple[Row, ...]
    no_time: tuple[str, ...] = ()

    @cached_property
    def _by_function(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            for name in row.functions:
                found.setdefault(name, []).append(row)
        return {n: sorted(rows, key=lambda row: (-row.share((n,)), row.case)) for n, rows in found.items()}

    @property
    def executed(self) -> frozenset[str]:
        """All functions that some case executes."""
        return frozenset(self._by_function)

    @cached_property
    def interrupting(self) -> frozenset[str]:
        """Functions that were seen only where an interrupt came, and in most such cases: the interrupt's own."""
        hit = [row for row in self.rows if any(entry in row.functions for entry in INTERRUPT_ENTRIES)]
        quiet = {name for row in self.rows if row not in hit for name in row.functions}
        often = Counter(name for row in hit for name in row.functions)
        return frozenset(name for name, count in often.items() if name not in quiet and count > _MOST * len(hit))

    @property
    def not_mapped(self) -> tuple[Row, ...]:
        """The cases of which nothing is known."""
        return tuple(row for row in self.rows if row.state != "ok")

    @property
    def needs(self) -> dict[str, int]:
        """Options that the kernel lacks and cases need (``CONFIG_INET``): how many cases, the most first."""
        return dict(Counter(name for row in self.not_mapped for name in set(_OPTION.findall(row.why))).most_common())

    @property
    def taken_over(self) -> tuple[Row, ...]:
        """The cases that were not counted on this very image."""
        return tuple(row for row in self.rows if row.beyond)

    def executing(self, function: str) -> Sequence[Row]:
        """The cases that execute ``function``, first the one that spends the largest share there."""
        return self._by_function.get(function, [])

    def near(self, function: str, callers: Callable[[str], Iterable[str]], limit: int = 3) -> tuple[Near, ...]:
        """The nearest functions with a case from which direct calls lead to ``function``, () where there is none."""
        paths: dict[str, tuple[str, ...]] = {function: (function,)}
        ring = [function]
        for _ in range(_FARTHEST):
            steps = [(caller, name) for name in ring for caller in sorted(callers(name)) if caller not in paths]
            ring = []
            for caller, name in steps:
                if caller not in paths:
                    paths[caller] = (caller, *paths[name])
                    ring.append(caller)
            if hits := [name for name in ring if name in self._by_function]:
                hits.sort(key=lambda name: (-len(self._by_function[name]), name))
                return tuple(
                    Near(function=name, path=paths[name], cases=len(self._by_function[name])) for name in hits[:limit]
                )
        return ()


def of_memcgs(functions: Iterable[str]) -> bool:
    """Whether the name of one says that it is of memory cgroups: the map's cases are in the root one, never charged."""
    return any(map(_OF_MEMCGS.search, functions))


class Part(Struct, frozen=True, kw_only=True):
    """How many functions of a part of the source (a directory) some case executes."""

    name: str
    functions: int
    executed: int


def known_functions(table: SymbolTable) -> frozenset[str]:
    """All functions of a kernel as the source names them."""
    return frozenset(fold(name) for name in table.all_names if not name.startswith(_NO_FUNCTIONS))


def coverage(reach: Reach, functions: frozenset[str], directories: Mapping[str, str]) -> tuple[Part, ...]:
    """By directory, the most functions first; "" holds those whose directory is not known."""
    sums: dict[str, list[int]] = {}
    for name in functions:
        row = sums.setdefault(directories.get(name, ""), [0, 0])
        row[0] += 1
        row[1] += name in reach.executed
    parts = [Part(name=name, functions=total, executed=hit) for name, (total, hit) in sums.items()]
    return tuple(sorted(parts, key=lambda part: (not part.name, -part.functions, part.name)))


def ran(intervals: Sequence[Interval], table: SymbolTable) -> tuple[dict[str, Ran], int]:
    """(what was executed of each named function, all kernel instructions) over ``intervals``."""
    calls: dict[str, int] = {}
    instructions: dict[str, int] = {}
    total = 0
    for interval in intervals:
        kernel = interval.pcs >= _KERNEL_HALF
        pcs, counts = interval.pcs[kernel], interval.counts[kernel][:, 0].astype(np.int64)
        total += int(counts.sum())
        rows = table.index(pcs)
        names, starts = table.all_names, table.addresses
        for row, pc, count in zip(rows.tolist(), pcs.tolist(), counts.tolist(), strict=True):
            if row < 0:
                continue
            name = fold(names[row])
            instructions[name] = instructions.get(name, 0) + count
            if pc == int(starts[row]) and ".cold" not in names[row]:
                calls[name] = calls.get(name, 0) + count
    return {name: Ran(calls.get(name, 0), spent) for name, spent in instructions.items()}, total


def without(twice: Mapping[str, Ran], once: Mapping[str, Ran]) -> dict[str, Ran]:
    """What the run of a program with twice the operations executed more of each function: start-up is in both."""
    nothing = Ran(0, 0)
    more = {
        name: Ran(
            max(0, ran.calls - once.get(name, nothing).calls), ran.instructions - once.get(name, nothing).instructions
        )
        for name, ran in twice.items()
    }
    return {name: ran for name, ran in more.items() if ran.instructions > 0}
