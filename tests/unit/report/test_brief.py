# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentence on top names a long command by its first words; the table below it has all of it."""

from __future__ import annotations

import pytest

from kdelta.report.headline import of_cells
from unit.report.report_samples import cell
from unit.report.test_headline import EXACT

HASH = "perl -e 'my %h; $h{$_}++ for 1..20000; print scalar keys %h'"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (HASH, '"perl -e ..."'),
        (f"{HASH} (mitigations off)", '"perl -e ... (mitigations off)"'),
        ("tar cf /dev/null /usr/include/linux", '"tar cf /dev/null /usr/include/linux"'),
        ("find /usr/share/doc -type f -name README -exec cat", '"find /usr/share/doc -type f ..."'),
        (
            "a-program-that-has-a-very-long-name-and-nothing-else",
            "a-program-that-has-a-very-long-name-and-nothing-else",
        ),
        (
            "'a name with blanks that has a quote in front' x y z",
            "\"'a name with blanks that has a quote in front' x y z\"",
        ),
    ],
)
def test_a_long_command_is_told_by_its_first_words(command: str, told: str) -> None:
    assert of_cells([(command, cell(command, **EXACT))], True, unfinished=False).text == (
        f"7.0 executes fewer instructions than 6.12 in {told}: -28.60 %."
    )


def test_commands_that_begin_alike_are_told_whole() -> None:
    other = HASH.replace("20000", "30000")
    rows = [(name, cell(name, **EXACT, effect_percent=percent)) for name, percent in ((HASH, -9.0), (other, -8.0))]
    assert f"Largest: {HASH} -9.00 %" in of_cells(rows, True, unfinished=False).text
