# SPDX-License-Identifier: GPL-2.0-or-later
"""Which page a register of arm64 code points to: what wrote it last, on each way."""

from __future__ import annotations

import pytest

from kdelta.attribution.pages import Pages, written

BASE = 0x1000


def page(register: str, *lines: str) -> int | None:
    """The page in ``register`` at the last of ``lines``; a jump to ``@N`` goes to the N-th."""
    raw = []
    for index, line in enumerate(lines):
        mnemonic, _, operands = line.partition(" ")
        head, at, to = operands.partition("@")
        raw.append((4 * index, 4, mnemonic, f"{head}#{BASE + 4 * int(to):#x}" if at else operands))
    return Pages(raw, BASE).of(register, len(raw) - 1)


def test_an_offset_belongs_to_the_page_that_was_loaded_last() -> None:
    assert page("x0", "adrp x0, #0xf000", "ldr x1, [x0, #0x10]") == 0xF000
    assert page("x0", "adrp x0, #0xf000", "adrp x0, #0xe000", "ldr x1, [x0, #0x10]") == 0xE000
    assert page("x0", "ldr x1, [x0, #0x10]") is None
    assert page("x2", "adrp x0, #0xf000", "ldr x1, [x2, #0x10]") is None


@pytest.mark.parametrize(
    "line",
    [
        "mrs x0, sp_el0",  # `current`, of which a field was told as a place in a function far off
        "mov w0, #1",
        "add x0, x0, #0x18",  # the address itself: what follows is a field
        "ldr x0, [x3]",
        "ldp x4, x0, [x3]",
        "ldaddal w4, w0, [x3]",
        "stxr w0, x4, [x3]",
        "str x4, [x0, #0x10]!",
        "ldr x4, [x0], #8",
        "bl @0",
        "movk x0, #1, lsl #16",
    ],
)
def test_a_register_that_was_written_since_holds_no_page(line: str) -> None:
    assert page("x0", "nop", "adrp x0, #0xf000", line, "ldr x1, [x0, #0x10]") is None


@pytest.mark.parametrize(
    "line",
    [
        "str x0, [x3]",
        "stp x0, x1, [sp, #0x10]",
        "cmp x0, x1",
        "stadd w0, [x3]",
        "ldadd w0, w4, [x3]",
        "cbz x0, @0",
        "mov x1, x0",
        "ldr x1, [x0, #8]",
        "prfm pstl1strm, [x0]",
        "msr daif, x0",
        "b.eq @0",
    ],
)
def test_a_register_that_was_read_still_does(line: str) -> None:
    assert page("x0", "adrp x0, #0xf000", line, "ldr x1, [x0, #0x10]") == 0xF000


def test_a_call_keeps_the_registers_that_are_its_callers() -> None:
    assert page("x19", "adrp x19, #0xf000", "bl @0", "ldr x1, [x19, #0x10]") == 0xF000


def test_each_way_counts_and_no_other() -> None:
    around = ("adrp x0, #0xf000", "cbz x3, @4", "mov x0, x4", "ret", "ldr x1, [x0, #0x10]")
    assert page("x0", *around) == 0xF000  # what stands between does not run
    joined = ("adrp x0, #0xf000", "cbz x3, @3", "mov x0, x4", "ldr x1, [x0, #0x10]")
    assert page("x0", *joined) is None
    same = ("cbz x3, @3", "adrp x0, #0xf000", "b @4", "adrp x0, #0xf000", "ldr x1, [x0, #0x10]")
    assert page("x0", *same) == 0xF000
    two = ("cbz x3, @3", "adrp x0, #0xe000", "b @4", "adrp x0, #0xf000", "ldr x1, [x0, #0x10]")
    assert page("x0", *two) is None


def test_a_loop_ends_and_what_a_table_leads_to_is_behind_its_jump() -> None:
    assert page("x0", "adrp x0, #0xf000", "b.ne @2", "cbnz x3, @1", "ldr x1, [x0, #0x10]") == 0xF000
    assert page("x0", "adrp x0, #0xf000", "br x9", "mov x0, x1", "ret", "ldr x1, [x0, #0x10]") == 0xF000


def test_an_instruction_that_comes_round_to_itself_finds_what_it_wrote() -> None:
    """A walk over a list: what the page held in the first turn is a field in the second."""
    raw = [(0, 4, "adrp", "x0, #0xf000"), (4, 4, "ldr", "x0, [x0, #8]"), (8, 4, "cbnz", f"x0, #{BASE + 4:#x}")]
    assert Pages(raw, BASE).of("x0", 1) is None
    raw[1] = (4, 4, "ldr", "x1, [x0, #8]")
    assert Pages(raw, BASE).of("x0", 1) == 0xF000


def test_nothing_but_numbered_registers_holds_an_address() -> None:
    assert written("mov", "xzr, x1") == frozenset() and written("fmov", "d0, x1") == frozenset()
    assert written("add", "sp, sp, #0x10") == frozenset()
