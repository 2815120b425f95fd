# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels without a symbol table are read by the names of their kallsyms; a real compiled image is the example."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from kdelta.attribution import code, images, stripped
from kdelta.attribution.disassembly import Image
from kdelta.errors import UserError
from kdelta.kernel import symbols

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

BEFORE = """
__attribute__((noinline)) int step(int a) { return a * 3 + 1; }
__attribute__((noinline)) int walk(int a) { return step(a) + step(a + 1); }
void _start(void) { walk(4); for (;;); }
"""
AFTER = BEFORE.replace(
    "return step(a) + step(a + 1)", "int i, s = 0; for (i = 0; i < a; i++) s += step(i ^ s); return s"
)


def built(folder: Path, name: str, text: str, *more: str) -> bytes:
    (folder / f"{name}.c").write_text(text)
    flags = [
        *more,
        "-O1",
        "-ffreestanding",
        "-fno-pie",
        "-no-pie",
        "-nostdlib",
        "-static",
        "-Wl,-Ttext=0xffffffff81000000",
    ]
    target = folder / name
    subprocess.run(
        ["gcc", *flags, "-mcmodel=kernel", str(folder / f"{name}.c"), "-o", str(target)],
        check=True,
        capture_output=True,
    )
    return target.read_bytes()


def table_of(data: bytes, folder: Path) -> symbols.SymbolTable:
    """The functions of an image as its kallsyms would have them."""
    (folder / "named").write_bytes(data)
    text = subprocess.run(["nm", "-n", str(folder / "named")], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    functions = [(int(a, 16), n) for a, kind, n in rows if kind in "tT" and not n.startswith("_e")]
    end = max(a for a, _ in functions) + 64
    return symbols.SymbolTable(
        source="kallsyms",
        ranges=((functions[0][0], end),),
        addresses_le=np.array([a for a, _ in functions], "<u8").tobytes(),
        text="\n".join(n for _, n in functions),
    )


def stripped_of(data: bytes, folder: Path) -> bytes:
    (folder / "bare").write_bytes(data)
    subprocess.run(["strip", str(folder / "bare")], check=True)
    return (folder / "bare").read_bytes()


Pair = tuple[stripped.NamedImage, stripped.NamedImage]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    images = []
    for name, text in (("before", BEFORE), ("after", AFTER)):
        data = built(tmp_path, name, text)
        images.append(stripped.NamedImage(stripped_of(data, tmp_path), table_of(data, tmp_path), name))
    return images[0], images[1]


def test_the_symbol_table_is_gone_and_the_names_stand_in(pair: Pair, tmp_path: Path) -> None:
    bare = stripped_of(built(tmp_path, "x", BEFORE), tmp_path)
    with pytest.raises(UserError, match="stripped"):
        Image(bare)
    assert {"step", "walk", "_start"} <= set(pair[0].functions)


def test_sizes_between_the_names_tell_which_function_grew(pair: Pair) -> None:
    diff = stripped.size_diff(*pair)
    changed = {one.name: one.delta for one in diff.functions}
    assert changed["walk"] != 0
    assert "step" not in changed
    assert "walk" in stripped.sentence(diff)


def test_sizes_of_two_kinds_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a vmlinux and the same one without its symbol table 24,572 of 27,728 functions differed, by +3.14 %."""
    data = built(tmp_path, "same", BEFORE, "-falign-functions=64")
    table = table_of(data, tmp_path)
    bare = stripped.NamedImage(stripped_of(data, tmp_path), table)
    assert stripped.size_diff(Image(data), bare).functions
    monkeypatch.setattr(symbols, "from_image", lambda _, kallsyms_alone=False: table)
    for two in ((Image(data), bare), (bare, Image(data))):
        diff, whole = images.compare(*two)
        assert not diff.functions and diff.total_before == diff.total_after and not whole
    assert code.function_diff(*images.alike(Image(data), bare), "step") == ""
    assert images.compare(Image(data), Image(data))[1], "where both have a table, instructions are compared"


def test_one_function_can_be_read_with_the_names_of_what_it_calls(pair: Pair) -> None:
    text = code.function_diff(pair[0], pair[1], "walk")
    assert "step" in text
    assert code.function_diff(pair[0], pair[1], "step") == ""


def test_data_behind_the_last_function_of_a_section_is_no_part_of_it(tmp_path: Path) -> None:
    """Debian's kernels named gfp_allowed_mask srso_alias_return_thunk+0xf64465: the next name is behind all data."""
    text = 'int mask = 7; __attribute__((section(".init.text"))) void late(void) {}\n'
    text += (
        "__attribute__((noinline)) int masked(int a) { return a & mask; }\nvoid _start(void) { masked(4); for (;;); }"
    )
    data = built(tmp_path, "x", text, "-Wl,--section-start=.init.text=0xffffffff82000000")
    image = stripped.NamedImage(stripped_of(data, tmp_path), table_of(data, tmp_path))
    assert "\tandl [.data](%rip), %eax" in image.listing(image.functions["masked"])
    assert [image.name_of(one.address) for one in image.functions.values()] == list(image.functions)
    with pytest.raises(UserError, match=r"'nosuch': in neither kernel$"):
        code.function_diff(image, image, "nosuch")


def test_a_variable_of_each_cpu_goes_by_its_section_also_where_that_is_linked_from_0(tmp_path: Path) -> None:
    """One address stood there, another in each build: before 6.15 the kernel's code and these are 2 GB apart."""
    text = 'asm(".section percpu,\\"aw\\"\\n.fill 64\\ncount: .quad 5\\n.text");\n'
    text += 'void _start(void) { asm("incl %gs:count(%rip)"); for (;;); }'
    table = table_of(built(tmp_path, "x", text, "-Wl,--section-start=percpu=0"), tmp_path)
    command = ["objcopy", "--rename-section", "percpu=.data..percpu", str(tmp_path / "x")]  # ld takes it for .data
    subprocess.run(command, check=True)
    data = (tmp_path / "x").read_bytes()
    image = stripped.NamedImage(stripped_of(data, tmp_path), table)
    assert "\tincl %gs:[.data..percpu](%rip)" in image.listing(image.functions["_start"])


def test_a_label_before_padding_alone_is_no_function(tmp_path: Path) -> None:
    """``__kprobes_text_end`` of Debian's 6.1 reached over 1.7 MB of traps, and led the list of what changed."""
    label = 'asm(".globl __kprobes_text_end\\n__kprobes_text_end: .fill 4096, 1, 0xcc\\n");'
    data = built(tmp_path, "padded", BEFORE + label)
    table = table_of(data, tmp_path)
    assert "__kprobes_text_end" in table.all_names
    padded = stripped.NamedImage(stripped_of(data, tmp_path), table)
    assert "__kprobes_text_end" not in padded.functions
    assert {"step", "walk", "_start"} <= set(padded.functions)
    plain = built(tmp_path, "plain", BEFORE)
    diff = stripped.size_diff(stripped.NamedImage(stripped_of(plain, tmp_path), table_of(plain, tmp_path)), padded)
    assert (diff.functions, diff.total_before) == ((), diff.total_after)


def test_an_image_that_none_of_the_names_lies_in_is_refused(tmp_path: Path) -> None:
    data = built(tmp_path, "x", BEFORE)
    table = table_of(data, tmp_path)
    moved = (np.frombuffer(table.addresses_le, "<u8") + (1 << 30)).astype("<u8").tobytes()
    low, high = table.ranges[0]
    elsewhere = symbols.SymbolTable(
        source="kallsyms", ranges=((low + (1 << 30), high + (1 << 30)),), addresses_le=moved, text=table.text
    )
    with pytest.raises(UserError, match="no function of its kallsyms"):
        stripped.NamedImage(stripped_of(data, tmp_path), elsewhere, "x")


def test_a_sentence_names_the_string_instructions_that_came_in() -> None:
    one = code.FunctionCode(name="pipe_write", size_before=100, size_after=120, note="rep stosq introduced")
    diff = code.CodeDiff(functions=(one,), total_before=1000, total_after=1020)
    assert stripped.sentence(diff) == (
        "machine code of 1 function differs, +20 bytes: pipe_write +20; introduced: rep stosq in pipe_write"
    )
    same = code.CodeDiff(functions=(), total_before=1, total_after=1)
    assert stripped.sentence(same) == "the machine code is identical"
    at_boot = replace(same, alternatives_differ=True)  # it was "machine code of 0 functions differs, +0 bytes"
    assert stripped.sentence(at_boot) == f"{stripped.IDENTICAL} but for instructions that are patched in at boot"
