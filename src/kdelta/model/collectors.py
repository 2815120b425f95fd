# SPDX-License-Identifier: GPL-2.0-or-later
"""A collector set: what ``kdelta trace`` asks of the tracefs, and what the answers mean. Read by spec/collectors.py."""

from __future__ import annotations

import fnmatch
from typing import Annotated

from msgspec import Meta, Struct, field

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
