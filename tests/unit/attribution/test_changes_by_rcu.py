# SPDX-License-Identifier: GPL-2.0-or-later
"""Changed functions that RCU alone calls: a case executes them, but in part outside of what is counted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import changes, code
from kdelta.attribution.disassembly import Image
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

SOURCE = """
void (*volatile queued)(int);
int calls[2];
__attribute__((noinline)) void call_rcu(void (*later)(int)) { queued = later; }
static __attribute__((noinline)) void frees(int a) { calls[a & 1]++; }
__attribute__((noinline)) int asks(int a) { call_rcu(frees); return a; }
int main_loop(int a) { return asks(a); }
"""


@pytest.mark.parametrize(
    ("hands", "callers", "told"),
    [
        ("call_rcu(", (), "frees (its address is taken in asks: it may run later, outside of what is counted)"),
        ("call_rcu(", ("other",), "frees"),  # it is called by name, too
        ("queued = (", (), "frees"),
    ],
)
def test_a_function_that_rcu_calls_may_run_later(
    tmp_path: Path, hands: str, callers: tuple[str, ...], told: str
) -> None:
    """15,000 instructions more in delayed_put_task_struct() were +4674 an operation of stress-ng's vfork, unsaid."""
    make = Maker(tmp_path, "x86_64")
    source = SOURCE.replace("call_rcu(frees", f"{hands}frees")
    before, after = Image(make(source)), Image(make(source.replace("++", " += 3")))
    found = changes.find(before, after, code.compare(before, after), lambda name: callers if name == "frees" else ())
    assert [one.title for one in found.changes] == [told]
