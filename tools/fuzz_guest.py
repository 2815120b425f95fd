# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzzing targets for what a guest and the plugin write: records, counts, lock holds, cache lines, traces, tests.

No fuzzer finds a checksum: targets named ``-sealed`` are given the right ones, so that what stands behind them is read.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from kdelta.attribution import entries, holds, lines, profiles, stacks, tracefs, traces
from kdelta.guest import complaints, ktap, metrics, protocol
from kdelta.lab import hearing
from kdelta.model import Metric
from kdelta.model.collectors import Collector
from kdelta.spec import collectors

ROOT = Path(__file__).resolve().parents[1]
Target = Callable[[bytes], object]
_LINE = re.compile(rb"^kd1 [^ \n]* [^ \n]* ", re.MULTILINE)
_COLUMNS = {b"KDIV": 8, b"KDSC": 4, b"KDFT": 3, b"KDST": 4}
_ENTRIES = entries.Entries(text="", rows=("read", "[page fault]"))
_METRICS = tuple(
    Metric(name=source.split(":")[-1], unit="ns", better="lower", source=source, primary=not place)
    for place, source in enumerate(("window:ns_per_op", "hist:latency:p99", "value:x"))
)


def sealed_records(data: bytes) -> bytes:
    """Lines that begin as records do, numbered and with their checksums."""
    made: list[bytes] = []
    for line in data.split(b"\n"):
        if match := _LINE.match(line):
            said = b"%d %s" % (sum(one.startswith(b"kd1 ") for one in made), line[match.end() :])
            line = b"kd1 %s %08x %s" % (said.split(b" ")[0], zlib.crc32(said), line[match.end() :])
        made.append(line)
    return b"\n".join(made)


def _records(data: bytes) -> None:
    stream = protocol.parse(data)
    protocol.diagnose(stream, data, False, 1)
    metrics.timed_runs(stream.records, (0, 1), {0: _METRICS, 1: _METRICS}, (stream.state, stream.why))
    metrics.repetitions(stream.records, 0)
    tracefs.files(stream.records, 0)


def sealed_counts(data: bytes) -> bytes:
    """Sections with their checksums, as far as they are sections."""
    made, at = bytearray(data), 64
    while at + 16 <= len(made):
        columns = _COLUMNS.get(bytes(made[at : at + 4]))
        end = at + 16 + 8 * (columns or 0) * struct.unpack_from("<I", made, at + 8)[0]
        if not columns or end > len(made):
            break
        struct.pack_into("<I", made, at + 12, zlib.crc32(made[at + 16 : end]))
        at = end
    return bytes(made)


def _counts(data: bytes) -> None:
    for interval in profiles.read(data):
        profile = profiles.fold(interval, None)
        if interval.system_calls is not None:
            entries.counted(_ENTRIES, interval.system_calls, profiles.kernel_vector(profile)[0])
        if interval.stacks is not None:
            root = stacks.tree(interval.stacks, None)
            assert stacks.text(stacks.parse(stacks.text(root))) == stacks.text(root)


def sealed_moves(data: bytes) -> bytes:
    """Intervals with their checksums, as far as they are intervals."""
    made, at = bytearray(data), 16
    kinds = (lines.TRANSFER, lines.LINE, lines.CACHE, lines.ENTRY)
    while at + 32 <= len(made) and made[at : at + 4] == b"KDLI":
        cpus = struct.unpack_from("<I", made, 12)[0]
        _, *numbers, _, sequences = struct.unpack_from("<7I", made, at + 4)
        rows = sum(kind.itemsize * number for kind, number in zip(kinds, numbers, strict=True))
        end = at + 32 + 8 * (cpus + 2) + rows + lines.SEQUENCE.itemsize * sequences
        if end > len(made):
            break
        struct.pack_into("<I", made, at + 24, zlib.crc32(made[at + 32 : end]))
        at = end
    return bytes(made)


def _moves(data: bytes) -> None:
    for moved in lines.read(data).intervals:
        assert moved.total >= 0 and len(moved.slabs) <= len(data)


def _holds(data: bytes) -> None:
    if found := list(holds.read(data).values()):
        holds.pick(found)


