# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that differs only by the addresses of things that moved, found for all functions at once. Pure over bytes.

A function that grew shifts all behind it, so tens of thousands of functions differ in some operand. One at a time they
take seconds; as arrays a tenth of one. What is found here is equal for certain; what is not may be equal all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.attribution.disassembly import PER_CPU, DataObject, Function, Image

CODE = (".text", ".init.text", ".exit.text")  # sections whose padding between functions is nothing
IMMEDIATES = (0, 1, 4, 2)  # bytes of an x86 instruction behind the four that lead somewhere
KERNEL_MAP = 0xFFFFFFFF80000000  # where x86-64 maps physical address 0 for the kernel's image
PHYSICAL = 1 << 20  # no smaller constant is an address in the image
LEAST_DISTANCE = 1 << 12  # in data: to where no symbol is, a smaller one is a number, and there is a hole
_OPERAND = 4  # bytes
_WORD = 8
_ADDRESSES, _LAST = np.uint64(0xFFFF800000000000), np.uint64(0xFFFFFFFFFFFF0000)  # of the kernel

Addresses = NDArray[np.uint64]
Numbers = NDArray[np.int64]


class Things(Struct, frozen=True):
    """What a kernel has where: symbols, and sections where none is, each under the number of its name."""

    symbols: tuple[Addresses, Addresses, Numbers]  # starts, sizes, names
    sections: tuple[Addresses, Addresses, Numbers]

    def at(self, addresses: Addresses, named: bool = False) -> tuple[Numbers, Addresses]:
        """For each address the number of what is there, -1 where nothing is, and how far it is from its start."""
        names, offsets = _covering(self.symbols, addresses)
        if named:
            return names, offsets
        texts, _ = _covering(self.sections, addresses)
        return np.where(names < 0, texts, names), np.where(names < 0, np.uint64(0), offsets)


def _covering(table: tuple[Addresses, Addresses, Numbers], addresses: Addresses) -> tuple[Numbers, Addresses]:
    starts, sizes, names = table
    row = np.searchsorted(starts, addresses, side="right") - 1
    offsets = addresses - starts[row]
    return np.where(offsets < sizes[row], names[row], -1), offsets


@lru_cache(maxsize=2)
def things(before: Image, after: Image) -> tuple[Things, Things]:
    """What two kernels have, where one name has one number."""
    numbers: dict[str, int] = {}
    return _things(before, numbers), _things(after, numbers)


def _things(image: Image, numbers: dict[str, int]) -> Things:
    sections = [one for one in image.sections() if not one[0].startswith(CODE)]
    places = (
        [at for _, at, _ in sections],
        [f"[{name}]" for name, _, _ in sections],
        [size for _, _, size in sections],
    )
    return Things(_table(image.symbols(), numbers), _table(places, numbers))


def _table(
    columns: tuple[list[int], list[str], list[int]], numbers: dict[str, int]
) -> tuple[Addresses, Addresses, Numbers]:
    """By start, behind one that covers nothing; of several with one start the largest, of these the last number."""
    starts, names, sizes = columns
    found = np.zeros((3, len(starts) + 1), np.uint64)
    found[0, 1:] = starts
    found[1, 1:] = np.maximum(np.array(sizes, np.uint64), np.uint64(1))  # without a size it still covers its address
    found[2, 1:] = [numbers.setdefault(name, len(numbers)) for name in names]
    found = found[:, np.lexsort((found[2], found[1], found[0]))]
    found = found[:, np.append(found[0, 1:] != found[0, :-1], True)]
    return found[0], found[1], found[2].astype(np.int64)


def only_shifted(pairs: Sequence[tuple[Function, Function]], both: tuple[Things, Things]) -> set[int]:
    """Indexes of the pairs of x86-64 functions of which all bytes that differ belong to such addresses."""
    even = [index for index, (old, new) in enumerate(pairs) if old.size == new.size]
    if not even:
        return set()
    olds, news = ([pair[side] for pair in (pairs[index] for index in even)] for side in (0, 1))
    was, now = (np.frombuffer(b"".join(one.code for one in many) + bytes(_OPERAND), np.uint8) for many in (olds, news))
    ends = np.cumsum([one.size for one in olds])
    places = np.flatnonzero(was != now)
    owners = np.searchsorted(ends, places, side="right")
    bases = ends - np.array([one.size for one in olds], ends.dtype)
    explained = np.zeros(len(was), bool)
    for before in range(_OPERAND):
        at = places - before
        inside = (at >= bases[owners]) & (at + _OPERAND <= ends[owners])
        at, owner = at[inside], owners[inside]
        here = [np.array([one.address for one in many], np.uint64)[owner] for many in (olds, news)]
        offset = (at - bases[owner] + _OPERAND).astype(np.uint64)
        values = [_operands(code, at) for code in (was, now)]
        counted = [_relative(code, at) for code in (was, now)]
        same = _same_targets(values, [one + offset for one in here], counted[0] & counted[1], both)
        same |= _same_per_cpu(values, both) & ~counted[0] & ~counted[1]
        good = at[same]
        for byte in range(_OPERAND):
            explained[good + byte] = True
    return {even[row] for row in set(range(len(even))) - set(owners[~explained[places]].tolist())}


