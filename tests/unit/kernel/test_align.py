# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a hunk can begin at all: what is left out by ``beginnings`` has no reading, however it was mangled."""

from __future__ import annotations

import itertools
import random

import pytest

from kdelta.kernel.align import Ambiguous, Effort, How, align, beginnings, lines_of, squeeze

_RAW = ("", " ", " a", "a", "+a", "-a", "- b", " ab", "a b", "+", "-", "\\ No newline at end of file", "\tb")
_FILE = ("", "a", "b", "ab", "a b", "aab", "bab")


@pytest.mark.parametrize("how", ["literal", "stripped"])
def test_no_hunk_is_read_from_a_line_that_is_no_beginning(how: How) -> None:
    dice, read = random.Random(how), 0
    real = list(itertools.chain.from_iterable(itertools.permutations(_FILE, 3)))
    squeezed = [squeeze(line) for line in real]
    for take_out in (False, True) * 300:
        lines = lines_of(dice.choices(_RAW, k=dice.randint(0, 5)), take_out)
        counts = dice.randint(1, 3), dice.randint(0, 3)
        begin = beginnings(lines, counts, how)
        for at in dice.sample(range(len(real)), 40):
            try:
                reads = align(lines, real, squeezed, at, counts, len(lines), how, Effort(len(lines))) is not None
            except Ambiguous:
                reads = True
            read += reads
            assert not reads or begin is None or squeezed[at] in begin
    assert read > 50, "hardly a hunk was read: this asks nothing"
