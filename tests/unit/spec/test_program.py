# SPDX-License-Identifier: GPL-2.0-or-later
"""What is refused of a program before anything is packed or booted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kdelta.spec import program
from kdelta.spec.program import Program, refused


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("cat", *["x"] * 4096), "4,097 words are more than a guest takes (4,096, and 1,000,000 bytes)"),
        (("sh", "-c", "x" * 1_000_000), "3 words are more than a guest takes"),
        (("cat", *["x"] * 4095), ""),
        ((), "there is no program behind --"),
    ],
)
def test_what_a_guest_has_no_room_for_is_refused_before_it_boots(argv: tuple[str, ...], why: str) -> None:
    """``cat *`` of 5,000 files was refused by a guest that had booted: "too many words, or arg is unknown"."""
    said = refused(Program(argv=argv))
    assert said.startswith(why) and bool(said) == bool(why)


def test_the_room_is_that_of_the_guest() -> None:
    source = (Path(__file__).parents[3] / "guest" / "workloads" / "program.c").read_text()
    found = re.search(r"#define WORDS (\d+)\n", source)
    assert found and int(found[1]) == program._WORDS_MOST
    assert "static char text[1 << 20];" in source and program._BYTES_MOST < 1 << 20
