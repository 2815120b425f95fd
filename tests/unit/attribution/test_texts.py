# SPDX-License-Identifier: GPL-2.0-or-later
"""Which texts code leads to, whatever the distances and addresses in it read like."""

from __future__ import annotations

from typing import cast

import pytest

from kdelta.attribution import texts
from kdelta.attribution.disassembly import Function, Image

AT = 0xFFFFFFFF81C3F021
LOAD = b"\x48\xc7\xc6" + (AT & 0xFFFFFFFF).to_bytes(4, "little")  # mov $text, %rsi


class Texts:
    """An image with one text."""

    arch = "x86_64"

    def __init__(self, code: bytes, text: bytes = b"siblings\t: %d\n") -> None:
        self.text = text + b"\0"
        self.sources = {"show": [Function(name="show", address=0xFFFFFFFF81000000, code=code, section=".text")]}

    def name_of(self, address: int) -> str:
        return "[.rodata]" if address == AT else ""

    def content(self, address: int, _size: int) -> bytes:
        return self.text if address == AT else b""


def led(code: bytes) -> list[bytes]:
    image = cast(Image, Texts(code))
    return list(texts._led_to(image, image.sources["show"][0]))


@pytest.mark.parametrize(
    "before",
    [
        b"\xe8\x10\x20\x00\x00",
        b"\xe8\x0e\x4a\xc7\x81\x31\xdb",  # of 7.3.4's show_cpuinfo(): the distance of a call, xor %ebx,%ebx
        b"\xe8\x0e\x4c\x8d\x05",
        b"\xe8\x0e\x00\x49\xc7",
    ],
)
def test_a_distance_that_reads_like_a_load_hides_no_text(before: bytes) -> None:
    """By the chance of such a distance "print_cpu (text)" and others differed between kernels that only moved."""
    assert led(before + LOAD) == [b"siblings\t: %d\n"]
    plain, odd = (cast(Image, Texts(head + LOAD)) for head in (b"\x90" * len(before), before))
    assert texts.other_in_code(plain, odd, ["show"]) == frozenset()


@pytest.mark.parametrize(
    ("was", "now", "other"),
    [
        (b'field "dname" at fs/dcache.c:1957', b'field "dname" at fs/dcache.c:1945', False),  # of 7.3.4's __d_alloc()
        (b'field "dname" at fs/dcache.c:1957', b'field "name" at fs/dcache.c:1957', True),
        (b"%d of 1957", b"%d of 1945", True),
    ],
)
def test_the_line_of_a_source_in_a_text_is_no_other_text(was: bytes, now: bytes, other: bool) -> None:
    """A patch that only moved lines up had "changed" each function below it with a fortified memcpy()."""
    before, after = (cast(Image, Texts(LOAD, text)) for text in (was, now))
    assert texts.other_in_code(before, after, ["show"]) == (frozenset({"show"}) if other else frozenset())