def _operands(code: NDArray[np.uint8], at: Numbers) -> Numbers:
    found = np.zeros(len(at), np.uint32)
    for byte in range(_OPERAND):
        found |= code[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return found.view(np.int32).astype(np.int64)


def same_data(pairs: Sequence[tuple[DataObject, DataObject]], both: tuple[Things, Things]) -> set[int]:
    """Indexes of the pairs of variables whose words all are equal numbers, or addresses of (or ways to) one thing."""
    even = [index for index, (old, new) in enumerate(pairs) if len(old.content) == len(new.content)]
    if not even:
        return set()
    sides = [[pairs[index][side] for index in even] for side in (0, 1)]
    was, now = (np.frombuffer(b"".join(map(padded, side)), "<u8") for side in sides)
    ends = np.cumsum([len(one.content) + _WORD - 1 >> 3 for one in sides[0]])
    words = np.flatnonzero((was != now) | like_addresses(was))
    owners = np.searchsorted(ends, words, side="right")
    same = _together(both, was[words], now[words])
    firsts = np.append(0, ends[:-1])[owners]
    within = (_WORD * (words - firsts)).astype(np.uint64)
    place = [np.array([one.address for one in side], np.uint64)[owners] + within for side in sides]
    near = was[words] != now[words]
    for half in (0, 4):
        old, new = (_half(one[words], half) for one in (was, now))
        ways = [at + np.uint64(half) + value.view(np.uint64) for at, value in zip(place, (old, new), strict=True)]
        far = np.abs(old.view(np.int64)) > LEAST_DISTANCE  # a smaller one is looked at by itself
        near &= (old == new) | (far & _together(both, *ways))
    return {even[row] for row in set(range(len(even))) - set(owners[~(same | near)].tolist())}


def like_addresses(words: Addresses) -> NDArray[np.bool_]:
    """Which words may be addresses of the kernel: equal ones may be of different things."""
    alike: NDArray[np.bool_] = (words >= _ADDRESSES) & (words <= _LAST)
    return alike


def padded(one: DataObject) -> bytes:
    """The content of a variable in whole words."""
    return one.content + bytes(-len(one.content) % _WORD)


def _half(words: Addresses, half: int) -> Numbers:
    return (words >> np.uint64(8 * half)).astype(np.uint32).view(np.int32).astype(np.int64)


def _together(both: tuple[Things, Things], old: Addresses, new: Addresses, *, named: bool = False) -> NDArray[np.bool_]:
    """For each pair of addresses whether they are the same place of one thing; ``named``: that has a symbol."""
    (was, at), (now, place) = (one.at(addresses, named) for one, addresses in zip(both, (old, new), strict=True))
    same: NDArray[np.bool_] = (was >= 0) & (was == now) & (at == place)
    return same


def _same_per_cpu(values: list[Numbers], both: tuple[Things, Things]) -> NDArray[np.bool_]:
    """Whether both values are one variable of a CPU's, by its place in the memory of each."""
    same: NDArray[np.bool_] = np.minimum(*values) >= PER_CPU
    rows = np.flatnonzero(same)
    same[rows] = _together(both, *(value[rows].view(np.uint64) for value in values))
    return same


def _relative(code: NDArray[np.uint8], at: Numbers) -> NDArray[np.bool_]:
    """Whether the operand at ``at`` may count from where its instruction ends: of a call, a jump, or by %rip."""
    last, before = code[np.maximum(at - 1, 0)], code[np.maximum(at - 2, 0)]
    conditional = (before == 0x0F) & (last & 0xF0 == 0x80)
    relative: NDArray[np.bool_] = (last == 0xE8) | (last == 0xE9) | conditional | (last & 0xC7 == 0x05)
    return relative


def _same_targets(
    values: list[Numbers], ends: list[Addresses], relative: NDArray[np.bool_], both: tuple[Things, Things]
) -> NDArray[np.bool_]:
    """Whether both values lead to one thing: from where the instruction ends, as an address, or as a physical one.

    No number is taken for a way: 13 and 12, from where they stand, led to one hole among the data.
    """
    old, new = (value.view(np.uint64) for value in values)
    same = np.zeros(len(old), bool)

    def also(asked: NDArray[np.bool_], by: int, bases: list[Addresses] | None = None) -> None:
        rows = np.flatnonzero(asked & ~same)
        from_old, from_new = [np.uint64(0)] * 2 if bases is None else (base[rows] for base in bases)
        step = np.uint64(by)
        named = bases is not None or by >= KERNEL_MAP  # of a section alone many numbers would be
        same[rows] = _together(both, old[rows] + from_old + step, new[rows] + from_new + step, named=named)

    for behind in IMMEDIATES:
        also(relative, behind, ends)
    also((values[0] < 0) & (values[1] < 0), 0)
    for by in (0, 1):
        also(np.minimum(*values) > PHYSICAL, KERNEL_MAP + by)
    return same
