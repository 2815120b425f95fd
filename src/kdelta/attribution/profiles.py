# SPDX-License-Identifier: GPL-2.0-or-later
"""What the counting plugin wrote -> intervals -> profiles by function. Pure; the format is in ARCHITECTURE.md.

Nothing is lost on the way: every address lands in some function, and the sum is checked on every fold.
"""

from __future__ import annotations

import mmap
import statistics
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kdelta.errors import GuestError
from kdelta.kernel.spelling import fold as source_name
from kdelta.model import EXACT_COUNTERS, Profile

USER = "[user]"
_MAGIC = b"KDPLUG01"
_HEADER = struct.Struct("<8s4I16s24x")
_SECTION = struct.Struct("<4s3I")
_COLUMNS = len(EXACT_COUNTERS)
_CALL_COLUMNS = 4
_TOUCH_COLUMNS = 3
_STACK_COLUMNS = 4
_LINE_SHIFT = np.uint64(6)
_OPEN_BEGIN = 1
_BLIND = 4  # tasks could not be told apart
_BARE = 8  # before the plugin instrumented code, or after
_LONG_TURNS = 16  # of several CPUs
_KERNEL_HALF = np.uint64(1 << 63)
_PAGE = np.uint64(4095)


class Symbols(Protocol):
    """What folding needs to know of a kernel's functions."""

    def names(self, addresses: NDArray[np.uint64], /) -> Sequence[str | None]:
        """One name per address, None where no function is known."""

    def calls(self, functions: Iterable[str], /) -> Mapping[str, Sequence[str]]:
        """Whom each of the functions (named as in the source) calls; empty where calls are not known."""


class Interval(Struct, frozen=True, eq=False):
    """What ran between BEGIN and END.

    ``pcs`` (n,) uint64, ascending and unique; ``counts`` (n, 7) uint64 in EXACT_COUNTERS order; ``system_calls`` (n, 4)
    int64, see ``entries.counted``, None where none were asked for. ``touched`` (n, 3) uint64: address of an
    instruction, cache lines of data that it was the first to touch, 0; None where several CPUs were counted.
    ``stacks`` (n, 4) int64, see ``stacks.tree``; None where calls were not followed.
    """

    id: int
    pcs: NDArray[np.uint64]
    counts: NDArray[np.uint64]
    system_calls: NDArray[np.int64] | None = None
    touched: NDArray[np.uint64] | None = None
    stacks: NDArray[np.int64] | None = None


def _header(data: bytes | mmap.mmap) -> int:
    if len(data) < _HEADER.size:
        raise GuestError(f"counts: {len(data)} bytes, too short for a header; QEMU exited before the plugin started")
    magic, size, columns, _api, _flags, _target = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise GuestError(f"counts: starts with {magic!r}, not with {_MAGIC.decode()}: not the counting plugin's output")
    if size != _HEADER.size or columns != _COLUMNS:
        raise GuestError(f"counts: a header of {size} bytes and {columns} counters; {_COLUMNS} counters were expected")
    return int(size)


def _body(
    data: memoryview, offset: int, number: int, section: tuple[int, int, int], columns: int
) -> tuple[NDArray[np.uint64], int]:
    """The records of a section, (n, columns), and where they end."""
    _, records, crc = section
    end = offset + records * 8 * columns
    if end > len(data):
        raise GuestError(f"counts: truncated inside interval {number}; QEMU was killed or the disk is full")
    body = data[offset:end]
    if zlib.crc32(body) != crc:
        raise GuestError(f"counts: interval {number} has a wrong checksum")
    return np.frombuffer(body, dtype="<u8").reshape(records, columns).astype(np.uint64, copy=False), end


def _interval(data: memoryview, offset: int, number: int, section: tuple[int, int, int]) -> tuple[Interval, int]:
    ident, records, _ = section
    table, end = _body(data, offset, number, section, 1 + _COLUMNS)
    pcs = table[:, 0]
    if records > 1 and not bool(np.all(pcs[1:] > pcs[:-1])):
        raise GuestError(f"counts: the addresses of interval {number} are not in order")
    return Interval(id=ident, pcs=pcs, counts=table[:, 1:]), end


def _trailer(section: tuple[int, int, int], found: Sequence[Interval], rest: int) -> None:
    written, flags, _ = section
    if written != len(found):
        raise GuestError(f"counts: the trailer says {written} intervals, {len(found)} were found")
    if rest:
        raise GuestError(f"counts: {rest} bytes follow the trailer")
    if flags & _OPEN_BEGIN:
        raise GuestError("counts: the guest ended inside an interval (a BEGIN mark without its END)")
    if flags & _BARE:
        raise GuestError("counts: an interval was begun where nothing was instrumented")
    if flags & _LONG_TURNS:
        raise GuestError(
            "counts: the turns of the CPUs were long while operations were counted, so that little crosses between them"
        )
    if flags & _BLIND:
        raise GuestError("counts: no task switch of this kernel was recognised, so several tasks cannot be counted")