def _serial(data: bytes) -> None:
    said = hearing.apart(data)
    protocol.parse(said.stream)
    prompts = data.count(b"kd1 ")  # a record behind one becomes a line of its own
    assert len(said.stream) + len(said.console) <= len(data) + prompts
    hearing.ended(data), hearing.spoken(data), hearing.sampled(data)


def _console(data: bytes) -> None:
    complaints.complaints(data)
    protocol.panic_of(data)


@cache
def _tables() -> tuple[tuple[Collector, str], ...]:
    """Every set with each file of its tables."""
    return tuple(
        (collector, f"events/{table.on}/hist")
        for collector in collectors.catalogue().values()
        for probe in collector.probes
        for way in probe.ways
        for table in probe.tables_of(way)
    )


def _traces(data: bytes) -> None:
    """Three files of the tracefs, with a NUL byte between them: what was tried, the probes' hits, and one table."""
    status, profile, table = [*data.split(b"\0", 2), b"", b""][:3]
    collector, name = _tables()[len(data) % len(_tables())]
    files = {"@status": status, "kprobe_profile": profile, "@error_log": profile, name: table}
    records: list[protocol.Record] = [
        protocol.Trace(j=0, name=name, part=0, parts=1, b64=base64.b64encode(text).decode())
        for name, text in files.items()
    ]
    records.append(protocol.Done(j=0, state="ok"))
    traces.evaluate(collector, records, 0, kernel="k", case="c", config={}, boot=("ok", ""))


TARGETS: dict[str, Target] = {
    "records": protocol.parse,
    "records-sealed": lambda data: _records(sealed_records(data)),
    "counts": profiles.read,
    "counts-sealed": lambda data: _counts(sealed_counts(data)),
    "holds": _holds,
    "moves": lines.read,
    "moves-sealed": lambda data: _moves(sealed_moves(data)),
    "ktap": lambda data: ktap.subtests(data.decode("utf-8", "replace").splitlines()),
    "hist": lambda data: tracefs.parse_hist(data.decode("utf-8", "replace")),
    "latencies": metrics.histogram,
    "traces": _traces,
    "console": _console,
    "serial": _serial,
}


def _section(tag: bytes, ident: int, *rows: tuple[int, ...]) -> bytes:
    """A section of counts, without its checksum."""
    body = b"".join(struct.pack(f"<{len(row)}Q", *row) for row in rows)
    return struct.pack("<4s3I", tag, ident, len(rows), 0) + body


def _seed_counts() -> bytes:
    code = 0xFFFFFFFF81000000
    counted = ((0x401000, 9, *[0] * 6), (code, 5, 4, 3, 2, 1, 0, 8), (code + 64, 7, *[0] * 6))
    return b"".join((
        struct.pack("<8s4I16s24x", b"KDPLUG01", 64, 7, 4, 0, b"x86_64"),
        _section(b"KDIV", 1, *counted),
        _section(b"KDSC", 1, (0, 1, 5, 0), (0xFFFFFFFE, 1, 7, 0)),
        _section(b"KDFT", 1, (code, 2, 0)),
        _section(b"KDST", 1, (0, 0, 4, 0), (0, code, 5, 1), (1, code + 64, 3, 2)),
        _section(b"KDIV", 2, (code, 1, 0, 0, 0, 0, 0, 0)),
        _section(b"KDEN", 0)[:4] + struct.pack("<3I", 2, 0, 0),
    ))  # fmt: skip


def _seed_moves() -> bytes:
    line, code, slab = 0xFFFF888000001040, 0xFFFFFFFF81000000, 0xFFFF888000042000
    return b"".join((
        struct.pack("<8s2I8I", b"KDLINE03", 16, 2, int.from_bytes(b"KDLI", "little"), 7, 1, 1, 1, 1, 0, 1),
        struct.pack("<4Q6Q", 1 << 47, (1 << 47) + 4096, 1 << 46, 0, line, code, code + 64, 3, 4, 5),
        struct.pack("<6Q", line, 3, 255, 255, slab, 128),
        struct.pack("<2Q48s4Q7Q", slab, 192, b"dentry", code, code, code, 9, line + 4, code, 1, 10, 2, slab, 192),
        struct.pack("<4s7I", b"KDLE", 1, 4, 0, 0, 0, 0, 0),
    ))  # fmt: skip


