# SPDX-License-Identifier: GPL-2.0-or-later
"""From what the plugin saw move to lines with names, and to who waits for which lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from kdelta.attribution import callers, line_names, line_table, lines

BASE = 0xFFFF888000000000
LINE = 0xFFFFFFFF82000040
PAGES = 0xFFFFEA0000000000
HEAP = 0xFFFF888100000000
DENTRIES, ANONYMOUS, TASKS = 0xFFFF888100042000, 0xFFFF888100042100, 0xFFFF888100042200
TAKE, DROP, NOWHERE = 0xFFFFFFFF81000010, 0xFFFFFFFF81001010, 0xFFFFFFFF99000000
LOCK, SLOW, EXIT, REFERENCE = 0xFFFFFFFF81002010, 0xFFFFFFFF81003010, 0xFFFFFFFF81004010, 0xFFFFFFFF81005010
LIST = 0xFFFFFFFF81006010
NAMES = (
    "take", "drop.isra.0", "_raw_spin_lock", "native_queued_spin_lock_slowpath", "do_exit", "lockref_get",
    "__list_add_valid_or_report",
)  # fmt: skip


class Functions:
    """NAMES, a page each from 0x...81000000 on."""

    def names(self, addresses: NDArray[np.uint64], /) -> Sequence[str | None]:
        pages = [(int(address) >> 12) - 0xFFFFFFFF81000 for address in addresses]
        return [NAMES[page] if 0 <= page < len(NAMES) else None for page in pages]

    def calls(self, functions: Iterable[str], /) -> Mapping[str, Sequence[str]]:
        return {}


class Variables:
    """One variable of 128 bytes in the image, one per-CPU variable."""

    per_cpu = (0, 4096)

    def name(self, address: int, bases: Sequence[int], /) -> tuple[str, int] | None:
        for base in bases:
            if 0 <= address - base < 4096:
                return "runqueues", address - base
        return ("tasklist_lock", address - LINE) if 0 <= address - LINE < 128 else None


class Types:
    """Of dentry 192 bytes, of page 64, of task_struct 128 and of runqueues 512, a field for each 8 bytes."""

    def struct(self, name: str, /) -> int | None:
        return {"dentry": 1, "page": 2, "task_struct": 3}.get(name)

    def variable(self, name: str, /) -> int | None:
        return 4 if name == "runqueues" else None

    def size(self, ident: int, /) -> int:
        return {1: 192, 2: 64, 3: 128, 4: 512}[ident]

    def path(self, ident: int, offset: int, /) -> str:
        return f"f{offset // 8}"

    def begins(self, ident: int, offset: int, name: str, /) -> bool:
        return (ident, offset, name) == (1, 4, "seqcount")


Row = tuple[int, int, int, int, int, int]  # address, pc, caller, cpus, reads, writes


def _moves(
    rows: Sequence[Row],
    shared: Mapping[int, int],
    slabs: Mapping[int, tuple[int, int]] | None = None,
    entries: Sequence[tuple[int, int, int, int]] = (),
    sequences: Sequence[tuple[int, ...]] | None = (),
) -> lines.Moves:
    told = [(line, 3, 0xFF, bits, *(slabs or {}).get(line, (0, 0))) for line, bits in shared.items()]
    caches = {DENTRIES: lines.Cache("dentry", 192), ANONYMOUS: lines.Cache("kmalloc-64", 64)}
    caches[TASKS] = lines.Cache("task_struct", 2048)
    return lines.Moves(
        id=7,
        bases=np.array([BASE, BASE + 4096], "<u8"),
        vmemmap=PAGES,
        transfers=np.array(rows, lines.TRANSFER),
        lines=np.array(told, lines.LINE),
        caches=caches if slabs else {},
        entries=np.array(list(entries), lines.ENTRY),
        sequences=None if sequences is None else np.array(list(sequences), lines.SEQUENCE),
    )


def _row(address: int, pc: int, reads: int, writes: int, caller: int = 0) -> Row:
    return address, pc, caller, 3, reads, writes


def test_lines_are_named_by_variable_cpu_area_and_who_moves_what_was_allocated() -> None:
    rows = [_row(LINE, TAKE, 5, 7), _row(LINE + 8, DROP, 0, 2), _row(LINE + 64, TAKE, 1, 0)]
    rows += [_row(BASE + 4096 + 8, DROP, 3, 0), _row(HEAP, TAKE, 10, 0), _row(HEAP + 64, TAKE, 10, 0)]
    rows.append(_row(HEAP + 128, NOWHERE, 0, 1))
    moves = _moves(rows, {row[0] & -64: 1 for row in rows})
    found = {row.name: row for row in line_table.table(moves, Functions(), Variables())}
    order = ["memory: take", "tasklist_lock", "per-CPU runqueues", f"memory: [unknown {NOWHERE:#x}]"]
    assert list(found) == [*order, "tasklist_lock+0x40"]
    assert (found["tasklist_lock"].reads, found["tasklist_lock"].writes) == (5, 9)
    assert found["tasklist_lock"].by == {"take": (5, 7), "drop": (0, 2)}
    assert found["memory: take"].lines == 2
    assert sum(row.transfers for row in found.values()) == moves.total


def test_objects_are_named_by_type_and_field_and_added_up_over_all_of_them() -> None:
    # Two dentries of one slab and one struct page; the field that moves most names the place in the object.
    rows = [
        _row(HEAP + 128 + 24, TAKE, 0, 9),
        _row(HEAP + 192 + 128 + 8, TAKE, 0, 4),
        _row(PAGES + 64 + 16, DROP, 2, 0),
    ]
    slabs = {HEAP + 128: (DENTRIES, 128), HEAP + 320: (DENTRIES, 320)}
    moves = _moves(rows, {row[0] & -64: 1 << row[0] % 64 for row in rows}, slabs)
    dentry, page = line_table.table(moves, Functions(), Variables(), Types())
    assert (dentry.name, dentry.lines, dentry.transfers) == ("dentry.f19", 2, 13)
    assert (page.name, page.reads) == ("struct page", 2)


def test_fields_of_a_cpus_own_struct_are_named_and_the_registers_behind_a_task() -> None:
    """On 7.0 runqueues+0xa80 moved no longer and +0xdc0 did now; thread.fpu lies behind its struct since 6.16."""
    rows = [_row(BASE + 4096 + 136, TAKE, 0, 9), _row(BASE + 128, DROP, 0, 1), _row(HEAP + 128, TAKE, 5, 0)]
    moves = _moves(rows, {row[0] & -64: 1 << row[0] % 64 for row in rows}, {HEAP + 128: (TASKS, 128)})
    queue, registers = line_table.table(moves, Functions(), Variables(), Types())
    assert (queue.name, queue.lines, queue.transfers) == ("per-CPU runqueues.f17", 2, 10), "of each CPU, by place"
    assert queue.others == {"per-CPU runqueues.f16": 1}
    assert registers.name == "task_struct.thread.fpu"


def test_without_types_it_is_the_cache_and_the_offset_and_caches_that_are_none_are_not_believed() -> None:
    rows = [_row(HEAP + 128, TAKE, 0, 9), _row(HEAP + 64, TAKE, 0, 4)]
    slabs = {HEAP + 128: (DENTRIES, 128), HEAP + 64: (ANONYMOUS, 64)}
    moves = _moves(rows, {row[0]: 1 for row in rows}, slabs)
    assert [line.name for line in line_table.table(moves, None, None)] == ["dentry+0x80", "kmalloc-64+0x0"]
    assert [line.name for line in line_table.table(moves, None, None, Types())][1] == "kmalloc-64+0x0"
    misread = {address: lines.Cache(cache.name, cache.size + 1) for address, cache in moves.caches.items()}
    assert not line_names.believed(misread) and line_names.believed(moves.caches)


@pytest.mark.parametrize(
    ("cache", "size", "known"), [("dentry", 192, True), ("dentry", 320, False), ("page", 64, True)]
)
def test_a_type_is_only_that_of_a_cache_whose_objects_are_as_large(cache: str, size: int, known: bool) -> None:
    assert (line_names.struct_of(lines.Cache(cache, size), Types()) is not None) == known


class Neighbours(Variables):
    """Two variables in one line."""

    def name(self, address: int, bases: Sequence[int], /) -> tuple[str, int] | None:
        return ("nr_threads", address - LINE) if address < LINE + 8 else ("task_struct_cachep", address - LINE - 8)


def test_what_only_lies_beside_a_shared_variable_is_named_for_its_transfers() -> None:
    rows = [_row(LINE, TAKE, 5, 7), _row(LINE + 8, TAKE, 40, 0)]
    (line,) = line_table.table(_moves(rows, {LINE: 0xF}), Functions(), Neighbours())
    assert (line.name, line.transfers, line.unshared) == ("task_struct_cachep", 52, 40), "what moves it most"
    assert (line.beside, line.also) == (("task_struct_cachep",), ("nr_threads",))
    (false,) = line_table.table(_moves(rows, {LINE: 0}), Functions(), Neighbours())
    assert false.unshared == false.transfers == 52


def test_a_table_is_bounded_and_still_adds_up() -> None:
    rows = [_row(LINE + 0x1000 + 64 * i, NOWHERE + 0x1000 * i, i + 1, 0) for i in range(100)]
    moves = _moves(rows, {row[0]: 1 for row in rows})
    found = line_table.table(moves, None, None)
    assert len(found) == line_table.KEPT + 1
    assert found[-1].name == line_table.OTHERS and found[-1].lines == 100 - line_table.KEPT
    assert sum(row.transfers for row in found) == moves.total == 5050


def test_a_lock_function_is_told_with_who_called_it() -> None:
    rows = [_row(LINE, LOCK, 0, 6, EXIT), _row(LINE, SLOW, 2, 1, EXIT), _row(LINE, LOCK, 0, 1)]
    (line,) = line_table.table(_moves(rows, {LINE: 1}), Functions(), Variables())
    lock, slow = "do_exit (_raw_spin_lock)", "do_exit (native_queued_spin_lock_slowpath)"
    assert line.by == {lock: (0, 6), slow: (2, 1), "_raw_spin_lock": (0, 1)}


def test_waits_are_told_by_slow_path_who_waits_and_the_lock_that_its_call_moves() -> None:
    rows = [_row(LINE, LOCK, 0, 6, EXIT), _row(LINE, SLOW, 2, 1, EXIT), _row(BASE, SLOW, 0, 99, EXIT)]
    entries = [(LOCK, EXIT, EXIT, 10), (SLOW, LOCK, EXIT, 3), (SLOW, SLOW, EXIT, 50)]
    entries += [(REFERENCE, TAKE, TAKE, 8), (LOCK, REFERENCE, TAKE, 2), (LOCK, TAKE + 8, TAKE + 8, 4)]
    moves = _moves(rows, {LINE: 1}, entries=entries)
    waits = line_table.waits(moves, Functions(), Variables())
    assert line_table.waited(moves, Functions()) == 5
    told = [(wait.function, wait.caller, wait.lock, wait.times, wait.taken) for wait in waits]
    assert told == [
        ("native_queued_spin_lock_slowpath", "do_exit", "tasklist_lock", 3, 10),
        ("lockref_get failed", "take", "", 2, 12),
    ]


def test_reads_in_vain_are_told_by_counter_and_reader() -> None:
    object_ = HEAP + 2 * 192
    slab = DENTRIES, (object_ & -64) - HEAP
    sequences = [
        (LINE, TAKE, lines.BEGIN | lines.PAUSES, 90, 3, 0, 0),
        (LINE, TAKE + 9, lines.CHECK, 87, 7, 0, 0),
        (LINE, DROP, lines.CHECK, 5, 1, 0, 0),
        (LINE + 8, DROP, lines.CHECK, 50, 50, 0, 0),  # compared, but none waits until it is even
        (LINE + 16, DROP + 1, lines.BEGIN | lines.PAUSES, 50, 50, 0, 0),  # a flag that is waited for
        (object_ + 4, EXIT, lines.CHECK, 9, 4, *slab),  # a counter by its type, and the others none
        (object_ + 4, EXIT, lines.BEGIN, 9, 4, *slab),
        (object_ + 8, EXIT, lines.CHECK, 9, 4, *slab),
        (object_ + 8, EXIT, lines.BEGIN | lines.PAUSES, 9, 4, *slab),
    ]
    moves = _moves([], {HEAP + 4096: 0}, {HEAP + 4096: (DENTRIES, 4096)}, sequences=sequences)
    found = line_table.waits(moves, Functions(), Variables(), Types())
    assert [(wait.function, wait.caller, wait.lock, wait.times, wait.taken) for wait in found] == [
        ("read_seqcount_retry", "take", "tasklist_lock", 7, 87),
        ("read_seqcount_retry", "do_exit", "dentry.f0", 4, 9),
        ("read_seqcount_begin", "take", "tasklist_lock", 3, 90),
        ("read_seqcount_retry", "drop", "tasklist_lock", 1, 5),
    ]
    assert line_table.read_in_vain(moves, Variables(), Types()) == 15
    assert line_table.waited(moves, Functions()) == 0, "no lock was found taken"
    assert line_table.waits(_moves([], {}, sequences=None), Functions(), Variables()) == ()


@pytest.mark.parametrize(
    ("function", "acts", "waits"),
    [
        ("_raw_spin_lock_irqsave", True, False),
        ("native_queued_spin_lock_slowpath", True, True),
        ("queued_write_lock_slowpath", True, True),
        ("mutex_lock", True, False),
        ("__mutex_lock_slowpath", True, True),
        ("rwsem_down_write_slowpath", True, True),
        ("down_read_trylock", True, False),
        ("lockref_get_not_dead", True, False),
        ("__list_del_entry_valid_or_report", True, False),
        ("up_write", True, False),
        ("update_curr", False, False),
        ("upgrade_something", False, False),
        ("lock_timer_base", False, False),
    ],
)
def test_functions_that_act_for_their_callers_are_known_by_name(function: str, acts: bool, waits: bool) -> None:
    assert (callers.acts_for_caller(function), callers.waits(function)) == (acts, waits)


def test_the_lock_of_a_runqueue_is_one_though_each_cpu_has_its_own() -> None:
    """ "?" was found taken where a task is woken on another CPU."""
    entries = [(LOCK, EXIT, EXIT, 10), (SLOW, LOCK, EXIT, 3)]
    own = _row(BASE, LOCK, 0, 5, EXIT)
    (wait,) = line_table.waits(_moves([own], {}, entries=entries), Functions(), Variables())
    assert (wait.lock, wait.times, wait.taken) == ("per-CPU runqueues", 3, 10)
    other = _row(LINE, LOCK, 0, 1, EXIT)
    (wait,) = line_table.waits(_moves([own, other], {LINE: 1}, entries=entries), Functions(), Variables())
    assert wait.lock == "tasklist_lock"
    nodes = "per-CPU qnodes", "per-CPU osq_node", "per-CPU mcs_nodes"
    assert all(map(line_table._NODES.match, nodes)) and not line_table._NODES.match("per-CPU runqueues.__lock")


def test_a_list_in_the_line_of_its_lock_takes_no_lock() -> None:
    """fcntl(2) takes the lock of a file's locks twice, and adds to their list beside it: "of 3.00" times."""
    rows = [_row(LINE, LOCK, 0, 6, EXIT), _row(LINE, LIST, 0, 6, EXIT + 8)]
    entries = [(LOCK, EXIT, EXIT, 2), (LIST, EXIT + 8, EXIT + 8, 1), (SLOW, LOCK, EXIT, 1)]
    (wait,) = line_table.waits(_moves(rows, {LINE: 1}, entries=entries), Functions(), Variables())
    assert (wait.caller, wait.lock, wait.times, wait.taken) == ("do_exit", "tasklist_lock", 1, 2)


def test_what_gives_a_lock_back_does_not_take_it() -> None:
    given = ("_raw_spin_unlock_irqrestore", "mutex_unlock", "up_read", "percpu_up_write", "up")
    taken = ("_raw_spin_lock", "down_read", "mutex_lock", "rwsem_down_read_slowpath", "down")
    assert not any(map(callers.takes, given)) and all(map(callers.takes, taken))


def test_a_variable_whose_struct_is_known_has_its_fields() -> None:
    """init_net+0x80 was -100 % of 759 transfers of a TCP server on 7.0, whose struct net is laid out otherwise."""

    class Initial(Variables):
        def name(self, address: int, bases: Sequence[int], /) -> tuple[str, int] | None:
            return "init_task", address - LINE

    moves = _moves([_row(LINE + 72, TAKE, 0, 9)], {LINE + 64: 0xFF00})
    (line,) = line_table.table(moves, Functions(), Initial(), Types())
    assert line.name == "init_task.f9"
    (line,) = line_table.table(moves, Functions(), Initial())
    assert line.name == "init_task+0x40"
