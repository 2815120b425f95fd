# SPDX-License-Identifier: GPL-2.0-or-later
"""Entries of a kernel are found by name; what was counted for them adds up to the kernel's instructions."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.attribution import entries
from kdelta.model import CallCount


class Table(Struct):
    """Functions 16 bytes apart."""

    all_names: tuple[str, ...]

    @property
    def addresses(self) -> NDArray[np.uint64]:
        return np.arange(len(self.all_names), dtype=np.uint64) * np.uint64(16) + np.uint64(0xFFFFFFFF81000000)


NAMES = (
    "do_syscall_64",
    "__x64_sys_read",
    "__x64_sys_newfstat",
    "__ia32_sys_read",
    "__do_sys_getppid",
    "__pfx___x64_sys_write",
    "asm_exc_page_fault",
    "asm_sysvec_apic_timer_interrupt",
    "asm_common_interrupt",
    "asm_load_gs_index",
    "ret_from_fork_asm",
    "sys_ni_syscall",
    "__x64_sys_exit_group",
    "do_exit",
    "do_exit_to_nowhere",
)


def test_entries_have_the_names_of_the_manual_pages() -> None:
    found = entries.find(Table(NAMES))
    assert found is not None
    assert found.rows == (
        "read",
        "fstat",
        "read (32 bit)",
        "getppid",
        "[page fault]",
        "[timer interrupt]",
        "[device interrupt]",
        "[not implemented]",
        "exit_group",
        "[end of killed tasks]",
    )
    lines = found.text.splitlines()
    assert lines[0] == "kdelta-entries 1"
    assert lines[1:3] == ["call ffffffff81000010 0", "call ffffffff81000020 1"]
    kinds = [*["call"] * 4, "fault", "irq", "irq", "birth", "call", "exit", "end"]
    assert [line.split()[0] for line in lines[1:]] == kinds


def test_a_kernel_without_system_calls_by_name_has_no_entries() -> None:
    assert entries.find(Table(("do_syscall_64", "asm_exc_page_fault", "__arm64_sys_read"))) is None


def test_what_was_counted_adds_up_to_the_kernels_instructions() -> None:
    known = entries.Entries(text="", rows=("read", "write"))
    table = np.array([[1, 3, 300, 8], [0xFFFFFFFF, 0, 50, 0]], np.int64)
    rows = entries.counted(known, table, 360)
    assert rows == {
        "write": CallCount(calls=3, instructions=300, rep_bytes=8),
        entries.TASK: CallCount(calls=0, instructions=50, rep_bytes=0),
        entries.REST: CallCount(calls=0, instructions=10, rep_bytes=0),
    }
    assert sum(row.instructions for row in rows.values()) == 360
    assert entries.REST not in entries.counted(known, table, 350)


def test_a_system_call_was_made_as_often_as_its_function_began() -> None:
    names = ("__do_sys_newstat", "__x64_sys_newstat", "__x64_sys_newstat", "__x64_sys_read", "vfs_read", "[user]")
    assert entries.called(names, (3, 5, 4, 7, 70, 9)) == {"read": 7, "stat": 5}
    assert entries.called((), ()) == {}


def test_where_no_entry_is_recognised_there_is_no_table() -> None:
    """All of pipe on arm64 was "[other trap]", called 0 times, once its call stacks had been followed."""
    known = entries.find(Table(NAMES))
    assert known is not None
    traps = np.array([[0xFFFFFFFE, 0, 64757, 0], [0xFFFFFFFF, 0, 12, 0]], dtype=np.int64)
    assert entries.counted(known, traps, 64800) == {}