def read(data: bytes | mmap.mmap) -> tuple[Interval, ...]:
    """Parse a whole output file; the intervals are views of ``data``, so that a mapped file stays on disk.

    Raises:
        GuestError: no header, a wrong checksum, cut off, no trailer, an id twice, or a BEGIN left open at the end.
            (An interval that a later BEGIN abandoned is simply not there; who marked it will miss it.)
    """
    offset, whole = _header(data), memoryview(data)
    found: list[Interval] = []
    while True:
        if offset + _SECTION.size > len(data):
            raise GuestError(
                f"counts: truncated after {len(found)} intervals, no trailer; QEMU was killed or the disk is full"
            )
        tag, *fields = _SECTION.unpack_from(data, offset)
        offset += _SECTION.size
        section = (fields[0], fields[1], fields[2])
        if tag == b"KDEN":
            _trailer(section, found, len(data) - offset)
            break
        if tag == b"KDSC" and found and found[-1].id == section[0] and found[-1].system_calls is None:
            table, offset = _body(whole, offset, len(found) - 1, section, _CALL_COLUMNS)
            found[-1] = replace(found[-1], system_calls=table.astype(np.int64))
            continue
        if tag == b"KDFT" and found and found[-1].id == section[0] and found[-1].touched is None:
            touched, offset = _body(whole, offset, len(found) - 1, section, _TOUCH_COLUMNS)
            found[-1] = replace(found[-1], touched=touched)
            continue
        if tag == b"KDST" and found and found[-1].id == section[0] and found[-1].stacks is None:
            nodes, offset = _body(whole, offset, len(found) - 1, section, _STACK_COLUMNS)
            found[-1] = replace(found[-1], stacks=nodes.astype(np.int64))
            continue
        if tag != b"KDIV":
            raise GuestError(f"counts: {tag!r} at byte {offset - _SECTION.size} does not start an interval")
        interval, offset = _interval(whole, offset, len(found), section)
        found.append(interval)
    twice = [ident for ident, times in Counter(interval.id for interval in found).items() if times > 1]
    if twice:
        raise GuestError(f"counts: interval id {twice[0]:#x} occurs twice")
    return tuple(found)


def raw_names(pcs: NDArray[np.uint64], symbols: Symbols | None) -> list[str]:
    """One name for each address of ``pcs`` (n,), as the kernel spells it; unknown kernel addresses by page."""
    names = [USER] * len(pcs)
    kernel = np.flatnonzero(pcs >= _KERNEL_HALF)
    found = symbols.names(pcs[kernel]) if symbols is not None else [None] * len(kernel)
    for index, name in zip(kernel.tolist(), found, strict=True):
        names[index] = name or f"[unknown {int(pcs[index] & ~_PAGE):#x}]"
    return names


def _function_names(pcs: NDArray[np.uint64], symbols: Symbols | None) -> list[str]:
    """As ``raw_names``, functions named as in the source."""
    names = raw_names(pcs, symbols)
    folded = {name: source_name(name) for name in set(names)}
    return [folded[name] for name in names]


def fold(interval: Interval, symbols: Symbols | None, ops: int = 1) -> Profile:
    """Add up an interval by function, as the source names it (``.isra``, ``.cold`` and such are parts of one).

    Without ``symbols`` every kernel address is unknown, never dropped.

    Raises:
        GuestError: the functions do not add up to the interval's total (it cannot be trusted).
    """
    names = _function_names(interval.pcs, symbols)
    order = sorted(set(names))
    index = {name: row for row, name in enumerate(order)}
    sums = np.zeros((len(order), _COLUMNS), dtype=np.uint64)
    if names:
        np.add.at(sums, [index[name] for name in names], interval.counts)
    functions = dict(zip(order, map(tuple, sums.tolist()), strict=True))
    total = tuple(interval.counts.sum(axis=0, dtype=np.uint64).tolist())
    known = symbols.calls(name for name in order if not name.startswith("[")) if symbols is not None else {}
    calls = "\n".join(" ".join((name, *callees)) for name, callees in known.items())
    profile = Profile(
        ops=ops,
        functions=functions,
        total=total,
        calls=calls,
        data_lines=data_lines(interval, symbols),
        code_lines=code_lines(interval, names),
    )
    check(profile)
    return profile


def data_lines(interval: Interval, symbols: Symbols | None) -> dict[str, int]:
    """Distinct cache lines of the kernel's data, by the function that touched each first; {} where not counted."""
    if interval.touched is None:
        return {}
    found: Counter[str] = Counter()
    names, numbers = _function_names(interval.touched[:, 0], symbols), interval.touched[:, 1].tolist()
    for name, lines in zip(names, numbers, strict=True):
        found[name] += lines
    return dict(found)


