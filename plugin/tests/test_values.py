# SPDX-License-Identifier: GPL-2.0-or-later
"""What instructions do with registers, as the plugin takes it, against a disassembler: on the code of the C library."""

from __future__ import annotations

import ctypes
import subprocess
from collections import Counter
from pathlib import Path

import capstone
import pytest
from capstone import x86
from elftools.elf.elffile import ELFFile
from test_counts import HERE

KEEPS, WRITES, COPIES, LOADS, COMPARES, COMPARES_MEMORY, TESTS_ONE = range(1, 8)
STACK = 4
BYTES = 400_000
_OLD = ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di")
_BYTES = ("al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil")
NUMBERS = {f"{width}{name}": i for i, name in enumerate(_OLD) for width in ("r", "e", "")}
NUMBERS |= {name: i for i, name in enumerate(_BYTES)} | {f"{name}h": i for i, name in enumerate("acdb")}
NUMBERS |= {f"r{i}{width}": i for i in range(8, 16) for width in ("", "d", "w", "b")}


class Values(ctypes.Structure):
    _fields_ = (("role", ctypes.c_uint8), ("a", ctypes.c_uint8), ("b", ctypes.c_uint8))


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    made = tmp_path_factory.mktemp("values") / "values.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(made), str(HERE.parent / "values.c")], check=True)
    library = ctypes.CDLL(str(made))
    library.x86_values.restype = Values
    library.x86_values.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    return library


def _numbers(insn: capstone.CsInsn) -> list[int | None]:
    """Of each operand the number of its register, None of others."""
    return [NUMBERS.get(insn.reg_name(o.reg)) if o.type == x86.X86_OP_REG else None for o in insn.operands]


def _holds(insn: capstone.CsInsn, found: Values) -> bool:
    """Whether what is said of an instruction is so."""
    written = {NUMBERS[name] for r in insn.regs_access()[1] if (name := insn.reg_name(r)) in NUMBERS} - {STACK}
    named, sizes = _numbers(insn), [o.size for o in insn.operands]
    memory = [o.type == x86.X86_OP_MEM for o in insn.operands]
    if found.role in (COPIES, LOADS):
        source = memory[1] and sizes[0] == 4 if found.role == LOADS else named[1] == found.b
        return insn.mnemonic == "mov" and named[0] == found.a and bool(source)
    if found.role in (COMPARES, COMPARES_MEMORY):
        wanted = {found.a, found.b} if found.role == COMPARES else {found.a, None}
        return insn.mnemonic == "cmp" and set(named) == wanted and any(memory) == (None in wanted) and sizes == [4, 4]
    if found.role == TESTS_ONE:
        return insn.mnemonic == "test" and named == [found.a, None] and insn.operands[1].imm == 1
    return found.role == 0 or written <= ({found.a} if found.role == WRITES else set())


def _worth_knowing(insn: capstone.CsInsn) -> int:
    """The role that must be found, 0 where any will do."""
    named = _numbers(insn)
    if insn.mnemonic not in ("mov", "cmp") or insn.operands[0].size != 4 or insn.operands[1].type == x86.X86_OP_IMM:
        return 0
    if insn.mnemonic == "cmp":
        return COMPARES_MEMORY if None in named else COMPARES
    return LOADS if insn.operands[1].type == x86.X86_OP_MEM else COPIES if None not in named else KEEPS


def test_what_is_said_of_registers_is_what_a_disassembler_says(values: ctypes.CDLL) -> None:
    libc = next((path for path in Path("/lib").glob("x86_64-linux-gnu/libc.so.6")), Path("/lib64/libc.so.6"))
    if not libc.is_file():
        pytest.skip("no C library of x86-64 here")
    with libc.open("rb") as file:
        text = ELFFile(file).get_section_by_name(".text")
        assert text is not None
        code, start = text.data()[:BYTES], text["sh_addr"]
    machine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    machine.detail = machine.skipdata = True
    seen: Counter[int] = Counter()
    for insn in machine.disasm(code, start):
        if not insn.id:
            continue
        found = values.x86_values(bytes(insn.bytes), insn.size)
        seen[found.role] += 1
        where = f"{insn.mnemonic} {insn.op_str} ({bytes(insn.bytes).hex()}): role {found.role}"
        assert _holds(insn, found), where
        assert _worth_knowing(insn) in (0, found.role), where
    assert all(seen[role] > 20 for role in range(KEEPS, TESTS_ONE + 1)), seen
