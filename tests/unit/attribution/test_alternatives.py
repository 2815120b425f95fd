# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose instructions are patched otherwise at boot, of images made here as the kernel's macros make them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import alternatives, changes, code
from kdelta.attribution.disassembly import Image
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def patched(new: str, cpu: int = 9) -> str:
    """Three bytes of a function, and what replaces them: the ALTERNATIVE() of the kernel."""
    return (
        r'asm volatile("1: nop; nop; nop\n2:\n.pushsection .altinstructions,\"a\"\n.long 1b - ., 3f - .\n'
        rf".long {cpu}\n.byte 2b - 1b, 4f - 3f\n.popsection\n.pushsection .altinstr_replacement,\"ax\"\n"
        rf'3: {new}\n4:\n.popsection");'
    )


def source(one: str, two: str, before: str = "") -> str:
    return f"""{before}
__attribute__((noinline)) int first(int a) {{ {one} return a * 3; }}
__attribute__((noinline)) int second(int a) {{ {two} return a * 5; }}
int main_loop(int a) {{ return first(a) + second(a); }}
"""


def found(folder: Path, before: str, after: str) -> frozenset[str] | None:
    make = Maker(folder, "x86_64")
    return alternatives.differing(Image(make(before)), Image(make(after)))


def test_the_function_is_named_into_which_another_thing_is_patched(tmp_path: Path) -> None:
    plain = source(patched("lfence"), patched("mfence"))
    moved = source(patched("lfence"), patched("mfence"), "int more(int a) { return a; }")
    assert found(tmp_path, plain, moved) == frozenset()
    assert found(tmp_path, plain, source(patched("lfence"), patched("sfence"))) == frozenset({"second"})
    assert found(tmp_path, plain, source(patched("lfence", cpu=10), patched("mfence"))) == frozenset({"first"})
    twice = source(patched("lfence"), patched("mfence") + patched("mfence"))
    assert found(tmp_path, plain, twice) == frozenset({"second"})


def test_a_number_in_what_is_patched_in_is_a_difference_and_an_address_none(tmp_path: Path) -> None:
    """FILL_RETURN_BUFFER of __switch_to_asm with half the loops, or for other CPUs: "nothing to measure"."""
    make = Maker(tmp_path, "x86_64")
    place = ".pushsection .data\\nplace: .quad 0\\n.popsection\\n"

    def image(one: str, cpu: int = 9, before: str = "") -> Image:
        bytes_ = patched(one, cpu).replace("nop; nop; nop", "; ".join(["nop"] * 9))
        return Image(make(source(bytes_, patched("mfence"), f'asm("{place}");{before}')))

    def told(one: Image, other: Image) -> tuple[bool, list[str]]:
        whole = changes.find(one, other, code.compare(one, other), lambda _: ())
        return whole.nothing, [change.title for change in whole.changes]

    loops = image("mov $16, %r12d")
    assert told(loops, image("mov $8, %r12d")) == (False, ["first (patched at boot)"])
    assert told(loops, image("mov $16, %r12d", cpu=10)) == (False, ["first (patched at boot)"])
    more = "int more(int a) { return a * 17; } int value = 3;"
    for same in ("mov $16, %r12d", "mov place(%rip), %rax", "jmp main_loop", "call second"):
        titles = told(image(same), image(same, before=more))[1]
        assert titles and not any("patched" in title for title in titles)


def test_what_is_written_in_another_way_is_not_guessed(tmp_path: Path) -> None:
    plain = source(patched("lfence"), patched("mfence"))
    odd = plain.replace(r".byte 2b - 1b, 4f - 3f\n", r".byte 2b - 1b, 4f - 3f, 0\n")  # another structure
    far = plain.replace("3f - .", "0x70000000")
    assert [found(tmp_path, plain, other) for other in (odd, far, source("", ""))] == [None] * 3
