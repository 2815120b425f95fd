# SPDX-License-Identifier: GPL-2.0-or-later
"""Values that the kernel's start writes into code: who has them, of images made here by the compiler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import changes, code, data, runtime_consts
from kdelta.attribution.disassembly import Image
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

# As arch/x86/include/asm/runtime-const.h has it. Of cache nothing but the value is kept: the compiler drops it.
SOURCE = """
#define VALUE(name) ({ long v; asm("movabs $0x0123456789abcdef, %0\\n1:\\n" \
    ".pushsection runtime_ptr_" #name ", \\"a\\"\\n.long 1b - 8 - .\\n.popsection" : "=r"(v)); v; })
#define INIT(name) do { extern int __start_runtime_ptr_##name[], __stop_runtime_ptr_##name[]; \
    for (int *at = __start_runtime_ptr_##name; at < __stop_runtime_ptr_##name; at++) \
        *(long *)((char *)at + *at) = (long)name; } while (0)
static void *cache;
long table = 1;
__attribute__((noinline)) void *makes(long size) { return (void *)size; }
__attribute__((noinline)) long takes(void) { return VALUE(cache) + 1; }
__attribute__((noinline)) long gives(void) { return VALUE(cache) + 2; }
__attribute__((noinline)) long looks(void) { return VALUE(table) + 3; }
__attribute__((noinline)) long other(void) { return 4; }
__attribute__((section(".init.text"), noinline)) void starts(void) { cache = makes(128); INIT(cache); }
__attribute__((section(".init.text"), noinline)) void begins(void) { INIT(table); }
int main_loop(int a) { return takes() + gives() + looks() + other(); }
"""


@pytest.fixture
def images(tmp_path: Path) -> tuple[Image, Image]:
    make = Maker(tmp_path, "x86_64")
    return Image(make(SOURCE)), Image(
        make(SOURCE.replace("makes(128)", "makes(256)").replace("table = 1", "table = 2"))
    )


def test_what_runs_at_boot_alone_counts_through_those_into_whose_code_its_value_is_written(
    images: tuple[Image, Image],
) -> None:
    """The hash of dentries, 7.3: 64 buckets for 131,072 were looked at by access(2), and no other lookup."""
    found = changes.find(*images, code.compare(*images), lambda _: ()).changes
    assert [(one.name, one.kind, one.hosts, one.sets) for one in found] == [
        ("starts", "code", ("gives", "starts", "takes"), ("cache",)),
        ("table", "data", ("begins", "looks"), ()),
    ]
    assert found[0].title == "starts (boot only, may set cache)" and not found[0].in_no_case


def test_users_are_those_functions_alone(images: tuple[Image, Image]) -> None:
    assert runtime_consts.users(images[0]) == {"cache": {"takes", "gives"}, "table": {"looks"}}
    assert data.readers(images[0], ["table", "absent"]) == {"table": ("begins", "looks"), "absent": ()}
    assert not runtime_consts.variable("__start_runtime_const")
