# SPDX-License-Identifier: GPL-2.0-or-later
"""From what the plugin saw move to lines with names, and to waits for locks by who waits. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kdelta.attribution import callers, sequences
from kdelta.attribution.line_names import Places, Types, Variables
from kdelta.attribution.lines import LINE_BYTES, Moves
from kdelta.attribution.profiles import Symbols
from kdelta.kernel.spelling import fold
from kdelta.model import MovedLine, Waited

KEPT = 48  # names of lines in a profile; what moved less is added up
OTHERS = "[others]"
NAMELESS = "memory: "  # before the functions to which it moves most
_FUNCTIONS_OF_A_NAME = 2  # of what has no other name
_ALSO = 2  # variables that are named beside the one that moved a line most
_OTHER_NAMES = 8  # of what lies in a line, that moved it
_FUNCTIONS_OF_A_LINE = 6
_WAITS_KEPT = 48
_PER_CPU = "per-CPU "
_NODES = re.compile(r"per-CPU (?:q|osq_|mcs_)node")  # kernel/locking/qspinlock.c, osq_lock.c
_LOCKREF_TAKES = "_raw_spin_lock"  # lib/lockref.c


class _Line:
    """Transfers of one line, or of several of one name."""

    def __init__(self) -> None:
        self.reads = self.writes = self.lines = self.cpus = self.unshared = 0
        self.by: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.whose: Counter[str] = Counter()  # functions without those that act for them
        self.names: Counter[str] = Counter()  # of variables or fields
        self.groups: Counter[str] = Counter()
        self.needed: set[str] = set()  # names of which a byte was shared

    def add(self, other: _Line) -> None:
        self.reads += other.reads
        self.writes += other.writes
        self.lines += other.lines
        self.cpus = max(self.cpus, other.cpus)
        self.unshared += other.unshared
        self.whose += other.whose
        self.names += other.names
        self.groups += other.groups
        self.needed |= other.needed
        for function, (reads, writes) in other.by.items():
            self.by[function][0] += reads
            self.by[function][1] += writes

    def ranked(self) -> list[str]:
        """Functions, those first to which it moved most."""
        return sorted(self.by, key=lambda name: (-sum(self.by[name]), name))

    def key(self) -> str:
        """What it is added up by: of an object all lines at its place in it, else its name."""
        return _most(self.groups, 1)[0] if self.groups else self.name()

    def name(self) -> str:
        """The variable or field that moved it most; else the functions that did.

        One name alone: what else lies in the line differs between kernels that are to be compared.
        """
        if self.names:
            return _most(self.names, 1)[0]
        return f"{NAMELESS}{', '.join(sorted(_most(self.whose, _FUNCTIONS_OF_A_NAME)))}"

    def told(self, name: str) -> MovedLine:
        ranked = self.ranked()
        by = {function: (self.by[function][0], self.by[function][1]) for function in ranked[:_FUNCTIONS_OF_A_LINE]}
        if rest := ranked[_FUNCTIONS_OF_A_LINE:]:
            by[OTHERS] = (sum(self.by[f][0] for f in rest), sum(self.by[f][1] for f in rest))
        return MovedLine(
            name=name,
            reads=self.reads,
            writes=self.writes,
            lines=self.lines,
            cpus=self.cpus,
            unshared=self.unshared,
            beside=tuple(sorted(set(self.names) - self.needed)),
            also=() if self.groups else tuple(_most(self.names, 1 + _ALSO)[1:]),
            others={one: self.names[one] for one in _most(self.names, _OTHER_NAMES) if one != name},
            by=by,
        )


def _most(counts: Counter[str], limit: int) -> list[str]:
    return sorted(counts, key=lambda name: (-counts[name], name))[:limit]


class Functions:
    """Names of the functions at addresses of code, as the source has them."""

    def __init__(self, symbols: Symbols | None) -> None:
        self._symbols = symbols

    def at(self, addresses: NDArray[np.uint64]) -> list[str]:
        """One name for each address (n,); "" for 0, by page where no function is known."""
        pcs = np.ascontiguousarray(addresses).astype(np.uint64)
        raw = self._symbols.names(pcs) if self._symbols is not None else [None] * len(pcs)
        return [
            "" if not pc else fold(name) if name else f"[unknown {pc & ~4095:#x}]"
            for name, pc in zip(raw, pcs.tolist(), strict=True)
        ]


def _by_line(moves: Moves, functions: Functions, places: Places) -> dict[int, _Line]:
    shared = dict(zip(moves.lines["address"].tolist(), moves.lines["shared"].tolist(), strict=True))
    running, whose = functions.at(moves.transfers["pc"]), functions.at(moves.transfers["caller"])
    found: defaultdict[int, _Line] = defaultdict(_Line)
    for row, function, caller in zip(moves.transfers.tolist(), running, whose, strict=True):
        address, _pc, _caller, _cpus, reads, writes = row
        line = found[address & -LINE_BYTES]
        line.reads += reads
        line.writes += writes
        mover = f"{caller} ({function})" if caller else function
        line.by[mover][0] += reads
        line.by[mover][1] += writes
        line.whose[caller or function] += reads + writes
        needed = shared.get(address & -LINE_BYTES, 0) >> (address % LINE_BYTES) & 1
        if not needed:
            line.unshared += reads + writes
        place = places.at(address)
        if place.name:
            line.names[place.name] += reads + writes
            if needed:
                line.needed.add(place.name)
        if place.group:
            line.groups[place.group] += reads + writes
    for row in moves.lines:
        found[int(row["address"])].lines = 1
        found[int(row["address"])].cpus = int(row["cpus"]).bit_count()
    return found


def _merged(lines: Mapping[int, _Line]) -> dict[str, _Line]:
    """By name; of objects all that lie at the same place in theirs are one."""
    keyed: defaultdict[str, _Line] = defaultdict(_Line)
    for line in lines.values():
        keyed[line.key()].add(line)
    named: defaultdict[str, _Line] = defaultdict(_Line)
    for line in keyed.values():
        named[line.name()].add(line)
    return named


def table(
    moves: Moves, symbols: Symbols | None, variables: Variables | None, types: Types | None = None
) -> tuple[MovedLine, ...]:
    """The lines that moved, by name, most transfers first; KEPT at most, the rest is one row OTHERS.

    The transfers of all rows add up to ``moves.total``.
    """
    named = _merged(_by_line(moves, Functions(symbols), Places(moves, variables, types)))
    ranked = sorted(named, key=lambda name: (-(named[name].reads + named[name].writes), name))
    rows = [named[name].told(name) for name in ranked[:KEPT]]
    if ranked[KEPT:]:
        rest = _Line()
        for name in ranked[KEPT:]:
            rest.add(named[name])
        rows.append(rest.told(OTHERS))
    return tuple(rows)


def _lock_of(moves: Moves, places: Places) -> dict[int, str]:
    """By call of a function that acts for its caller: the name of the line that it moved most.

    What each CPU has of its own is a lock where nothing else moved (a runqueue's), but for the nodes that wait in line.
    """
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    own: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for address, _pc, caller, _cpus, reads, writes in moves.transfers.tolist():
        name = places.at(address).name if caller else ""
        if name and not _NODES.match(name):
            (own if name.startswith(_PER_CPU) else found)[caller][name] += reads + writes
    return {caller: _most(names, 1)[0] for caller, names in (*own.items(), *found.items())}


def _is_wait(function: str, site: str) -> bool:
    """A slow path, entered from what is none; or the lock of a lockref, which it takes where counting failed."""
    if callers.waits(function):
        return not callers.waits(site)
    return site.startswith(callers.LOCKREF) and function == _LOCKREF_TAKES


def waited(moves: Moves, symbols: Symbols | None) -> int:
    """How often a lock was found taken, in all."""
    functions = Functions(symbols)
    entered, sites = functions.at(moves.entries["entry"]), functions.at(moves.entries["site"])
    times = moves.entries["times"].tolist()
    return sum(n for n, function, site in zip(times, entered, sites, strict=True) if _is_wait(function, site))


def read_in_vain(moves: Moves, variables: Variables | None, types: Types | None = None) -> int:
    """How often a reader found a sequence counter written, in all."""
    return sequences.in_vain(moves, Places(moves, variables, types))


def waits(
    moves: Moves, symbols: Symbols | None, variables: Variables | None, types: Types | None = None
) -> tuple[Waited, ...]:
    """How often locks were found taken, by slow path, who waits and for what, most often first; the rest is left out.

    A lockref that could not be changed by itself, because its lock was held or it was contended, is told as one too. So
    is a read under a sequence counter that was written meanwhile, of all such reads.
    """
    functions, places = Functions(symbols), Places(moves, variables, types)
    locks = _lock_of(moves, places)
    entered = functions.at(moves.entries["entry"])
    sites, whose = functions.at(moves.entries["site"]), functions.at(moves.entries["caller"])
    rows: Counter[tuple[str, str, str]] = Counter()
    taken: Counter[tuple[str, str]] = Counter()
    for row, function, site, caller in zip(moves.entries.tolist(), entered, sites, whose, strict=True):
        _entry, at, call, times = row
        lock = locks.get(call, "")
        if at == call and callers.takes(function):
            taken[caller, lock] += times
        if _is_wait(function, site):
            told = f"{site} failed" if site.startswith(callers.LOCKREF) else function
            rows[told, caller, lock] += times
    in_vain, reads = sequences.by_reader(moves, functions.at, places)
    rows.update(+in_vain)
    ranked = sorted(rows, key=lambda key: (-rows[key], key))[:_WAITS_KEPT]
    return tuple(
        Waited(
            function=key[0], caller=key[1], lock=key[2], times=rows[key], taken=reads.get(key) or taken[key[1], key[2]]
        )
        for key in ranked
    )
