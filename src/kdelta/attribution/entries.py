# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a kernel is entered, by name, and what the plugin counted for each: kernel instructions by system call. Pure.

The function of a system call is known by its name (``__x64_sys_read``, arch/x86/include/asm/syscall_wrapper.h, v4.17
on), entries of exceptions and interrupts by theirs (``asm_exc_``, ``asm_sysvec_``, arch/x86/include/asm/idtentry.h,
v5.8 on). Other architectures, and what a kernel inlines, have none: the counts are then by function alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.attribution import interrupts
from kdelta.model import CallCount

Kind = Literal["call", "exit", "fault", "irq", "end", "birth"]
_HEAD = "kdelta-entries 1"
_NAMES: tuple[tuple[re.Pattern[str], Kind, str], ...] = (
    (re.compile(r"^__(?:x64|do)_sys_(\w+)$"), "call", ""),  # without arguments, the first is an alias of the second
    (re.compile(r"^(?:__ia32_sys_|__ia32_compat_sys_)(\w+)$"), "call", " (32 bit)"),
    (re.compile(r"^__x64_compat_sys_(\w+)$"), "call", " (x32)"),
    (re.compile(r"^sys_(ni_syscall)$"), "call", ""),
    (interrupts.FAULT, "fault", ""),
    (interrupts.IRQ, "irq", ""),
    (re.compile(r"^(do_exit)$"), "end", ""),
    (re.compile(r"^(ret_from_fork)(?:_asm)?$"), "birth", ""),
)
# How all of them begin, seen at once.
_STARTS = ("__x64_", "__do_sys_", "__ia32_", "sys_ni", "asm_", "do_exit", "ret_from_fork")
# The names of SYSCALL_DEFINE that are not those of the manual pages (and of strace).
_MANUAL = {
    "newstat": "stat",
    "newlstat": "lstat",
    "newfstat": "fstat",
    "newuname": "uname",
    "sendfile64": "sendfile",
    "umount": "umount2",
    "ni_syscall": "[not implemented]",
    "page_fault": "[page fault]",
    "apic_timer_interrupt": "[timer interrupt]",
    "common": "[device interrupt]",
    "do_exit": "[end of killed tasks]",
}
_EXITS = ("exit", "exit_group")
# Rows of no entry: plugin/calls.c.
UNNAMED, TRAP, TASK = "[unnamed system call]", "[other trap]", "[kernel threads and new tasks]"
UNIMPLEMENTED = _MANUAL["ni_syscall"]
_EXTRA = {0xFFFFFFFD: UNNAMED, 0xFFFFFFFE: TRAP, 0xFFFFFFFF: TASK}
REST = "[not assigned]"


class Table(Protocol):
    """What is needed of a symbol table (kernel.symbols.SymbolTable)."""

    @property
    def addresses(self) -> NDArray[np.uint64]:
        """Start of each function, shape (n,), rising."""

    @property
    def all_names(self) -> tuple[str, ...]:
        """Name of each function."""


class Entries(Struct, frozen=True, kw_only=True):
    """The entries of a kernel: ``text`` is the list as the plugin reads it, ``rows`` the names of its rows."""

    text: str
    rows: tuple[str, ...]


def _entry(symbol: str) -> tuple[Kind, str] | None:
    for pattern, kind, suffix in _NAMES:
        if match := pattern.match(symbol):
            name = match[match.lastindex or 0]
            ends = kind == "call" and name in _EXITS
            plain = f"[{name.replace('_', ' ')}]" if kind in ("fault", "irq") else name
            return "exit" if ends else kind, _MANUAL.get(name, plain) + suffix
    return None


def find(table: Table) -> Entries | None:
    """The entries of a kernel with these symbols; None where no system call is known by its name."""
    rows: dict[str, int] = {}
    lines = [_HEAD]
    likely = [place for place, symbol in enumerate(table.all_names) if symbol.startswith(_STARTS)]
    for place in likely:
        address, found = int(table.addresses[place]), _entry(table.all_names[place])
        if found is None:
            continue
        kind, name = found
        row = 0 if kind == "birth" else rows.setdefault(name, len(rows))
        lines.append(f"{kind} {address:x} {row}")
    if not any(line.startswith(("call ", "exit ")) for line in lines):
        return None
    return Entries(text="\n".join([*lines, ""]), rows=tuple(rows))


def counted(entries: Entries, table: NDArray[np.int64], kernel_instructions: int) -> Mapping[str, CallCount]:
    """What the plugin counted, by name.

    Args:
        table: rows of the plugin's section: row, calls, instructions, REP bytes; shape (n, 4).
        kernel_instructions: of the whole interval; what no row has is ``REST``, so that the rows add up to it.

    Returns:
        {} where no entry was recognised, as on arm64, of which stacks alone are followed.
    """
    found: dict[str, CallCount] = {}
    for row, calls, instructions, rep_bytes in table.tolist():
        name = _EXTRA.get(row) or (entries.rows[row] if 0 <= row < len(entries.rows) else REST)
        found[name] = CallCount(calls=calls, instructions=instructions, rep_bytes=rep_bytes)
    if found.keys() <= {TRAP, TASK, UNNAMED, REST}:
        return {}
    rest = kernel_instructions - sum(count.instructions for count in found.values())
    return found | ({REST: CallCount(calls=0, instructions=rest, rep_bytes=0)} if rest else {})


def called(names: Sequence[str], executed: Sequence[int]) -> dict[str, int]:
    """How often each system call was made, where the plugin does not tell: as often as its first instruction ran.

    Args:
        names: the kernel's function at each address that ran, the addresses rising.
        executed: how often.
    """
    found: dict[str, int] = {}
    for symbol, place in {symbol: place for place, symbol in reversed([*enumerate(names)])}.items():
        entry = _entry(symbol) if symbol.startswith(_STARTS) else None
        if entry is not None and entry[0] in ("call", "exit"):
            found[entry[1]] = max(executed[place], found.get(entry[1], 0))  # __x64_sys_ may call its __do_sys_
    return dict(sorted(found.items()))
