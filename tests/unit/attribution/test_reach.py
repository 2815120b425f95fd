# SPDX-License-Identifier: GPL-2.0-or-later
"""The map case x function: calls are executions of a first instruction; who is near; what is covered."""

from __future__ import annotations

import numpy as np

from kdelta.attribution import reach
from kdelta.attribution.profiles import Interval
from kdelta.attribution.reach import Ran, Reach, Row
from kdelta.kernel.symbols import SymbolTable

BASE = 0xFFFFFFFF81000000


def table(*names: str) -> SymbolTable:
    """Functions of 16 bytes from BASE on."""
    starts = BASE + 16 * np.arange(len(names), dtype=np.uint64)
    ranges = ((BASE, BASE + 16 * len(names)),)
    return SymbolTable(
        source="symtab", ranges=ranges, addresses_le=starts.astype("<u8").tobytes(), text="\n".join(names)
    )


def interval(*counts: tuple[int, int]) -> Interval:
    pcs = np.array([pc for pc, _ in counts], np.uint64)
    columns = np.zeros((len(counts), 7), np.uint64)
    columns[:, 0] = [count for _, count in counts]
    return Interval(id=0, pcs=pcs, counts=columns)


def row(case: str, ops: int = 1, **ran: tuple[int, int]) -> Row:
    functions = {name: Ran(*one) for name, one in ran.items()}
    return Row(
        case=case, state="ok", ops=ops, total=sum(r.instructions for r in functions.values()), functions=functions
    )


def test_calls_are_the_executions_of_a_functions_first_instruction() -> None:
    one = interval((0x400000, 900), (BASE, 8), (BASE + 4, 24), (BASE + 20, 5), (BASE + 32, 2), (BASE + 4096, 3))
    found, total = reach.ran([one], table("read", "entry", "read.cold"))
    assert found == {"read": Ran(8, 34), "entry": Ran(0, 5)}  # jumped into; a cold part is no call
    assert total == 42  # no user space; code without a name counts


def test_cases_are_listed_by_the_share_that_they_spend_in_a_function() -> None:
    found = Reach(kernel="k", rows=(row("long", f=(1, 10), g=(1, 990)), row("short", 4, f=(8, 10), g=(4, 10))))
    assert [one.case for one in found.executing("f")] == ["short", "long"]
    assert found.executing("f")[0].calls_per_op("f") == 2.0
    assert found.executing("h") == []


def test_the_nearest_callers_are_those_that_some_case_executes() -> None:
    calls = {"leaf": ("middle", "other"), "middle": ("top",), "other": (), "top": ("leaf",)}
    found = Reach(kernel="k", rows=(row("a", top=(1, 5)),))
    (near,) = found.near("leaf", lambda name: calls.get(name, ()))
    assert (near.function, near.path, near.cases) == ("top", ("top", "middle", "leaf"), 1)
    assert found.near("alone", lambda name: calls.get(name, ())) == ()


def test_what_only_interrupts_execute_is_told_from_what_cases_do() -> None:
    quiet = row("quiet", f=(1, 5))
    hit = [row(f"hit{i}", f=(1, 5), irq_enter_rcu=(1, 3), tick=(1, 9)) for i in range(4)]
    hit.append(row("long", own=(1, 1), irq_enter_rcu=(9, 3), tick=(9, 9)))
    assert Reach(kernel="k", rows=(quiet, *hit)).interrupting == {"irq_enter_rcu", "tick"}


def test_coverage_counts_functions_by_directory_and_no_padding() -> None:
    known = reach.known_functions(table("f", "g.isra.0", "__pfx_f", "h"))
    assert known == {"f", "g", "h"}
    parts = reach.coverage(Reach(kernel="k", rows=(row("a", f=(1, 1), g=(1, 1)),)), known, {"f": "fs", "h": "fs"})
    assert [(part.name, part.functions, part.executed) for part in parts] == [("fs", 2, 1), ("", 1, 1)]
