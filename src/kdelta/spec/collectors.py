# SPDX-License-Identifier: GPL-2.0-or-later
"""The catalogue of collector sets (recipes/collectors, one TOML file each), and what a guest must write for one.

A set has probes; a probe has ways, of which a guest takes the first that its kernel accepts; a way has dynamic events,
triggers that hand values from one event to the next (``chain``), and tables: hist triggers whose content is the answer.
Tables count while the marked operations run, and only then: they are paused around them, or where a way has a ``flow``,
the trigger that feeds them is there for just that time. Pure but for reading the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from kdelta.errors import UserError
from kdelta.model import Arch, Kernel
from kdelta.model.collectors import Collector, Probe, Way
from kdelta.paths import shipped
from kdelta.spec import toml

HOLD = "hold"  # not a set of the tracefs, but the counting plugin
LOCKS = "locks"  # the set that knows by which names functions take locks
# The guest names its task so while it writes to the tracefs itself (guest/trace.c): what it causes is not counted.
ARMING_COMM = "kdelta-trace"
# Where the caller of a function is found at its first instruction.
_CALLER: dict[Arch, str] = {"x86_64": "$stack0", "arm64": "%lr"}


def parse(text: str, where: str) -> Collector:
    """One TOML file.

    Raises:
        UserError: it is not a collector set; names the key.
    """
    try:
        found = toml.decode(text, Collector)
    except ValueError as error:
        raise UserError(f"collector {where}: {error}") from None
    if found.name != Path(where).stem:
        raise UserError(f"collector {where}: its name is {found.name!r}; name the file {found.name}.toml")
    for probe in found.probes:
        for way in probe.ways:
            if not probe.tables_of(way):
                raise UserError(f"collector {where}: probe {probe.name}, way {way.name!r} has no table")
    return found


def catalogue(extra: Sequence[Path] = ()) -> dict[str, Collector]:
    """All sets by name: those shipped, and the TOML files of the directories ``extra``.

    Raises:
        UserError: a file that is no collector set, or a name twice.
    """
    found: dict[str, Collector] = {}
    for folder in (shipped("recipes") / "collectors", *extra):
        for path in sorted(folder.glob("*.toml")):
            one = parse(path.read_text(encoding="utf-8"), str(path))
            if one.name in found:
                raise UserError(f"collector {path}: there is another set {one.name!r}; give it another name")
            found[one.name] = one
    return found


def choose(text: str, known: Mapping[str, Collector], others: Sequence[str] = ()) -> tuple[Collector, ...]:
    """``locks,sizes`` -> the sets; ``others`` are words that could stand there beside them and ``HOLD``.

    Raises:
        UserError: one of them is not known, or named twice.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            there = [*known, HOLD, *others]
            close = get_close_matches(name, there, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UserError(f"cannot trace {name!r}; one of {', '.join(there)}{hint}")
        if names.count(name) > 1:
            raise UserError(f"{name!r} is given twice")
    return tuple(known[name] for name in names)


def _gated(hist: str, word: str = "") -> str:
    """``hist`` with what the guest itself causes filtered out, and ``pause`` or ``cont`` where it belongs."""
    trigger, _, condition = hist.partition(" if ")
    own = f'COMM != "{ARMING_COMM}"'
    return f"hist:{trigger}{f':{word}' if word else ''} if {f'({condition}) && {own}' if condition else own}"


def _both(verb: str, back: str, file: str, text: str) -> list[str]:
    return [f"{verb} {file} {text}", f"{back} {file} !{text}"]


def _way_lines(probe: Probe, way: Way, arch: Arch) -> Iterator[str]:
    yield f"try {way.name.replace(' ', '_')}"
    for event in way.events:
        yield f"do dynamic_events {event.replace('@caller', _CALLER[arch])}"
        yield f"undo dynamic_events -:{re.split('[: ]', event)[1]}"
    for link in way.chain:
        yield from _both("do", "undo", link.file, f"hist:{link.hist}")
    for table in probe.tables_of(way):
        if way.flow:
            yield from _both("do", "undo", table.file, f"hist:{table.hist}")
        else:
            yield f"do {table.file} {_gated(table.hist, 'pause')}"
            yield f"arm {table.file} {_gated(table.hist, 'cont')}"
            yield f"disarm {table.file} {_gated(table.hist, 'pause')}"
            yield f"undo {table.file} !{_gated(table.hist)}"
    for link in way.flow:
        yield from _both("arm", "disarm", link.file, _gated(link.hist))
        yield f"undo {link.file} !{_gated(link.hist)}"
    for file in dict.fromkeys(f"events/{table.on}/hist" for table in probe.tables_of(way)):
        yield f"read {file}"
    if any(event[0] in "pr" for event in way.events):
        yield "read kprobe_profile"


def lines(collector: Collector, arch: Arch) -> tuple[str, ...]:
    """What a guest writes, as lines of guest/trace.h; events of ``kmem`` come last, so that arming is not seen."""
    order = sorted(
        collector.probes, key=lambda p: any(t.on.startswith("kmem/") for w in p.ways for t in p.tables_of(w))
    )
    found: list[str] = []
    for probe in order:
        found.append(f"probe {probe.name}")
        for way in probe.ways:
            found += _way_lines(probe, way, arch)
    return tuple(found)


def missing(kernel: Kernel, needs: Sequence[str]) -> tuple[str, ...]:
    """Which of the options ``needs`` the kernel's configuration says are off; unknown ones are not missing."""
    return tuple(option for option in needs if kernel.config.get(option) == "n")
