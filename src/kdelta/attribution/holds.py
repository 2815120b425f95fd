# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions executed while mutexes are held: where a kernel takes and releases them, and what the plugin counted.

A hold is seen where a function calls the function that takes the lock and calls (or jumps to) the one that releases
it, or leaves one of both to a helper that a few functions call (anon_pipe_prefill_and_lock of Linux 7.3), or where two
helpers that take and release have the same users (fdget_pos and __f_unlock_pos). Locks taken
inline (a fast path in the caller, mutex_trylock, most spinlocks) are not seen. Pure over bytes.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kdelta.attribution.callers import Table
from kdelta.attribution.traces import ProbeResult, Row
from kdelta.attribution.warnings import HoldUnclear
from kdelta.errors import GuestError, UserError
from kdelta.kernel import elf
from kdelta.kernel.spelling import fold
from kdelta.model import Warn

TAKES = ("mutex_lock", "mutex_lock_nested")
RELEASES = ("mutex_unlock",)
TITLE = "mutex hold, exact"
UNIT = "instructions"
_FEW = 4
_SAME_USERS = 0.75
_HEAD = "kdelta-hold-sites 2"
_AT_ONE = ("acq", "rel", "ask")  # as they happen at one address
_INTERVAL = re.compile(r"^interval (\d{1,20})$")
_SITE = re.compile(r"^site (\d{1,20}) (\d{1,20}) (\d{1,20}) (\d{1,20})$")
_GROUP = re.compile(r"^group (\d{1,20}) (\d{1,20}) ([01])$")


class Place(Struct, frozen=True, kw_only=True):
    """A call that takes or releases; ``pc`` is where a hold begins (after the call, at ``call``) or ends (at it)."""

    pc: int
    takes: bool
    function: str  # as the source names it
    offset: int  # of ``pc`` in the function's symbol
    group: str = ""  # functions that take and release for each other share one; "" = the function alone
    call: int = 0


class Sites(Struct, frozen=True, kw_only=True):
    """All places of a kernel in order of addresses; sites and groups are numbered by their order."""

    places: tuple[Place, ...]

    @property
    def sites(self) -> tuple[Place, ...]:
        """The places that take, by site number."""
        return tuple(place for place in self.places if place.takes)

    @property
    def groups(self) -> tuple[str, ...]:
        """Functions, by group number."""
        return tuple(dict.fromkeys(place.group or place.function for place in self.places))

    def text(self) -> str:
        """The list as the plugin reads it."""
        group = {name: number for number, name in enumerate(self.groups)}
        lines: list[tuple[int, str, int, int]] = [
            (place.pc, "rel", 0, group[place.group or place.function]) for place in self.places if not place.takes
        ]
        for site, place in enumerate(self.sites):
            mine = group[place.group or place.function]
            lines += [(place.pc, "acq", site, mine), (place.call, "ask", site, mine)]
        lines.sort(key=lambda line: (line[0], _AT_ONE.index(line[1])))
        out = [_HEAD, *(f"{what} {pc:x} {site} {mine}" for pc, what, site, mine in lines)]
        return "\n".join([*out, ""])


