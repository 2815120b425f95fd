# SPDX-License-Identifier: GPL-2.0-or-later
"""The vDSO lies in the kernel as data and runs in programs: who maps it does not execute it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import changes, code
from kdelta.attribution.disassembly import Image
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

SOURCE = """\
static unsigned char raw_data[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 62, 0, [60] = 7 };
struct image { void *data; unsigned long size; };
const struct image vdso_image = { raw_data, sizeof(raw_data) };
const struct image *mapped;
__attribute__((noinline)) int maps(int a) { mapped = &vdso_image; return raw_data[a & 63]; }
int main_loop(int a) { return maps(a); }
"""


@pytest.mark.parametrize(("elf_type", "kind"), [(3, "vdso"), (1, "data")])
def test_who_maps_the_vdso_does_not_stand_for_it(tmp_path: Path, elf_type: int, kind: str) -> None:
    """A spin in clock_gettime() was "looked at" by cases that execute a program, and the same."""
    make = Maker(tmp_path, "x86_64")
    source = SOURCE.replace("0, 3, 0, 62", f"0, {elf_type}, 0, 62")
    before, after = Image(make(source)), Image(make(source.replace("[60] = 7", "[60] = 8")))
    (one,) = changes.find(before, after, code.compare(before, after), lambda _: ()).changes
    assert (one.name, one.kind, one.hosts, one.in_no_case) == (
        ("raw_data", "vdso", (), True) if kind == "vdso" else ("raw_data", "data", ("maps",), False)
    )
    assert one.title == (
        "raw_data (the vDSO, which runs in programs and not in the kernel)"
        if kind == "vdso"
        else "raw_data (data, used by pointer)"
    )