_HELLO = b'kd1 0 c5ee9eb6 {"t":"hello","proto":1}\n'
_RUN = b"""kd1 x x {"t":"hello","proto":1,"release":"6.12","machine":"x86_64","clock":"tsc","clock_step_ns":20}
kd1 x x {"t":"job","j":0,"case":"pipe"}
kd1 x x {"t":"win","j":0,"i":0,"ops":100,"ns":12345,"warm":1,"bytes":4096}
kd1 x x {"t":"task","j":0,"k":0,"ops":100,"ns":999}
kd1 x x {"t":"val","j":0,"name":"x","v":1.5}
kd1 x x {"t":"hist","j":0,"name":"latency","count":1,"b64":"HISTOGRAM"}
kd1 x x {"t":"rep","j":1,"r":0,"id":3,"ops":16}
kd1 x x {"t":"trace","j":0,"name":"@status","part":0,"parts":1,"b64":"b2sgbG9ja3M="}
kd1 x x {"t":"out","j":1,"text":"ok 1"}
noise
kd1 x x {"t":"note","text":"n"}
kd1 x x {"t":"done","j":0,"state":"ok"}
kd1 x x {"t":"done","j":1,"state":"failed","why":"w"}
kd1 x x {"t":"end","records":12}
"""
_KTAP = b"TAP version 13\n1..2\nok 1 first # SKIP no device\n    ok 1 inner\nnot ok 2 second # T" + b"ODO x\n"
_HIST = b"""# event histogram
#
# trigger info: hist:keys=stacktrace,order:vals=hitcount,bytes:sort=hitcount:size=4096 [active]
#

{ stacktrace:
         alloc_slab+0x334/0x490
         pipe_write+0x23/0xd0
, order:          0} hitcount:         55  bytes: 99
    max:          7

{ call_site: [ffffffff81000000] pipe_write+0x1/0x2, ns: ~ 2^7 } hitcount: 2

Totals:
    Hits: 57
    Entries: 2
    Dropped: 1
"""


def _latencies() -> bytes:
    """Counts as guest/hdr.c writes them: one value, then as many zeros as one number says."""
    return struct.pack(">IIIIQQd", 0x1C849303, 4, 0, 3, 1, 60_000_000_000, 1.0) + b"\x05\x02\x07\x02"


def _trace_files() -> list[bytes]:
    """What guests read of the tracefs, from recorded streams: its status, the probes' hits, and each table."""
    found = []
    for path in sorted((ROOT / "tests/data/traces").glob("*6.1.stream")):
        files = tracefs.files(protocol.parse(path.read_bytes()).records, 0)
        tables = [text for name, text in files.items() if name.endswith("/hist")]
        found += [
            b"\0".join(
                one.encode()[:3000] for one in (files.get("@status", ""), files.get("kprobe_profile", ""), table)
            )
            for table in tables[:4]
        ]
    return found


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made."""
    run = _RUN.replace(b"HISTOGRAM", base64.b64encode(_latencies()))
    found: dict[str, Callable[[], list[bytes]]] = {
        "records": lambda: [_HELLO + b"noise\n", sealed_records(run)],
        "records-sealed": lambda: [run],
        "counts": lambda: [sealed_counts(_seed_counts())],
        "counts-sealed": lambda: [_seed_counts()],
        "holds": lambda: [b"kdelta-holds 1\ninterval 3\nsite 0 2 40 30\ngroup 0 1 1\ninterval 4\nend 2\n"],
        "moves": lambda: [sealed_moves(_seed_moves())],
        "moves-sealed": lambda: [_seed_moves()],
        "ktap": lambda: [_KTAP],
        "hist": lambda: [_HIST],
        "latencies": lambda: [_latencies()],
        "traces": _trace_files,
        "console": lambda: [
            b"[    0.1] WARNING: CPU: 0 PID: 1 at fs/pipe.c:9 f+0x1/0x2\n[    0.2] Kernel panic - not syncing: x\n"
        ],
        "serial": lambda: [
            b"login: " + _HELLO,
            b"[    0.1] Linux\r\n" + _HELLO[:-1] + b'\r\nx\r\nkd1 1 0 {"t":"end"}\n',
            b"> " + sealed_records(run).replace(b"\n", b"\r\n"),
        ],
    }
    return found[name]()
