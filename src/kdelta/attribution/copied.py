# SPDX-License-Identifier: GPL-2.0-or-later
"""Initial values that code copies to the stack: a large local variable with an initialiser. Pure over bytes, x86-64.

They have no symbol, and the code that copies them is the same whatever they are: ``mov $block,%rsi; mov $40,%ecx; rep
movsq``, or a call of memcpy().
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from kdelta.attribution.disassembly import DataObject, Function, Image

# mov $block,%rsi or lea block(%rip),%rsi, and soon behind it the copy: rep movsq, movsl or movsb, or a call
_COPIES = re.compile(
    rb"\x48(?:\xc7\xc6|(?P<relative>\x8d\x35))(?P<block>.{4})(?=.{0,24}?(?:\xf3(?P<rep>\x48\xa5|\xa5|\xa4)|\xe8))",
    re.DOTALL,
)
_WIDTH = {b"\x48\xa5": 8, b"\xa5": 4, b"\xa4": 1}
_COUNT = re.compile(rb"\xb9(.{4})", re.DOTALL)  # mov $40,%ecx
_LENGTH = re.compile(rb"\xba(.{4})", re.DOTALL)  # mov $320,%edx
_AROUND = 24  # bytes before and behind, in which the number stands
_LONGEST = 4096
_SECTIONS = ("[.rodata", "[.data", "[.init.")  # where no symbol is
_MASK = 0xFFFFFFFFFFFFFFFF  # of addresses
Same = Callable[[Image, Image, DataObject, DataObject], bool]


def other(before: Image, after: Image, names: Collection[str], same: Same) -> frozenset[str]:
    """The functions of both kernels, among ``names``, that copy another block than they did, as ``same`` says."""
    if before.arch != "x86_64":
        return frozenset()
    found = set()
    for name in names:
        for old, new in zip(before.sources.get(name, ()), after.sources.get(name, ()), strict=False):
            pairs = zip(_blocks(before, old), _blocks(after, new), strict=False)
            if any(was.content != now.content and not same(before, after, was, now) for was, now in pairs):
                found.add(name)
    return frozenset(found)


def _blocks(image: Image, function: Function) -> Iterator[DataObject]:
    code = function.code
    for match in _COPIES.finditer(code):
        value = int.from_bytes(match["block"], "little", signed=True)
        address = (value + (function.address + match.end("block") if match["relative"] else 0)) & _MASK
        around = code[max(0, match.start() - _AROUND) : match.end() + _AROUND]
        number = next(iter((_COUNT if match["rep"] else _LENGTH).findall(around)), b"")
        size = int.from_bytes(number, "little") * _WIDTH.get(match["rep"] or b"", 1)
        if 0 < size <= _LONGEST and image.name_of(address).startswith(_SECTIONS):
            yield DataObject(name="", address=address, content=image.content(address, size))