def _x86(code: bytes, base: int, targets: set[int]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Calls of and jumps to targets as (address, target): ``e8``/``e9`` with a relative operand of 32 bits."""
    raw = np.frombuffer(code, np.uint8)
    calls: list[tuple[int, int]] = []
    jumps: list[tuple[int, int]] = []
    for opcode in (0xE8, 0xE9):
        at = np.flatnonzero(raw[:-4] == opcode) if len(raw) > 5 else np.array([], np.int64)
        operand = sum(raw[at + 1 + i].astype(np.int64) << (8 * i) for i in range(4))
        operand = np.where(operand >= 1 << 31, operand - (1 << 32), operand)
        lands = at + 5 + operand
        for target in targets:
            (calls if opcode == 0xE8 else jumps).extend(
                (base + hit, target) for hit in at[lands == target - base].tolist()
            )
    return calls, jumps


def _arm64(code: bytes, base: int, targets: set[int]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The same for ``bl`` and ``b``: 26 bits of words."""
    words = np.frombuffer(code[: len(code) & ~3], "<u4").astype(np.int64)
    at = np.arange(len(words), dtype=np.int64) * 4
    operand = words & 0x3FFFFFF
    operand = np.where(operand >= 1 << 25, operand - (1 << 26), operand) * 4
    calls: list[tuple[int, int]] = []
    jumps: list[tuple[int, int]] = []
    for target in targets:
        hits = at + operand == target - base
        calls += [(base + int(hit), target) for hit in at[hits & (words >> 26 == 0x25)]]
        jumps += [(base + int(hit), target) for hit in at[hits & (words >> 26 == 0x05)]]
    return calls, jumps


def find(image: bytes, table: Table, name: str = "kernel") -> Sites:
    """Every call of a kernel that takes or releases a mutex. ``image`` is an uncompressed vmlinux.

    Raises:
        UserError: no ELF image, or no function of those names, so that nothing can be seen.
    """
    try:
        file = elf.parse(image)
    except elf.ElfError as error:
        raise UserError(f"{name}: {error}; exact lock holds need an uncompressed vmlinux") from None
    starts, names = table.addresses, table.all_names
    by_name: dict[str, set[int]] = defaultdict(set)
    for address, symbol in zip(starts.tolist(), names, strict=True):
        if symbol in TAKES or symbol in RELEASES:
            by_name[symbol].add(address)
    takes = {address for symbol in TAKES for address in by_name[symbol]}
    releases = {address for symbol in RELEASES for address in by_name[symbol]}
    if not takes or not releases:
        raise UserError(
            f"{name}: no function {TAKES[0]} and {RELEASES[0]}: its locks are inlined and cannot be observed"
        )
    scan, size = (_x86, 5) if file.machine == "x86_64" else (_arm64, 4)
    found: dict[tuple[int, bool], Place] = {}
    for low, high in table.ranges:
        code, base = _code(file, low, high)
        calls, jumps = scan(code, base, takes | releases)
        # A jump to the function that takes (the last thing a wrapper does) begins no hold of this function.
        for pc, target in [*calls, *(jump for jump in jumps if jump[1] in releases)]:
            index = int(np.searchsorted(starts, np.uint64(pc), side="right")) - 1
            if index < 0:
                continue
            taking = target in takes
            at = pc + size if taking else pc
            found[at, taking] = Place(
                pc=at, takes=taking, function=fold(names[index]), offset=at - int(starts[index]), call=taking * pc
            )
    places = tuple(found[key] for key in sorted(found))
    halves = _halves(places, starts)
    by_start = {int(starts[index]): fold(names[index]) for index in halves}
    calling: dict[str, set[str]] = defaultdict(set)
    using: dict[str, set[str]] = defaultdict(set)  # ... or jumping to
    for low, high in table.ranges:
        code, base = _code(file, low, high)
        calls, jumps = scan(code, base, set(by_start))
        for users, hits in ((calling, calls), (using, [*calls, *jumps])):
            for pc, target in hits:
                index = int(np.searchsorted(starts, np.uint64(pc), side="right")) - 1
                users[by_start[target]].add(fold(names[index]))
    pairs = _pairs({fold(names[index]): takes for index, takes in halves.items()}, using)
    return Sites(places=_grouped(places, calling, pairs))


def _halves(places: Sequence[Place], starts: NDArray[np.uint64]) -> dict[int, bool]:
    """Functions (as indexes into ``starts``) that only take or only release, and which: others do the other half."""
    sides: dict[int, set[bool]] = defaultdict(set)
    for place in places:
        sides[int(np.searchsorted(starts, np.uint64(place.pc - place.offset), side="right")) - 1].add(place.takes)
    return {index: next(iter(side)) for index, side in sides.items() if len(side) == 1}


def _pairs(halves: Mapping[str, bool], users: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Functions of which one takes and another releases, for the same users: fdget_pos and __f_unlock_pos.

    Nobody calls what struct seq_operations points to: there start and stop belong together by their names.
    """
    found = []
    for take in sorted(name for name, takes in halves.items() if takes):
        stop = re.sub(r"_start$", "_stop", take)
        if halves.get(stop, True) is False:
            found.append((take, stop))
        for release in sorted(name for name, takes in halves.items() if not takes):
            either, both = users[take] | users[release], users[take] & users[release]
            if len(both) >= max(2, _SAME_USERS * len(either)):
                found.append((take, release))
    return found


def _grouped(
    places: Sequence[Place], callers: Mapping[str, set[str]], pairs: Sequence[tuple[str, str]]
) -> tuple[Place, ...]:
    """Helpers and their callers in one group, where the callers are few: rtnl_lock() belongs to everybody."""
    leader: dict[str, str] = {}

    def find_leader(name: str) -> str:
        while leader.get(name, name) != name:
            name = leader[name]
        return name

    few = [(helper, user) for helper, users in callers.items() if len(users) <= _FEW for user in users]
    for one, other in [*sorted(few), *pairs]:
        first, second = sorted((find_leader(one), find_leader(other)))
        leader[second] = first
    return tuple(replace(place, group=find_leader(place.function)) for place in places)


def _code(file: elf.Elf, low: int, high: int) -> tuple[bytes, int]:
    for segment in file.segments:
        if segment.address <= low < segment.address + segment.size:
            start = segment.offset + low - segment.address
            return file.data[start : start + min(high, segment.address + segment.size) - low], low
    return b"", low


class Hold(Struct, frozen=True, kw_only=True):
    """What one interval saw at one site, in instructions."""

    count: int
    total: int
    most: int


class Interval(Struct, frozen=True, kw_only=True):
    """Holds by site number; ``unclear`` by group number: holds that began before the last one of the group ended."""

    holds: dict[int, Hold]
    unclear: dict[int, int]


def read(data: bytes) -> dict[int, Interval]:
    """The plugin's output, by interval id.

    Raises:
        GuestError: cut off, or no such file.
    """
    lines = data.decode("ascii", "replace").splitlines()
    if not lines or lines[0] != "kdelta-holds 1":
        raise GuestError("holds: not the counting plugin's output; QEMU exited before the plugin started")
    found: dict[int, Interval] = {}
    now = Interval(holds={}, unclear={})
    for line in lines[1:]:
        if match := _INTERVAL.match(line):
            now = found[int(match[1])] = Interval(holds={}, unclear={})
        elif match := _SITE.match(line):
            now.holds[int(match[1])] = Hold(count=int(match[2]), total=int(match[3]), most=int(match[4]))
        elif match := _GROUP.match(line):
            now.unclear[int(match[1])] = int(match[2])
        elif line == f"end {len(found)}":
            return found
        else:
            raise GuestError(f"holds: {line[:60]!r} is not a line of the plugin's output")
    raise GuestError("holds: truncated, no end line; QEMU was killed or the disk is full")


def pick(intervals: Sequence[Interval]) -> tuple[Interval, int]:
    """The repetition that stands for all, and how many say exactly the same: the most frequent total.

    Raises:
        ValueError: there is none.
    """
    totals = [sum(hold.total for hold in one.holds.values()) for one in intervals]
    best = statistics.median_low(statistics.multimode(totals))
    chosen = intervals[totals.index(best)]
    return chosen, sum(one == chosen for one in intervals)


def facts(sites: Sites, intervals: Iterable[Interval]) -> dict[str, float]:
    """One case's holds as figures by name, for the store: ``FUNCTION+OFFSET count``, ``... total``, ``... most``."""
    every = list(intervals)
    chosen, same = pick(every)
    found: dict[str, float] = {"repetitions": len(every), "repetitions the same": same}
    for number, hold in sorted(chosen.holds.items()):
        place = sites.sites[number]
        name = f"{place.function}+{place.offset:#x}"
        found |= {f"{name} count": hold.count, f"{name} total": hold.total, f"{name} most": hold.most}
    groups = sites.groups
    released = {place.group or place.function for place in sites.places if not place.takes}
    unclear = {groups[group]: count for group, count in chosen.unclear.items() if count}
    elsewhere = {
        f"{name} elsewhere": count + 1 for name, count in unclear.items() if name not in released
    }  # none ended
    return found | {f"{name} unclear": count for name, count in unclear.items() if name in released} | elsewhere


def result(figures: Mapping[str, float], aliases: Mapping[str, str]) -> tuple[ProbeResult, list[Warn]]:
    """What ``facts`` kept, by function that takes the mutex; exact call sites are in ``Row.sites``."""
    rows: dict[str, Row] = {}
    warnings: list[Warn] = []
    for name, value in figures.items():
        site, _, what = name.rpartition(" ")
        if what in ("unclear", "elsewhere"):
            warnings.append(HoldUnclear(site, int(value), elsewhere=what == "elsewhere"))
        if what != "count":
            continue
        function = aliases.get(site.rpartition("+")[0], site.rpartition("+")[0])
        old = rows.get(function, Row(site=function, count=0, sums={UNIT: 0}, most=0))
        rows[function] = Row(
            site=function,
            count=old.count + int(value),
            sums={UNIT: old.sums[UNIT] + int(figures[f"{site} total"])},
            most=max(old.most or 0, int(figures[f"{site} most"])),
            sites={**old.sites, site: int(value)},
        )
    ordered = sorted(rows.values(), key=lambda row: (-row.sums[UNIT], row.site))
    same, every = int(figures.get("repetitions the same", 0)), int(figures.get("repetitions", 0))
    way = f"counting plugin, {same} of {every} repetitions identical"
    return ProbeResult(probe="hold", title=TITLE, state="ok", way=way, rows=tuple(ordered)), warnings
