# SPDX-License-Identifier: GPL-2.0-or-later
"""Initial values that code copies to the stack: a large local variable with an initialiser. Pure over bytes, x86-64.

They have no symbol, and the code that copies them is the same whatever they are: ``mov $block,%rsi; mov $40,%ecx; rep
movsq``, or a call of memcpy().
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from kdelta.attribution.disassembly import DataObject, Function, Image

_BLOCK = re.compile(rb"\x48(?:\xc7\xc6|(?P<relative>\x8d\x35))(?P<block>.{4})", re.DOTALL)  # mov or lea, to %rsi
_REP = re.compile(rb"\xf3(?:(?P<eight>\x48\xa5)|(?P<four>\xa5)|\xa4)")  # rep movsq, movsl, movsb
_CALL = re.compile(rb"\xe8(?=(.{4}))", re.DOTALL)
_COUNT = re.compile(rb"\xb9(.{4})", re.DOTALL)  # mov $40,%ecx
_LENGTH = re.compile(rb"\xba(.{4})", re.DOTALL)  # mov $320,%edx
_COPYING = ("memcpy", "__memcpy", "memmove", "__memmove")
_AROUND = 24  # bytes before and behind, in which the rest stands
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
    for match in _BLOCK.finditer(code):
        value = int.from_bytes(match["block"], "little", signed=True)
        address = (value + (function.address + match.end() if match["relative"] else 0)) & _MASK
        if not image.name_of(address).startswith(_SECTIONS):
            continue
        size = _copied(image, function, match.start(), match.end())
        if 0 < size <= _LONGEST:
            yield DataObject(name="", address=address, content=image.content(address, size))


def _copied(image: Image, function: Function, start: int, end: int) -> int:
    """How many bytes are copied from the block that is loaded from ``start`` to ``end``; 0 where that is not seen."""
    before, behind = function.code[max(0, start - _AROUND) : start], function.code[end : end + _AROUND]
    if rep := _REP.search(behind):
        width = 8 if rep["eight"] else 4 if rep["four"] else 1
        return width * _number(_COUNT, before, behind[: rep.start()])
    for call in _CALL.finditer(behind):
        target = function.address + end + call.end() + 4 + int.from_bytes(call[1], "little", signed=True)
        if image.name_of(target & _MASK) in _COPYING:
            return _number(_LENGTH, before, behind[: call.start()])
    return 0


def _number(moved: re.Pattern[bytes], before: bytes, behind: bytes) -> int:
    """What is moved to a register just before it is needed."""
    found = moved.findall(behind)[-1:] or moved.findall(before)[-1:]
    return int.from_bytes(found[0], "little") if found else 0
