# SPDX-License-Identifier: GPL-2.0-or-later
"""What is found equal at once is what is found equal one by one, on images made here by the compiler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import code, shifted
from kdelta.attribution.disassembly import DataObject, Function, Image
from unit.attribution.test_changes import SOURCE as PLAIN
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
# No struct: gcc 16 compares a pointer in one with the function that it first held, and jumps there.
SOURCE = PLAIN.replace('struct ops table = { first, "a name" };', "int (*table[2])(int) = { first, second };").replace(
    "table.run(a)", "table[0](a)"
)
SOURCE = SOURCE.replace("int main_loop", "int (*way)(int) = host;\nint main_loop")
BIGGER = SOURCE.replace("return a * 3;", "int i; for (i = 0; i < 9; i++) a += weights[a & 7] * i; return a;").replace(
    "static __attribute__((noinline)) int first", "extern int weights[8];\nstatic __attribute__((noinline)) int first"
)


@pytest.fixture
def images(tmp_path: Path) -> tuple[Image, Image]:
    make = Maker(tmp_path, "x86_64")
    more = "int more[99] = { 1 };\nint grown(int a) { return more[a & 31] * a; }\n"
    return Image(make(SOURCE)), Image(make(more + BIGGER))


def pairs(before: Image, after: Image) -> list[tuple[Function, Function]]:
    names = sorted(before.sources.keys() & after.sources.keys())
    return [(before.sources[name][0], after.sources[name][0]) for name in names]


def test_all_functions_that_only_moved_are_found_at_once_and_no_other(images: tuple[Image, Image]) -> None:
    both = pairs(*images)
    moved = [old.name for old, new in both if old.address != new.address and old.code != new.code]
    assert "call" in moved  # else nothing is tried here
    quick = shifted.only_shifted(both, shifted.things(*images))
    assert [both[index][0].name for index in sorted(quick)] == [old.name for old, _ in both if old.name != "first"]


def test_an_operand_that_leads_elsewhere_is_a_change(images: tuple[Image, Image]) -> None:
    before, after = images
    old, new = before.sources["call"][0], after.sources["call"][0]
    at = next(at for at in range(new.size) if old.code[at] != new.code[at])
    other = bytearray(new.code)
    other[at] ^= 8  # eight bytes further: another member of the table
    turned = Function(name="call", address=new.address, code=bytes(other), section=new.section)
    found = shifted.only_shifted([(old, new), (old, turned)], shifted.things(before, after))
    assert found == {0}
    assert not code.compare(before, before).functions


def test_variables_with_addresses_of_what_moved_are_equal_others_are_not(images: tuple[Image, Image]) -> None:
    before, after = images
    both = [(before.objects[name][0], after.objects[name][0]) for name in ("way", "weights")]
    old, new = both[1]
    both.append((old, DataObject(name="weights", address=new.address, content=b"\x09" + new.content[1:])))
    assert both[0][0].content != both[0][1].content
    assert shifted.same_data(both, shifted.things(before, after)) == {0, 1}


def test_nothing_to_compare_is_nothing(images: tuple[Image, Image]) -> None:
    both = shifted.things(*images)
    assert shifted.only_shifted([], both) == set() == shifted.same_data([], both)


PER_CPU = """\
#define EACH __attribute__((section(".data..percpu")))
EACH int stacks[20000] = { 1 };
NEW
EACH int hits[4] = { 2 }, misses[4] = { 3 };
int of(char *memory) { return *(int *)(memory + (unsigned long)hits + 4); }
void *all(void) { return misses; }
int other(char *memory) { return *(int *)(memory + (unsigned long)OTHER); }
int number(char *memory) { return *(int *)(memory + PLACE); }
int main_loop(int a) { return a + 0 * (long)&stacks; }
"""


def per_cpu(make: Maker, **words: str) -> Image:
    text = PER_CPU
    for word, told in ({"NEW": "", "OTHER": "hits", "PLACE": "900000"} | words).items():
        text = text.replace(word, told)
    # within a section gcc orders as it likes; -fno-toplevel-reorder: as the source does
    return Image(make(text, "-Wl,--section-start=.data..percpu=0", "-fno-toplevel-reorder"))


def test_a_variable_of_each_cpu_that_moved_is_no_change_of_who_uses_it(tmp_path: Path) -> None:
    make = Maker(tmp_path, "x86_64")
    before = per_cpu(make)
    after = per_cpu(make, NEW="EACH int new[4] = { 4 };", OTHER="misses", PLACE="900016")
    old, new = before.sources["of"][0], after.sources["of"][0]
    assert old.code != new.code and "hits+0x4(%rdi)" in before.listing(old)[0]
    assert [one.name for one in code.compare(before, after).functions] == ["number", "other"]


def test_a_number_is_no_way_to_where_it_would_lead(tmp_path: Path) -> None:
    """13 and 12 led to one hole among the data, from where they stood: the code was "identical"."""
    hole = 'asm(".section .bss.hole,\\"aw\\",@nobits\\n.skip 0x400000\\n.text\\n");\n'
    calls = "__attribute__((noinline)) int other(int a, int b) { return a * b; }\n"
    text = f"{hole}{calls}int main_loop(int a) {{ return other(a, 0x10000d) + (a ^ 0x20000d); }}\n"
    make = Maker(tmp_path, "x86_64")
    before = Image(make(text))
    for other in ("0x10000c) ", "0x10ff0d) "):
        changed = Image(make(text.replace("0x10000d) ", other)))
        assert [one.name for one in code.compare(before, changed).functions] == ["main_loop"]
    changed = Image(make(text.replace("0x20000d", "0x20000c")))
    assert [one.name for one in code.compare(before, changed).functions] == ["main_loop"]


def test_the_end_of_a_section_that_moved_and_what_a_warning_hands_on_are_no_change(tmp_path: Path) -> None:
    """``&_sdata - 1`` stands in static_protections() of Linux; a WARN() of 7.x hands on its entry of __bug_table."""
    warning = '.pushsection __bug_table,\\"aw\\"\\n1: .skip 16\\n.popsection\\nlea 1b(%rip), %rdi'
    limit = '.pushsection .far,\\"aw\\",@nobits\\n.skip SIZE\\n.section .on,\\"aw\\",@nobits\\n.balign 4096\\n'
    limit += "edge: .skip 8\\n.popsection\\n"
    text = f'asm("{limit}");\nint main_loop(int a) {{ asm("{warning}\\nmov $edge - 1, %rax"); return a; }}\n'
    make = Maker(tmp_path, "x86_64")
    before, after = (Image(make(text.replace("SIZE", size))) for size in ("0x1800", "0x3800"))
    old, new = before.sources["main_loop"][0], after.sources["main_loop"][0]
    assert old.code != new.code
    assert not code.compare(before, after).functions
