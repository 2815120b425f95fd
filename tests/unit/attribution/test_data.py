# SPDX-License-Identifier: GPL-2.0-or-later
"""Variables of two images made here by the compiler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import data
from kdelta.attribution.disassembly import Image
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

COUNTED = """\
__attribute__((used)) static const char __UNIQUE_ID_console_7[8] = "uart";
__attribute__((used)) static const char __UNIQUE_ID_console_8[8] = "ns16550";
__attribute__((used)) static const char __UNIQUE_ID_console_9[8] = "pl011";
char shown[] = "int __UNIQUE_ID_x__99 = (REC->n); __UNIQUE_ID_x__99 < 128";
int main_loop(int a) { return shown[a]; }
"""


def moved(text: str) -> str:
    """As where a header before it uses the counter of macros once more."""
    for was, now in (("_9[", "_10["), ("_8[", "_9["), ("_7[", "_8["), ("x__99", "x__100")):
        text = text.replace(was, now)
    return text


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", ()),
        ("ns16550", "ns16750", ("__UNIQUE_ID_console",)),
        ("< 128", "< 256", ("shown",)),
    ],
)
def test_what_macros_count_is_no_value(tmp_path: Path, old: str, new: str, told: tuple[str, ...]) -> None:
    """A READ_ONCE() in a header of 7.3 "changed" four consoles of the start and the format of a trace event."""
    make = Maker(tmp_path, "x86_64")
    before, after = Image(make(COUNTED)), Image(make(moved(COUNTED).replace(old, new) if old else moved(COUNTED)))
    assert data.changed(before, after) == told


TABLES = """\
__asm__(".data\\n.balign 4096\\n"
        ".globl filling\\n.type filling, @object\\nfilling: .fill 4096, 1, 1\\n.size filling, . - filling\\n"
        ".globl top\\n.type top, @object\\ntop: .quad next - 0xffffffff80000000 + 0x63\\n.fill 511, 8, 0\\n"
        ".size top, 4096\\n"
        ".globl next\\n.type next, @object\\nnext: .quad 0x1000063\\n.fill 511, 8, 0\\n.size next, 4096\\n");
extern char filling[];
int main_loop(int a) { return filling[a]; }
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (".fill 4096", ".fill 8192", ()),
        ("+ 0x63", "+ 0x67", ("top",)),
        ("0x1000063", "0x1200063", ("next",)),
    ],
)
def test_a_page_table_that_moved_is_no_other_one(tmp_path: Path, old: str, new: str, told: tuple[str, ...]) -> None:
    """2 of 14 patches to 7.3.4 moved .init.data by a page, and had "changed" three tables of the PVH entry."""
    make = Maker(tmp_path, "x86_64")
    found = data.changed(Image(make(TABLES)), Image(make(TABLES.replace(old, new))))
    assert tuple(name for name in found if name != "filling") == told
