# SPDX-License-Identifier: GPL-2.0-or-later
"""A large local variable whose initial values differ: the code that copies them is the same.

From gcc 16 on it calls memcpy() for it, which the image has to have, as kernels do.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import changes, code
from kdelta.attribution.disassembly import Image
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

NUMBERS = ", ".join(map(str, range(1, 39)))
SOURCE = f"""\
#pragma GCC target("general-regs-only")
struct big {{ long v[38]; const void *p, *q; }};
int moved[3] = {{ 1, 2, 3 }};
__attribute__((noinline)) long use(struct big *b) {{ return b->v[3] + b->v[37]; }}
__attribute__((noinline)) long starts(void) {{ struct big b = {{ {{ {NUMBERS} }}, &moved, use }}; return use(&b); }}
__attribute__((noinline)) long other(void) {{ struct big b = {{ {{ 7, {NUMBERS[3:]} }}, use, 0 }}; return use(&b); }}
void *memcpy(void *to, const void *from, unsigned long n)
{{
	void *at = to;
	asm volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n) :: "memory");
	return to;
}}
int main_loop(int a) {{ return starts() + other() + a; }}
"""


CALLS = """\
#pragma GCC target("general-regs-only")
__attribute__((noinline)) int named(int a, const char *name, int number) { return a + name[a] + number; }
__attribute__((noinline)) int calls(int a) { return named(a, "short", 300) + 1; }
__attribute__((noinline)) int tells(int a) { return named(a, "a text behind it", 3) + 2; }
int main_loop(int a) { return calls(a) + tells(a); }
"""


def test_a_number_beside_a_text_is_no_length_of_it(tmp_path: Path) -> None:
    """Else a function would differ where a text that is linked behind its own does."""
    make = Maker(tmp_path, "x86_64")
    images = Image(make(CALLS)), Image(make(CALLS.replace("behind it", "after it")))
    found = changes.find(*images, code.compare(*images), lambda _: ()).changes
    assert [one.title for one in found] == ["tells (text)"]


def test_initial_values_of_a_local_variable_are_compared(tmp_path: Path) -> None:
    """Machine code and data were "identical: there is nothing to measure"."""
    make = Maker(tmp_path, "x86_64")

    def found(after: str) -> list[tuple[str, tuple[str, ...]]]:
        images = Image(make(SOURCE)), Image(make(after))
        assert code.compare(*images).identical
        return [(one.title, one.hosts) for one in changes.find(*images, code.compare(*images), lambda _: ()).changes]

    assert found(SOURCE) == []
    title = "starts (initial values of a local variable)"
    assert found(SOURCE.replace("36, 37, 38 }, &moved", "36, 99, 38 }, &moved")) == [(title, ("starts",))]
    assert found(
        SOURCE.replace("&moved, use }", "&moved, other }").replace("struct big {", "long other(void);\nstruct big {", 1)
    ) == [(title, ("starts",))]
    assert found(SOURCE.replace("int moved", "int before[9] = { 5 };\nint moved")) == [
        ("before (data, used by pointer alone)", ())
    ]