def code_lines(interval: Interval, names: Sequence[str]) -> dict[str, int]:
    """Distinct cache lines of the kernel's code in which an instruction began, by function; {} where not counted.

    ``names``: one for each address. A line that two functions share is that of the first.
    """
    if interval.touched is None:
        return {}
    ran = np.flatnonzero((interval.pcs >= _KERNEL_HALF) & (interval.counts[:, 0] > 0))
    first = np.unique(interval.pcs[ran] >> _LINE_SHIFT, return_index=True)[1]
    return dict(Counter(names[place] for place in ran[first].tolist()))


def places(intervals: Sequence[Interval], watched: Sequence[tuple[str, int, int]]) -> dict[str, tuple[int, ...]]:
    """For each symbol that is watched, and of which something ran, the offsets of what did; of namesakes all."""
    if not watched:
        return {}
    pcs = np.unique(np.concatenate([one.pcs[one.counts[:, 0] > 0] for one in intervals]))
    found: dict[str, set[int]] = {}
    for name, start, end in watched:
        low, high = np.searchsorted(pcs, np.array([start, end], np.uint64)).tolist()
        if low < high:
            found.setdefault(name, set()).update((pcs[low:high] - np.uint64(start)).tolist())
    return {name: tuple(sorted(offsets)) for name, offsets in found.items()}


def calls_of(profile: Profile) -> dict[str, frozenset[str]]:
    """Whom each function that ran can call; {} where that is not known."""
    return dict(map(_row_of_calls, filter(None, profile.calls.split("\n"))))


@lru_cache(maxsize=1 << 15)  # the rows of some ten kernels: each stands in many profiles
def _row_of_calls(line: str) -> tuple[str, frozenset[str]]:
    name, *callees = line.split(" ")
    return name, frozenset(callees)


def _sum(vectors: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*vectors, strict=True))) if vectors else (0,) * _COLUMNS


def check(profile: Profile) -> None:
    """Raise GuestError unless the functions add up to the total."""
    added = _sum(list(profile.functions.values()))
    if added != profile.total:
        raise GuestError(f"counts: functions add up to {added}, the total is {profile.total}")


def user_vector(profile: Profile) -> tuple[int, ...]:
    """The part of user space, in EXACT_COUNTERS order, of all of the profile's operations."""
    return profile.functions.get(USER, (0,) * _COLUMNS)


def kernel_vector(profile: Profile) -> tuple[int, ...]:
    """Everything but user space, in EXACT_COUNTERS order, of all of the profile's operations."""
    return tuple(t - u for t, u in zip(profile.total, user_vector(profile), strict=True))


def column(profile: Profile, name: str) -> dict[str, float]:
    """One count per operation by kernel function: of EXACT_COUNTERS, or ``data_lines`` or ``code_lines``."""
    if name in EXACT_COUNTERS:
        place = EXACT_COUNTERS.index(name)
        counts = {function: vector[place] for function, vector in profile.functions.items()}
    else:
        counts = profile.data_lines if name == "data_lines" else profile.code_lines
    return {function: count / profile.ops for function, count in counts.items() if function != USER}


def runs_alike(before: Profile, after: Profile, function: str) -> bool:
    """Whether a function ran on both sides and executed the same mix of instructions, be it more often."""
    old, new = before.functions.get(function), after.functions.get(function)
    if not old or not new or not (old[0] and new[0]):
        return False
    return all(was * new[0] == now * old[0] for was, now in zip(old, new, strict=True))


def pick(costs: Sequence[float]) -> int:
    """Index of the repetition that stands for all: the first with the most frequent cost, ties by the lower median.

    A minimum would report the luckiest repetition, which no user sees twice (FEASIBILITY: mode or median).

    Raises:
        ValueError: there is no repetition.
    """
    if not costs:
        raise ValueError("no repetition to pick from")
    times = Counter(costs)
    most = max(times.values())
    modes = [cost for cost, n in times.items() if n == most]
    return list(costs).index(statistics.median_low(modes))


def median_place(by_seed: Sequence[Profile]) -> int:
    """The seed whose kernel instructions per operation are the lower median over the seeds.

    Raises:
        ValueError: there is no profile.
    """
    if not by_seed:
        raise ValueError("no profile to choose from")
    costs = [(profile.total[0] - user_vector(profile)[0]) / profile.ops for profile in by_seed]
    ranked = sorted(range(len(by_seed)), key=lambda i: (costs[i], i))
    return ranked[(len(ranked) - 1) // 2]


def median_profile(by_seed: Sequence[Profile]) -> Profile:
    """The profile of that seed.

    Raises:
        ValueError: there is no profile.
    """
    return by_seed[median_place(by_seed)]
