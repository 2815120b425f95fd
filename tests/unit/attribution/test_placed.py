# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between two images in where it lies alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import changes, code
from kdelta.attribution.changes import Changes
from kdelta.attribution.disassembly import Image
from kdelta.model import Looked
from kdelta.report import looked as sentences
from unit.attribution.test_changes import SOURCE
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

WEIGHTS = "int weights[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };\n"
AS_WRITTEN = "-fno-toplevel-reorder"


def found(tmp_path: Path, after: str, *flags: str) -> Changes:
    make = Maker(tmp_path, "x86_64")
    old, new = Image(make(SOURCE, AS_WRITTEN)), Image(make(after, AS_WRITTEN, *flags))
    return changes.find(old, new, code.compare(old, new), lambda _: ())


def test_a_variable_that_others_lie_around_is_named(tmp_path: Path) -> None:
    """A lock that shared a cache line with others than before was "identical: there is nothing to measure"."""
    behind = "int last = 4;\nint more = 5;\nint uses(int a) { return last + more; }\n"
    apart = f"extern int weights[8];\n{SOURCE.replace(WEIGHTS, '')}{behind}{WEIGHTS}"
    make = Maker(tmp_path, "x86_64")
    old, new = (Image(make(text, AS_WRITTEN)) for text in (SOURCE + behind, apart))
    both = changes.find(old, new, code.compare(old, new), lambda _: ())
    assert both.nothing and both.shifted and both.elsewhere == ("weights",)
    looked = Looked(functions=9, differ=0, candidates=5, shifted=True, elsewhere=both.elsewhere)
    assert "identical, at other addresses: other things lie around weights; what that does" in sentences.nothing(looked)


def test_a_function_that_others_lie_around_is_named(tmp_path: Path) -> None:
    weigh = "__attribute__((noinline)) int weigh(int a) { return weights[a & 7]; }\n"
    both = found(tmp_path, f"int weigh(int);\n{SOURCE.replace(weigh, '')}{weigh}")
    assert both.nothing and both.elsewhere == ("weigh",)


def test_what_moved_with_all_behind_it_is_told_as_a_whole(tmp_path: Path) -> None:
    both = found(tmp_path, SOURCE, "-falign-functions=64")
    assert both.nothing and both.shifted and not both.elsewhere
    looked = Looked(functions=9, differ=0, candidates=5, shifted=True)
    said = "machine code and data are identical, at other addresses: what that does to caches and TLBs, counts of "
    assert sentences.nothing(looked).startswith(f"Nothing was measured: {said}")
    assert not found(tmp_path, SOURCE).shifted
