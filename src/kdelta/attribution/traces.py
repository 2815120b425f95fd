# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest read from the tracefs -> counts, sums and histograms by call site. Pure.

Figures are of all counted operations; ``SetResult.ops`` says of how many.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from kdelta.attribution.tracefs import FRAME, Entry, Hist, Key, files, parse_hist, plain
from kdelta.attribution.warnings import TraceDropped, TraceFailed, TraceMissed, TraceShortened
from kdelta.guest.protocol import Done, Record, Repetition, Value
from kdelta.kernel.spelling import fold
from kdelta.model import State, Warn
from kdelta.model.collectors import Collector, Probe, Table, Way

_SYMBOL = re.compile(r"^\[([0-9a-f]+)\]\s+(\S+)$")
_NUMBERED = re.compile(r"^(.*?)\s+\[\s*\d+\]$")
_NEW_CALL = re.compile(r"^unknown_syscall\s+\[\s*(\d+)\]$")  # one without metadata: by its number, or all were one
_RETURNED = f"syscall_{2**64 - 1}"  # no call: rt_sigreturn(2) ends with the registers of what the signal interrupted
_OFFSET = re.compile(r"\+0x[0-9a-f]+(/0x[0-9a-f]+)?( \[\w+\])?$")
_MISSED = re.compile(r"^[ \t]*(\S+)[ \t]+(\d{1,19})[ \t]+(\d{1,19})[ \t]*$", re.MULTILINE)
_TAKERS_SHOWN = 3
ProbeState = Literal["ok", "missing", "absent"]


class Row(Struct, frozen=True, kw_only=True):
    """One call site (``site``), kind (``label``) and lock; ``sums`` by unit; ``sites`` counts by exact call site."""

    site: str = ""
    label: str = ""
    lock: str = ""
    count: int
    sums: dict[str, int] = field(default_factory=dict)
    most: int | None = None
    sites: dict[str, int] = field(default_factory=dict)


class Buckets(Struct, frozen=True, kw_only=True):
    """A log2 histogram: exponent n -> how many values in (2^(n-1), 2^n]; -1 holds what is below 1."""

    site: str = ""
    label: str = ""
    unit: str
    counts: dict[int, int]


class ProbeResult(Struct, frozen=True, kw_only=True):
    """What one probe found. ``missing``: the kernel takes no way (``why``); ``absent``: this release has it no more."""

    probe: str
    title: str
    state: ProbeState
    way: str = ""
    why: str = ""
    rows: tuple[Row, ...] = ()
    buckets: tuple[Buckets, ...] = ()


class SetResult(Struct, frozen=True, kw_only=True):
    """One collector set in one case on one kernel. ``errors`` is the kernel's own trace error log."""

    collector: str
    title: str
    kernel: str
    case: str
    state: State
    why: str = ""
    ops: int = 0
    probes: tuple[ProbeResult, ...] = ()
    warnings: tuple[Warn, ...] = ()
    errors: str = ""


