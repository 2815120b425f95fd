# SPDX-License-Identifier: GPL-2.0-or-later
"""Direct calls and jumps in machine code: all places that read like one, and for a sample those that surely are one.

A direct call is an opcode and a distance: on x86-64 ``e8``, and ``e9`` or ``0f 8x`` for tail jumps, with 32 bits; on
arm64 ``bl`` and ``b`` with 26. arm64 instructions are aligned words, so nothing else reads so. x86-64 instructions are
not: what an ``e8`` is shows only where the instructions before it are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import capstone
import numpy as np
from numpy.typing import NDArray

from kdelta.kernel.memory import Image, Span
from kdelta.model import Arch

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_SAMPLES = 64  # stretches of code that are decoded,
_SAMPLE_BYTES = 4096  # each so long: about 2,000 calls of a distribution's kernel, in a third of a second
_SETTLE_BYTES = 64  # x86-64 decoded from anywhere finds the true instructions within a few
_LONGEST_X86 = 15


def _x86_64(text: Bytes) -> Iterator[tuple[Ints, Ints]]:
    if len(text) < 6:
        return
    near = np.flatnonzero((text[:-4] & 0xFE) == 0xE8)
    conditional = np.flatnonzero((text[:-5] == 0x0F) & ((text[1:-4] & 0xF0) == 0x80)) + 1
    for places in (near, conditional):
        distance = np.zeros(places.shape, np.uint32)
        for byte in range(4):
            distance |= text[places + 1 + byte].astype(np.uint32) << np.uint32(8 * byte)
        yield places, places + 5 + distance.view(np.int32)


def _words(text: Bytes) -> NDArray[np.uint32]:
    return text[: len(text) & ~3].view("<u4")


def _arm64(text: Bytes) -> Iterator[tuple[Ints, Ints]]:
    words = _words(text)
    places = np.flatnonzero((words & 0x7C000000) == 0x14000000)
    distance = (words[places] << np.uint32(6)).view(np.int32) >> 6
    yield 4 * places, 4 * (places + distance)


_FINDERS = {"x86_64": _x86_64, "arm64": _arm64}


def found(text: Bytes, arch: Arch) -> Iterator[tuple[Ints, Ints]]:
    """(offsets of places in ``text`` that read like a call or a tail jump, offsets that they lead to)."""
    return _FINDERS[arch](text)


@lru_cache(maxsize=4 * _SAMPLES)  # each reading of an image's symbols is held against the same code
def _decoded(code: bytes) -> tuple[int, ...]:
    """Targets of the calls of x86-64 ``code``, as offsets; its first bytes only serve to find the instructions."""
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    engine.skipdata = True  # a byte that cannot be decoded; to begin anew behind each takes 40 us
    found = []
    for start, length, mnemonic, _ in engine.disasm_lite(code, 0):
        if code[start] == 0xE8 and mnemonic == "call" and start >= _SETTLE_BYTES:
            end = start + length
            found.append(end + int.from_bytes(code[end - 4 : end], "little", signed=True))
    return tuple(found)


def sampled(text: Bytes, arch: Arch) -> Ints:
    """Where true calls lead, as offsets, unsorted: on arm64 all calls of ``text``, on x86-64 those of a sample."""
    if arch == "arm64":
        words = _words(text)
        places = np.flatnonzero((words & 0xFC000000) == 0x94000000)
        distance = (words[places] << np.uint32(6)).view(np.int32) >> 6
        return 4 * (places + distance)
    last = max(len(text) - _SAMPLE_BYTES, 0)
    samples = min(_SAMPLES, -(-len(text) // _SAMPLE_BYTES))  # of a small text, no more than it has
    starts = np.unique(np.linspace(0, last, max(samples, 1)).astype(np.int64))
    pieces = ((start, text[start : start + _SAMPLE_BYTES].tobytes()) for start in starts.tolist())
    return np.array([start + to for start, code in pieces for to in _decoded(code)], np.int64)


def pairs(image: Image, addresses: NDArray[np.uint64], ranges: tuple[Span, ...]) -> Ints:
    """Every call and tail jump in ``ranges`` as (caller, callee), shape (n, 2): places in ``addresses``."""
    every = [np.empty((0, 2), np.int64)]
    base = int(addresses[0])
    starts = (addresses - addresses[0]).astype(np.int64)
    for address, text in image.pieces(ranges):
        for places, targets in found(text, image.arch):
            shift = address - base
            callee = np.minimum(np.searchsorted(starts, targets + shift), len(starts) - 1)
            hits = starts[callee] == targets + shift
            caller = np.searchsorted(starts, places[hits] + shift, side="right") - 1
            every.append(np.stack((caller, callee[hits]), axis=1))
    return np.concatenate(every)
