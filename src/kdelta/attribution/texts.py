# SPDX-License-Identifier: GPL-2.0-or-later
"""Texts that code and data of two kernels lead to: a format, a name of a table. Pure over bytes, x86-64.

A text has no symbol, and moves when another one grows: by its address alone nobody can tell whether it is the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from kdelta.attribution import shifted
from kdelta.attribution.disassembly import DataObject, Function, Image

# mov $text to a register or to memory, lea text(%rip): the four bytes behind lead to it. A push is one byte, which any
# operand may hold. Two may overlap: the distance of a call that reads like the begin of one hides none behind it.
_LOADS = re.compile(
    rb"[\x48-\x4f](?=(?P<load>\xc7(?:[\xc0-\xc7\x00-\x03\x06\x07]|[\x40-\x43\x45-\x47].|\x04.|\x44..|\x05.{4}"
    rb"|[\x80-\x83\x85-\x87].{4}|\x84.{5})|(?P<relative>\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d])).{4})",
    re.DOTALL,
)
# Elsewhere are tables of distances, of which every few read like a text: since 6.19 each WARN() of x86 has the address
# of its entry in __bug_table.
_SECTIONS = ("[.rodata", "[.data", "[.init.", "[__ksymtab_strings")
_OPERAND, _WORD = 4, 8  # bytes
_LONGEST = 4096  # of what is read as one text
_MASK = 0xFFFFFFFFFFFFFFFF  # of addresses
# Of a source: FILE_LINE of a fortified memcpy() moves with all that is above it.
_LINE = re.compile(rb"(?<=\.[chS]:)\d+")
_PRINTED = frozenset([*range(32, 127), *b"\t\n\r\x01\x1b"])  # \x01 begins the level of a message


def at(image: Image, address: int) -> bytes | None:
    """The text at ``address`` but for numbers of lines, None where a symbol is there, or something else than a text."""
    if not image.name_of(address).startswith(_SECTIONS):
        return None
    content, end, _ = image.content(address, _LONGEST).partition(b"\0")
    return _LINE.sub(b"", content) if end and _PRINTED.issuperset(content) else None


def other_in_code(before: Image, after: Image, names: Collection[str]) -> frozenset[str]:
    """The functions of both kernels, among ``names``, of which some part leads to another text than it did."""
    if before.arch != "x86_64":
        return frozenset()
    found = set()
    for name in names:
        pairs = zip(before.sources.get(name, ()), after.sources.get(name, ()), strict=False)
        if any(list(_led_to(before, old)) != list(_led_to(after, new)) for old, new in pairs):
            found.add(name)
    return frozenset(found)


def _led_to(image: Image, function: Function) -> Iterator[bytes]:
    code = function.code
    for match in _LOADS.finditer(code):
        begin = match.end("load")
        end = begin + _OPERAND
        value = int.from_bytes(code[begin:end], "little", signed=True)
        if match["relative"]:
            value += function.address + end
        elif value >= 0:
            continue  # no address
        if (text := at(image, value & _MASK)) is not None:
            yield text


def other_in_data(before: Image, after: Image, pairs: Sequence[tuple[DataObject, DataObject]]) -> set[int]:
    """Indexes of the pairs of variables of one size of which some word leads to another text than it did."""
    even = [index for index, (old, new) in enumerate(pairs) if len(old.content) == len(new.content)]
    if before.arch != "x86_64" or not even:
        return set()
    sides = [[pairs[index][side] for index in even] for side in (0, 1)]
    was, now = (np.frombuffer(b"".join(map(shifted.padded, side)), "<u8") for side in sides)
    ends = np.cumsum([len(shifted.padded(one)) // _WORD for one in sides[0]])
    words = np.flatnonzero(shifted.like_addresses(was))
    owners = np.searchsorted(ends, words, side="right")
    found = set()
    for owner, old, new in zip(owners.tolist(), was[words].tolist(), now[words].tolist(), strict=True):
        text = at(before, old)
        if text is not None and at(after, new) not in (None, text):
            found.add(even[owner])
    return found