class _Names:
    """Turns keys into names: call sites by function, locks by who takes them."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def site(self, key: Key) -> tuple[str, str]:
        """(function as compared between kernels, exact call site)."""
        if isinstance(key, tuple):
            frames = [match[1] for line in key if (match := FRAME.match(line))]
            shown = next((name for name in frames if not self._collector.skips(name)), frames[-1] if frames else "?")
            return self._function(shown), shown
        symbol = _SYMBOL.match(key)
        exact = symbol[2] if symbol else _NUMBERED.sub(r"\1", _NEW_CALL.sub(r"syscall_\1", key))
        exact = "sys_rt_sigreturn" if exact == _RETURNED else exact
        return self._function(_OFFSET.sub("", exact)), exact

    def _function(self, name: str) -> str:
        folded = fold(name)
        return self._collector.aliases.get(folded, folded)


def _address(key: Key) -> tuple[str, str]:
    """(identity, symbol or "") of a lock."""
    text = key if isinstance(key, str) else ""
    symbol = _SYMBOL.match(text)
    if symbol and not symbol[2].startswith("0x"):
        return symbol[1], symbol[2]
    return text, ""


def _locks(pairs: Sequence[tuple[str, str, str]]) -> dict[str, str]:
    """(address, symbol, taker) -> a name for each address: its symbol, else its takers."""
    group: dict[str, str] = {}

    def root(name: str) -> str:
        while group.setdefault(name, name) != name:
            name = group[name]
        return name

    for address, symbol, taker in pairs:
        if not symbol:
            group[root(f"@{address}")] = root(taker)
    takers: dict[str, set[str]] = defaultdict(set)
    for _, symbol, taker in pairs:
        if not symbol:
            takers[root(taker)].add(taker)
    named = {}
    for address, symbol, taker in pairs:
        who = sorted(takers[root(taker)]) if not symbol else []
        more = f" and {len(who) - _TAKERS_SHOWN} more" if len(who) > _TAKERS_SHOWN else ""
        named[address] = symbol or f"of {', '.join(who[:_TAKERS_SHOWN])}{more}"
    return named


def _number(text: Key) -> int:
    """The exponent of ``~ 2^7``; ``0`` and negative values are in bucket -1."""
    match = re.search(r"2\^(\d{1,4})", text if isinstance(text, str) else "")
    return int(match[1]) if match else -1


def _fold(table: Table, hist: Hist, names: _Names) -> tuple[list[Row], list[Buckets]]:
    locks = {}
    if table.lock:
        places = [
            (*_address(e.keys.get(table.lock, "")), names.site(e.keys.get(table.site, ""))[0]) for e in hist.entries
        ]
        locks = _locks(places)
    rows: dict[tuple[str, str, str], Row] = {}
    counts: dict[tuple[str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for entry in hist.entries:
        site, exact = names.site(entry.keys[table.site]) if table.site in entry.keys else ("", "")
        label = str(entry.keys.get(table.label, ""))
        label = table.names.get(label, label)
        hits = entry.values.get("hitcount", 0)
        if table.bucket:
            counts[site, label][_number(entry.keys.get(table.bucket, ""))] += hits
            if not table.sums:
                continue
        lock = locks.get(_address(entry.keys.get(table.lock, ""))[0], "") if table.lock else ""
        key = (site, label, lock)
        rows[key] = _added(rows.get(key, Row(site=site, label=label, lock=lock, count=0)), entry, hits, table, exact)
    unit = next(iter(table.sums), table.bucket)
    made = [Buckets(site=s, label=n, unit=unit, counts=dict(sorted(c.items()))) for (s, n), c in sorted(counts.items())]
    return list(rows.values()), made


def _added(row: Row, entry: Entry, hits: int, table: Table, exact: str) -> Row:
    sums = {unit: row.sums.get(unit, 0) + entry.values.get(name, 0) for unit, name in table.sums.items()}
    known = [most for most in (row.most, entry.most) if most is not None]
    sites = {**row.sites, exact: row.sites.get(exact, 0) + hits} if exact else row.sites
    return Row(
        site=row.site, label=row.label, lock=row.lock, count=row.count + hits, sums=sums,
        most=max(known) if known else None, sites=sites,
    )  # fmt: skip


def _table_of(table: Table, content: Mapping[str, str]) -> Hist | None:
    wanted = {plain(key) for key in table.keys.split(",")}
    for hist in parse_hist(content.get(f"events/{table.on}/hist", "")):
        modifiers = any(key.endswith(".log2") for key in hist.keys)
        if {plain(key) for key in hist.keys} == wanted and modifiers == bool(table.bucket):
            return hist
    return None


def _found(collector: Collector, probe: Probe, way: Way, content: Mapping[str, str]) -> tuple[ProbeResult, list[Warn]]:
    names = _Names(collector)
    warnings: list[Warn] = []
    rows: list[Row] = []
    buckets: list[Buckets] = []
    for table in probe.tables_of(way):
        hist = _table_of(table, content)
        if hist is None:
            why = f"the kernel shows no histogram of {table.on}"
            return ProbeResult(probe=probe.name, title=probe.title, state="missing", way=way.name, why=why), []
        if hist.dropped:
            size = re.search(r":size=(\d+)", table.hist)
            room = int(size[1]) if size else 2048
            warnings.append(TraceDropped(probe.title, hist.dropped, hist.hits, room, table.on, collector.name))
        more, histograms = _fold(table, hist, names)
        rows += more
        buckets += histograms
    rows.sort(key=lambda r: (-max(r.sums.values(), default=0), -r.count, r.site, r.label, r.lock))
    result = ProbeResult(
        probe=probe.name, title=probe.title, state="ok", way=way.name, rows=tuple(rows), buckets=tuple(buckets)
    )
    return result, warnings


class _Status(Struct, frozen=True):
    word: str
    probe: str
    way: str
    error: str = ""
    file: str = ""
    text: str = ""


def _statuses(text: str) -> list[_Status]:
    return [_Status(*line.split(" ", 5)) for line in text.splitlines() if line.count(" ") >= 2]


def _refusal(collector: Collector, probe: Probe, refused: Sequence[_Status], config: Mapping[str, str]) -> str:
    """Why no way was taken: the options that are off where each needs one, else what the kernel said to the last."""
    off: dict[str, None] = {}
    open_ways = []
    for way in probe.ways:
        lacking = [option for option in (*collector.needs, *way.needs) if config.get(option) == "n"]
        off |= dict.fromkeys(lacking)
        if not lacking:
            open_ways.append(way)
    lacks = f"this kernel lacks {', '.join(f'CONFIG_{option}' for option in off)}"
    if not open_ways:
        return lacks
    way = open_ways[-1]
    said = next((s for s in refused if s.way == way.name.replace(" ", "_")), None)
    why = f"{said.error} at {said.file}: {said.text}" if said else "the guest did not try it"
    needs = ", ".join(f"CONFIG_{option}" for option in (*collector.needs, *way.needs))
    hint = f" (needs {needs}{f', {way.since}' if way.since else ''})"
    return f"{way.name} was rejected: {why}{hint}" + (f"; {lacks}" if off else "")


def _missing_result(
    collector: Collector, probe: Probe, refused: Sequence[_Status], config: Mapping[str, str]
) -> ProbeResult:
    if probe.until and all(status.error == "ENOENT" for status in refused):
        return ProbeResult(probe=probe.name, title=probe.title, state="absent", why=f"until {probe.until}")
    why = _refusal(collector, probe, refused, config)
    return ProbeResult(probe=probe.name, title=probe.title, state="missing", why=why)


def _misses(content: str) -> list[Warn]:
    return [
        TraceMissed(name, int(missed), int(hits) + int(missed))
        for name, hits, missed in _MISSED.findall(content)
        if int(missed)
    ]


def _left_out(records: Sequence[Record], job: int, ops: int) -> Iterator[Warn]:
    """Whether a traced operation cost too much for all that were asked for (guest/harness_traced.c)."""
    for record in records:
        if isinstance(record, Value) and record.j == job and record.name == "ops_left_out":
            yield TraceShortened(ops, ops + int(min(max(record.v, 0.0), 2.0**53)))


def evaluate(
    collector: Collector,
    records: Sequence[Record],
    job: int,
    *,
    kernel: str,
    case: str,
    config: Mapping[str, str],
    boot: tuple[State, str],
) -> SetResult:
    """One job's answer. ``config``: the kernel's options without CONFIG_ (``y``, ``m``, ``n``), as far as known.

    Raises:
        GuestError: a piece of a file is missing in a stream that is whole otherwise.
    """
    done = next((r for r in records if isinstance(r, Done) and r.j == job), None)
    state: State = done.state if done is not None else (boot[0] if boot[0] != "ok" else "lost")
    why = done.why if done is not None else (boot[1] or "the guest sent no result for this case")
    base = SetResult(collector=collector.name, title=collector.title, kernel=kernel, case=case, state=state, why=why)
    if state != "ok":
        return base
    content = files(records, job)
    statuses = _statuses(content.get("@status", ""))
    probes, warnings = [], _misses(content.get("kprobe_profile", ""))
    for probe in collector.probes:
        taken = next((s.way for s in statuses if s.word == "ok" and s.probe == probe.name), None)
        way = next((w for w in probe.ways if w.name.replace(" ", "_") == taken), None)
        if way is None:
            refused = [s for s in statuses if s.word == "refused" and s.probe == probe.name]
            probes.append(_missing_result(collector, probe, refused, config))
            continue
        found, more = _found(collector, probe, way, content)
        probes.append(found)
        warnings += more
    for status in statuses:
        if status.word == "failed":
            warnings.append(TraceFailed(status.way, status.error, status.file, status.text))
    ops = sum(r.ops for r in records if isinstance(r, Repetition) and r.j == job)
    return SetResult(
        collector=collector.name, title=collector.title, kernel=kernel, case=case, state="ok", ops=ops,
        probes=tuple(probes), warnings=(*warnings, *_left_out(records, job, ops)), errors=content.get("@error_log", ""),
    )  # fmt: skip
