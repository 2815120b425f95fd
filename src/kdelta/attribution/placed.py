# SPDX-License-Identifier: GPL-2.0-or-later
"""What two kernels of the same code and data have at other addresses: a layout is all that such a patch changes. Pure.

Where one thing is put elsewhere, what lies behind it moves too: told are those alone that are passed by others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from kdelta.attribution.disassembly import Image

_KEPT = (".text", ".rodata", ".data", ".bss")  # not what the kernel's start throws away, nor tables of symbols


def moved(before: Image, after: Image) -> tuple[bool, tuple[str, ...]]:
    """(whether anything has another address, names of the things that others lie around; sorted)."""
    was, now = _places(before), _places(after)
    names = sorted(was.keys() & now.keys(), key=lambda name: (was[name], name))
    stay = _rising([now[name] for name in names])
    return any(was[name] != now[name] for name in names), tuple(
        sorted(name for index, name in enumerate(names) if index not in stay)
    )


def _places(image: Image) -> dict[str, int]:
    """The address of each function and variable of which there is one of its name."""
    sections = sorted((start, start + size, name) for name, start, size in image.sections())
    starts = [start for start, _, _ in sections]
    addresses, names, sizes = image.symbols()
    count = Counter(names)
    found: dict[str, int] = {}
    for address, name, size in zip(addresses, names, sizes, strict=True):
        place = bisect_right(starts, address) - 1
        kept = place >= 0 and address < sections[place][1] and sections[place][2].startswith(_KEPT)
        if size and count[name] == 1 and kept and name not in image.aliases:
            found[name] = address
    return found


def _rising(values: Sequence[int]) -> frozenset[int]:
    """The places of a longest rising part of ``values``, equal ones among them."""
    ends: list[int] = []  # the least value that a rising part of each length ends with
    places: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values):
        length = bisect_right(ends, value)
        before.append(places[length - 1] if length else -1)
        ends[length : length + 1] = [value]
        places[length : length + 1] = [place]
    found, place = set[int](), places[-1] if places else -1
    while place >= 0:
        found.add(place)
        place = before[place]
    return frozenset(found)
