# SPDX-License-Identifier: GPL-2.0-or-later
"""Into which functions of two kernels other instructions are patched at boot. Pure over bytes.

``.altinstructions`` of x86-64 says where, what, and for which CPUs: arch/x86/include/asm/alternative.h (struct
alt_instr, as it is since v6.3). What is patched in is compared by the first words of its instructions, as their
addresses count from the place that is patched.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator

from kdelta.attribution.disassembly import Function, Image
from kdelta.kernel.spelling import fold

_PLACES, _REPLACEMENTS = ".altinstructions", ".altinstr_replacement"
_ENTRY = struct.Struct("<iiIBB")  # from here to the instruction; from here to what replaces it; CPUs; both lengths

Patched = tuple[int, int, tuple[str, ...]]


def differing(before: Image, after: Image) -> frozenset[str] | None:
    """The functions, by their names in the source; None where it cannot be told of all that differs whose it is."""
    was, now = _by_function(before), _by_function(after)
    if was is None or now is None:
        return None
    names = {name for name in was.keys() | now.keys() if was.get(name) != now.get(name)}
    return None if "" in names else frozenset(names)


def _by_function(image: Image) -> dict[str, list[Patched]] | None:
    """What is patched into each function, in order ("" is no function); None where it is written in another way."""
    found: dict[str, list[Patched]] = defaultdict(list)
    words: dict[bytes, tuple[str, ...]] = {}
    entries = list(_entries(image))
    if image.arch != "x86_64" or not entries or None in entries:
        return None
    for place, cpus, length, code in (one for one in entries if one is not None):
        if code not in words:
            words[code] = tuple(image.mnemonics(Function(name="", address=0, code=code, section=_REPLACEMENTS)))
        function = image.function_at(place)
        found[fold(function.name.partition("#")[0]) if function else ""].append((cpus, length, words[code]))
    return found


def _entries(image: Image) -> Iterator[tuple[int, int, int, bytes] | None]:
    """(address that is patched, for which CPUs, how many bytes, what replaces them); None: that is no entry."""
    starts = {name: (address, size) for name, address, size in image.sections()}
    data, content = image.section_bytes(_PLACES), image.section_bytes(_REPLACEMENTS)
    if _PLACES not in starts or _REPLACEMENTS not in starts or len(data) % _ENTRY.size:
        yield None
        return
    base, replacements = starts[_PLACES][0], starts[_REPLACEMENTS][0]
    for offset in range(0, len(data), _ENTRY.size):
        place, other, cpus, length, new = _ENTRY.unpack_from(data, offset)
        start = base + offset + 4 + other - replacements
        fits = length > 0 and new <= length and (not new or 0 <= start <= len(content) - new)
        yield (base + offset + place, cpus, length, content[start : start + new] if new else b"") if fits else None
