# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a table of symbols belongs to a kernel's machine code: no name is believed before. Pure.

A table can be read wrongly and still look right: with every name one symbol off, all addresses but one stay starts of
functions. So four things must hold, which no wrong reading does together:

- the bounds of the code are named, and every function lies in the kernel's memory, before ``_end``;
- the entry point has the name of an entry point;
- direct calls lead to starts of functions (99 % of them: a few lead into assembly, such as clear_bhb_loop);
- functions call their kin: ``f`` calls or jumps to ``__f``, ``do_f``, ``f.cold``, ``__x64_sys_f`` to ``__se_sys_f``.
  In eleven Debian kernels of two architectures, 6.1 to 7.3, that joins 1,100 to 8,200 calls as the table stands, and
  at most a fifth of that with the names moved by one to eight; in each stretch with an equal part of them, a third.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.kernel import branches
from kdelta.kernel.memory import Image, Span
from kdelta.kernel.spelling import stem

_LEAST_CALLS = 100  # fewer say nothing
_LEAST_SHARE = 0.99
_LEAST_KIN = 30
_SHIFTS = 8  # a table is tried with its names moved so far in both directions
_TIMES = 1.5  # kin as the table stands over kin with the names moved
_STRETCH_KIN = 300  # of each stretch, in all shifts together
_INDIFFERENT = 3  # a call that is one of kin in more shifts than this says nothing: a row of thunks of one name
_ENTRY = re.compile(r"start|entry|s?text|head")


class Claim(Struct, frozen=True, kw_only=True):
    """What a table says: functions by rising ``addresses`` (n,), the code that they cover, and where what is named.

    ``entry`` are the names of all symbols at the image's entry point, ``end`` the address of ``_end``, if it is named.
    """

    addresses: NDArray[np.uint64]
    names: Sequence[str]
    ranges: tuple[Span, ...]
    entry: frozenset[str]
    end: int | None = None


def _bounds(image: Image, claim: Claim) -> str:
    if not claim.ranges:
        return "_stext and _etext, the bounds of the code, are missing"
    if not len(claim.addresses):
        return "no function lies in the code"
    low = min((segment.address for segment in image.segments if segment.address >> 63), default=None)
    if low is None:
        return "no part of the image is loaded where a kernel is"
    end = min(claim.end or image.end, image.end)
    first, last = int(claim.addresses[0]), int(claim.addresses[-1])
    if first < low or last >= end or any(low > bound[0] or bound[1] > end for bound in claim.ranges):
        return f"its functions lie from {first:#x} to {last:#x}, the kernel from {low:#x} to {end:#x}"
    return ""


def _entry(image: Image, claim: Claim) -> str:
    if image.entry is None:
        return "the entry point of the image is not known"
    if not any(_ENTRY.search(name) for name in claim.entry):
        named = f"is named {', '.join(sorted(claim.entry))[:80]}" if claim.entry else "has no name"
        return f"the entry point at {image.entry:#x} {named}"
    return ""


def _calls(image: Image, claim: Claim) -> str:
    """Whether the calls of the code lead to starts of functions; calls out of the code are not asked."""
    spans = image.code or claim.ranges
    targets = [np.empty(0, np.int64)]
    base = spans[0][0]
    for address, text in image.pieces(spans):
        targets.append(branches.sampled(text, image.arch) + (address - base))
    led = np.concatenate(targets)
    inside = np.zeros(led.shape, bool)
    for low, high in spans:
        inside |= (led >= low - base) & (led < high - base)
    led = led[inside]
    if len(led) < _LEAST_CALLS:
        return f"there are only {len(led)} direct calls to check the names against"
    hits = int(np.isin(led, (claim.addresses - np.uint64(base)).astype(np.int64)).sum())
    if hits < _LEAST_SHARE * len(led):
        return f"only {100 * hits / len(led):.0f} % of the direct calls lead to the start of a function"
    return ""


def _kin(image: Image, claim: Claim) -> str:
    """Whether functions call their kin most where the names stand as they do, all over the table."""
    calls = branches.pairs(image, claim.addresses, claim.ranges)
    calls = calls[calls[:, 0] != calls[:, 1]]
    calls = calls[np.argsort(calls[:, 0], kind="stable")]
    numbers: dict[str, int] = {}
    stems = np.array([numbers.setdefault(stem(name), len(numbers)) for name in claim.names], np.int64)
    shifts = range(-_SHIFTS, _SHIFTS + 1)
    kin = np.empty((len(shifts), len(calls)), bool)
    for row, shift in enumerate(shifts):
        moved = np.clip(calls + shift, 0, len(stems) - 1)
        kin[row] = (stems[moved[:, 0]] == stems[moved[:, 1]]) & (moved[:, 0] != moved[:, 1])
    kin[:, kin.sum(axis=0) > _INDIFFERENT] = False
    if int(kin[_SHIFTS].sum()) < _LEAST_KIN:
        return "its functions do not call each other as their names say"
    mass = np.cumsum(kin.sum(axis=0))
    stretches = max(1, int(mass[-1]) // _STRETCH_KIN)
    cuts = np.searchsorted(mass, mass[-1] * np.arange(stretches) / stretches, side="right")
    counts = np.add.reduceat(kin, np.unique(cuts), axis=1, dtype=np.int64)
    others = np.delete(counts, _SHIFTS, axis=0).max(axis=0)
    wrong = counts[_SHIFTS] < _TIMES * others
    if wrong.any():
        return "names and code do not match: its functions call each other as if they had other names"
    return ""


def doubt(image: Image, claim: Claim) -> str:
    """Why ``claim`` is not proven by the machine code of ``image``; "" where it is."""
    checks = (_bounds, _entry, _calls, _kin)
    return next((why for check in checks if (why := check(image, claim))), "")
