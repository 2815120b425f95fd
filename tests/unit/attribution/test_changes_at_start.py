# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs in when the kernel's start calls a function."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import changes, code
from kdelta.attribution.disassembly import Image
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

SOURCE = """\
int limit;
__attribute__((section(".init.text"), used)) static int init_pipe_fs3(void) { limit = 5; return 0; }
asm(".section \\".initcall5.init\\", \\"a\\"\\n__initcall__kmod_pipe__571_1635_init_pipe_fs35:\\n"
    ".long init_pipe_fs3 - .\\n.previous");
__attribute__((noinline)) int makes(int a) { return a + limit; }
int main_loop(int a) { return makes(a); }
"""


def test_a_function_that_the_start_calls_at_another_level_differs(tmp_path: Path) -> None:
    """Machine code and data were "identical: there is nothing to measure", and the kernel might not start."""
    make = Maker(tmp_path, "x86_64")

    def found(after: str) -> tuple[changes.Change, ...]:
        images = Image(make(SOURCE)), Image(make(after))
        return changes.find(*images, code.compare(*images), lambda _: ()).changes

    assert found(SOURCE.replace("571_1635", "44_1636")) == ()
    (one,) = found(SOURCE.replace("initcall5", "initcall7s").replace("_fs35:", "_fs37s:"))
    assert (one.name, one.kind, one.boot_only) == ("init_pipe_fs3", "initcall", True)
    assert one.title == "init_pipe_fs3 (called at another time of the start, boot only, may set limit)"
    assert {"makes", "init_pipe_fs3"} <= {*one.hosts}
