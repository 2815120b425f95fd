# SPDX-License-Identifier: GPL-2.0-or-later
"""The catalogue of collector sets (recipes/collectors, one TOML file each), and what a guest must write for one.

A set has probes; a probe has ways, of which a guest takes the first that its kernel accepts; a way has dynamic events,
triggers that hand values from one event to the next (``chain``), and tables: hist triggers whose content is the answer.
Tables count while the marked operations run, and only then: they are paused around them, or where a way has a ``flow``,
the trigger that feeds them is there for just that time. Pure but for reading the files.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from kdelta.errors import UserError
from kdelta.model import Arch, Kernel
from kdelta.paths import shipped

# The guest names its task so while it writes to the tracefs itself (guest/trace.c): what it causes is not counted.
ARMING_COMM = "kdelta-trace"
# Where the caller of a function is found at its first instruction.
_CALLER: dict[Arch, str] = {"x86_64": "$stack0", "arm64": "%lr"}

Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*$")]
Line = Annotated[str, Meta(pattern=r"^[ -~]+$")]
EventName = Annotated[str, Meta(pattern=r"^[a-z_0-9]+/[A-Za-z_0-9]+$")]
Dynamic = Annotated[str, Meta(pattern=r"^[fpsr][0-9]*:[a-z]+/[a-z_0-9]+ [ -~]+$")]


class Link(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A hist trigger without its first word (``hist:``), on the event ``SYSTEM/EVENT``."""

    on: EventName
    hist: Line

    @property
    def file(self) -> str:
        return f"events/{self.on}/trigger"


class Table(Link, frozen=True, kw_only=True):
    """A hist trigger whose content is read, and what its keys and values mean.

    ``site``: the key that says who (a function, a stack, a system call); ``label``: a key of few values, named by
    ``names``; ``lock``: the key with a lock's address; ``bucket``: the key with the exponent of a log2 histogram;
    ``sums``: unit -> value. A maximum is read where the trigger has onmax.
    """

    site: str = ""
    label: str = ""
    lock: str = ""
    bucket: str = ""
    sums: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> str:
        """The part of the trigger that tells it from others on the same event."""
        return self.hist.split(":")[0].removeprefix("keys=")


class Way(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to ask; ``since`` is the release that has it, ``needs`` the options without CONFIG_."""

    name: Annotated[str, Meta(min_length=1)]
    since: str = ""
    needs: tuple[str, ...] = ()
    events: tuple[Dynamic, ...] = ()
    chain: tuple[Link, ...] = ()
    flow: tuple[Link, ...] = ()
    tables: tuple[Table, ...] = ()


class Probe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing to find out. ``tables`` are of every way that has none of its own; ``until``: the last release."""

    name: Name
    title: str
    ways: Annotated[tuple[Way, ...], Meta(min_length=1)]
    tables: tuple[Table, ...] = ()
    until: str = ""

    def tables_of(self, way: Way) -> tuple[Table, ...]:
        """The tables of ``way``."""
        return way.tables or self.tables


class Collector(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A set: a TOML file. ``skip``: functions (with ``*``) that are no call site; ``aliases``: new name -> old name."""

    name: Name
    title: str
    help: str
    cost: str
    probes: Annotated[tuple[Probe, ...], Meta(min_length=1)]
    needs: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)

    def probe(self, name: str) -> Probe | None:
        """The probe of this name."""
        return next((probe for probe in self.probes if probe.name == name), None)

    def skips(self, function: str) -> bool:
        """Whether ``function`` lies between an event and its call site."""
        return any(fnmatch.fnmatchcase(function, pattern) for pattern in self.skip)


def parse(text: str, where: str) -> Collector:
    """One TOML file.

    Raises:
        UserError: it is not a collector set; names the key.
    """
    try:
        found = msgspec.toml.decode(text, type=Collector)
    except msgspec.DecodeError as error:
        raise UserError(f"collector {where}: {error}") from None
    if found.name != Path(where).stem:
        raise UserError(f"collector {where}: its name is {found.name!r}; name the file {found.name}.toml")
    for probe in found.probes:
        for way in probe.ways:
            if not probe.tables_of(way):
                raise UserError(f"collector {where}: probe {probe.name}, way {way.name!r} has no table")
    return found


def catalogue(extra: Sequence[Path] = ()) -> dict[str, Collector]:
    """All sets by name: those shipped, and the TOML files of the folders ``extra``.

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


def choose(text: str, known: Mapping[str, Collector]) -> tuple[Collector, ...]:
    """``locks,sizes`` -> the sets.

    Raises:
        UserError: one of them is not known, or named twice.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UserError(f"{name!r} is nothing to trace; there are {', '.join(known)}{hint}")
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
