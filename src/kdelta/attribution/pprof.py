# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as pprof's protocol buffer, for ``go tool pprof`` and the viewers that read it.

The message is small enough to be written by hand; field numbers are those of pprof's proto/profile.proto.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping

from kdelta.attribution import stacks
from kdelta.attribution.profiles import USER
from kdelta.model import EXACT_COUNTERS, Profile

_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING, _DEFAULT_SAMPLE_TYPE = 1, 2, 4, 5, 6, 14


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(_varint(value) for value in values))


class _Strings:
    """The message's string table; index 0 is the empty string."""

    def __init__(self) -> None:
        self._index = {"": 0}

    def __call__(self, text: str) -> int:
        return self._index.setdefault(text, len(self._index))

    def encoded(self) -> bytes:
        return b"".join(_bytes(_STRING, text.encode()) for text in self._index)


def _location(ident: int, name: int) -> bytes:
    """One function and the one place in it that samples name; both have the id ``ident``."""
    line = _bytes(4, _number(1, ident))
    function = _number(1, ident) + _number(2, name) + _number(3, name)
    return _bytes(_LOCATION, _number(1, ident) + line) + _bytes(_FUNCTION, function)


def _samples(profile: Profile) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Call stacks with the instructions of their last function, and no other counter; flat where there are none."""
    flat: list[tuple[tuple[str, ...], tuple[int, ...]]] = [
        ((function,), counts) for function, counts in sorted(profile.functions.items())
    ]
    if not profile.stacks:
        return flat
    rest = (0,) * (len(EXACT_COUNTERS) - 1)
    deep = [(path, (count, *rest)) for path, count in stacks.stacks_of(stacks.parse(profile.stacks))]
    return [*((path, counts) for path, counts in flat if path == (USER,)), *deep]


def pprof(profiles: Mapping[str, Profile]) -> bytes:
    """Gzipped profile.proto: one sample per case and function or call stack, the case as root frame and label.

    Counts are of all operations of each profile. Equal profiles give equal bytes.
    """
    strings = _Strings()
    types = [
        _bytes(
            _SAMPLE_TYPE, _number(1, strings(name)) + _number(2, strings("bytes" if name == "rep_bytes" else "count"))
        )
        for name in EXACT_COUNTERS
    ]
    key = strings("case")
    idents: dict[str, int] = {}
    samples, locations = [], []

    def location(name: str) -> int:
        if name not in idents:
            idents[name] = len(idents) + 1
            locations.append(_location(idents[name], strings(name)))
        return idents[name]

    for case, profile in sorted(profiles.items()):
        label = _bytes(3, _number(1, key) + _number(2, strings(case)))
        for path, counts in _samples(profile):
            stack = _packed(1, (*map(location, reversed(path)), location(case)))
            samples.append(_bytes(_SAMPLE, stack + _packed(2, counts) + label))
    default = _number(_DEFAULT_SAMPLE_TYPE, strings(EXACT_COUNTERS[0]))
    message = b"".join([*types, *samples, *locations, strings.encoded(), default])
    return gzip.compress(message, mtime=0)
