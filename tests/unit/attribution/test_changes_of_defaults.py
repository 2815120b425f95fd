# SPDX-License-Identifier: GPL-2.0-or-later
"""A default that the kernel's start reads once, and turns a static key by."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import changes, code
from kdelta.attribution.disassembly import Image
from unit.attribution.test_changes import BRANCHES
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

USERS = 20  # more than may use another variable that the start sets
BOOT = '__attribute__((section(".init.text"), noinline))'
SOURCE = f"""
{BRANCHES}
{"".join(f"__attribute__((noinline)) int user{n}(int a) {{ BRANCH(key); return a + {n}; }}" for n in range(USERS))}
volatile char early = 1;  /* __read_mostly: it stays */
int parsed[4] = {{ 1, 2 }};
__attribute__((noinline)) int parse(int *where, volatile char *to) {{ *to = 1; return *where; }}
{BOOT} int turn(void *which) {{ return which != 0; }}
{BOOT} int turns(void) {{ return early ? turn(key) : 0; }}
{BOOT} int parses(void) {{ return parse(parsed, &early); }}
__attribute__((noinline)) int counts(int a) {{ return parsed[a & 1]; }}
"""


def test_a_default_counts_through_all_who_branch_by_the_key_that_it_turns(tmp_path: Path) -> None:
    """init_on_alloc=1 by default was "used by pointer alone", and cases that "execute nothing that differs" +7 %."""
    make = Maker(tmp_path, "x86_64")
    before, after = (Image(make(one)) for one in (SOURCE, SOURCE.replace("early = 1", "early = 2")))
    (one,) = changes.find(before, after, code.compare(before, after), lambda _: ()).changes
    assert one.title == "early (data, boot only, used by pointer, may set key)" and not one.in_no_case
    assert {"asks", *(f"user{n}" for n in range(USERS))} <= {*one.hosts}
    assert "counts" not in one.hosts, "who only hands a pointer to it on does otherwise by nothing else"
