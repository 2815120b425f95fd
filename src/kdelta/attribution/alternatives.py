# SPDX-License-Identifier: GPL-2.0-or-later
"""Into which functions of two kernels other instructions are patched at boot. Pure over bytes.

``.altinstructions`` of x86-64 says where, what, and for which CPUs: arch/x86/include/asm/alternative.h (struct
alt_instr, as it is since v6.3). What is patched in is compared without its addresses: they count from the place that
is patched.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterator

from kdelta.attribution.disassembly import BRANCHES, Function, Image
from kdelta.kernel.spelling import fold

_PLACES, _REPLACEMENTS = ".altinstructions", ".altinstr_replacement"
_ENTRY = struct.Struct("<iiIBB")  # from here to the instruction; from here to what replaces it; CPUs; both lengths

_LEAST_ADDRESS = 1 << 30
_PLACE = re.compile(r"-?(?:0x[0-9a-f]+|\d+)\(%rip\)|%gs:-?(?:0x[0-9a-f]+|\d+)|(?<![\w.])-?(0x[0-9a-f]+|\d+)")

Patched = tuple[int, int, tuple[str, ...]]


def differing(before: Image, after: Image) -> frozenset[str] | None:
    """The functions, by their names in the source; None where it cannot be told of all that differs whose it is."""
    was, now = _by_function(before), _by_function(after)
    if was is None or now is None:
        return None
    names = {name for name in was.keys() | now.keys() if was.get(name) != now.get(name)}
    return None if "" in names else frozenset(names)


def differ(before: Image, after: Image) -> bool:
    """Whether another thing is patched in anywhere, or for other CPUs."""
    was, now = _by_function(before), _by_function(after)
    if was is not None and now is not None:
        return was != now
    codes = [image.section_bytes(_REPLACEMENTS) for image in (before, after)]
    return codes[0] != codes[1] and _shapes(before, codes[0]) != _shapes(after, codes[1])


def _by_function(image: Image) -> dict[str, list[Patched]] | None:
    """What is patched into each function, in order ("" is no function); None where it is written in another way."""
    found: dict[str, list[Patched]] = defaultdict(list)
    words: dict[bytes, tuple[str, ...]] = {}
    entries = list(_entries(image))
    if image.arch != "x86_64" or not entries or None in entries:
        return None
    for place, cpus, length, code in (one for one in entries if one is not None):
        if code not in words:
            words[code] = tuple(_shapes(image, code))
        function = image.function_at(place)
        found[fold(function.name.partition("#")[0]) if function else ""].append((cpus, length, words[code]))
    return found


def _shapes(image: Image, code: bytes) -> list[str]:
    """Each instruction of ``code`` without what hangs on where things are: targets, addresses, a CPU's own memory.

    Of arm64 the first words alone: there, an address is made of several operands.
    """
    raw = image.raw(Function(name=_REPLACEMENTS, address=0, code=code, section=_REPLACEMENTS))
    return [_shape(image.arch, mnemonic, operands) for _, _, mnemonic, operands in raw]


def _shape(arch: str, mnemonic: str, operands: str) -> str:
    word = mnemonic.partition(" ")[0]
    if arch != "x86_64" or BRANCHES[arch].match(word):
        return word
    return f"{mnemonic} {_PLACE.sub(_without_place, operands)}".rstrip()


def _without_place(match: re.Match[str]) -> str:
    """A number as it is, where it is no address."""
    return match[0] if match[1] and int(match[1], 16 if match[1][:2] == "0x" else 10) < _LEAST_ADDRESS else "ADDRESS"


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
