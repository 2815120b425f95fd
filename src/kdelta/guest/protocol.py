# SPDX-License-Identifier: GPL-2.0-or-later
"""The record stream, parsed: bytes in, records and a state out. Pure; see ARCHITECTURE.md, Contract: records.

The state starts as lost and becomes ok only when an end record accounts for every record before it. The guest may be
hostile: every number is bounded, so that no figure made of them overflows, and no record ends its reader.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct

from kdelta.model import State

_LINE = re.compile(rb"^kd1 (\d{1,18}) ([0-9a-f]{8}) (\{.*\})$")
_PANIC = re.compile(rb"Kernel panic - not syncing[^\r\n]*|Attempted to kill init![^\r\n]*")
_OOM = re.compile(rb"Out of memory: Killed process[^\r\n]*")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Index = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Hello(Struct, tag_field="t", tag="hello", frozen=True):
    proto: Index
    release: str
    machine: str
    nproc: Index = 1
    mem_kib: Count = 0
    cmdline: str = ""
    unknown: str = ""  # words of it that the kernel does not know
    clock: str = ""
    clock_read_ns: float = 0.0
    clock_step_ns: float | None = None  # the smallest step seen; 0: it stood still while it was read over and over
    port: str = ""
    uptime_ns: Count = 0


class Build(Struct, tag_field="t", tag="kernel", frozen=True):
    """What tells a boot and a build of a kernel from all others; said by a machine that is no guest."""

    version: str  # as by uname -v
    boot_id: str
    notes: str  # /sys/kernel/notes, base64

    def payload(self) -> bytes:
        return base64.b64decode(self.notes, validate=True)


class Job(Struct, tag_field="t", tag="job", frozen=True):
    j: Index
    case: str = ""


class Window(Struct, tag_field="t", tag="win", frozen=True):
    j: Index
    i: Index
    ops: Count
    ns: Count
    warm: Index = 0
    bytes: Count = 0


class Task(Struct, tag_field="t", tag="task", frozen=True):
    j: Index
    k: Index
    ops: Count
    ns: Count


class Hist(Struct, tag_field="t", tag="hist", frozen=True):
    j: Index
    name: str
    count: Count
    b64: str
    unit: str = "ns"

    def payload(self) -> bytes:
        return base64.b64decode(self.b64, validate=True)


class Value(Struct, tag_field="t", tag="val", frozen=True):
    j: Index
    name: str
    v: float


class Repetition(Struct, tag_field="t", tag="rep", frozen=True):
    j: Index
    r: Index
    id: Count
    ops: Count


class Trace(Struct, tag_field="t", tag="trace", frozen=True):
    """A piece of one file of the tracefs, read after the operations; @status and @error_log are the guest's own."""

    j: Index
    name: str
    part: Index
    parts: Index
    b64: str

    def payload(self) -> bytes:
        return base64.b64decode(self.b64, validate=True)


class Done(Struct, tag_field="t", tag="done", frozen=True):
    j: Index
    state: Literal["ok", "unsupported", "failed", "hung"]
    why: str = ""


class Output(Struct, tag_field="t", tag="out", frozen=True):
    """A line that a selftest or a measured program printed."""

    j: Index
    text: str


class Note(Struct, tag_field="t", tag="note", frozen=True):
    text: str


class End(Struct, tag_field="t", tag="end", frozen=True):
    records: Index


Record = Hello | Build | Job | Window | Task | Hist | Value | Repetition | Trace | Done | Output | Note | End
_DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


class Stream(Struct, frozen=True):
    """What a stream said: its records in order, ``state`` ok or lost with ``why``, and lines that were no record."""

    records: tuple[Record, ...]
    state: State
    why: str = ""
    noise: tuple[bytes, ...] = ()


def _record(line: bytes, expected: int) -> Record | str:
    """One line as a record, or what is wrong with it."""
    match = _LINE.match(line)
    if match is None:
        return f"record {expected} is malformed"
    seq, crc, body = match.groups()
    if zlib.crc32(seq + b" " + body) != int(crc, 16):
        return f"record {expected} has a bad checksum"
    if int(seq) != expected:
        return f"record {expected} is missing (got {int(seq)})"
    try:
        record = _DECODER.decode(body)
        if isinstance(record, Build | Hist | Trace):
            record.payload()
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, no base64
        return f"record {expected} does not fit the protocol: {error}"
    return record


def parse(stream: bytes) -> Stream:
    """Read a whole stream; stops believing at the first damaged record.

    A stream that merely ends too early is lost; one with garbage in it is failed: something else wrote to the port.
    """
    records: list[Record] = []
    noise: list[bytes] = []
    lines = stream.replace(b"\r\n", b"\n").split(b"\n")
    for number, line in enumerate(lines):
        if not line.startswith(b"kd1 "):
            if line.strip():
                noise.append(line)
            continue
        if records and isinstance(records[-1], End):
            noise.append(line)
            continue
        got = _record(line, len(records))
        if isinstance(got, str):
            cut = number == len(lines) - 1  # the guest stopped in the middle of a record
            return Stream(tuple(records), "lost" if cut else "failed", got, tuple(noise))
        records.append(got)
    if not records or not isinstance(records[-1], End):
        why = f"no end record after {len(records)} records" if records else "the guest wrote no records"
        garbage = next((line for line in noise if not line.isascii()), None)
        if garbage is not None:
            return Stream(tuple(records), "failed", f"{why}, and bytes that are not text", tuple(noise))
        return Stream(tuple(records), "lost", why, tuple(noise))
    last = records[-1]
    if last.records != len(records) - 1:
        why = f"the end record counts {last.records} records, {len(records) - 1} arrived"
        return Stream(tuple(records), "lost", why, tuple(noise))
    return Stream(tuple(records), "ok", "", tuple(noise))


def joined(streams: Mapping[int, bytes]) -> bytes:
    """Whole streams of guests that each ran one job as their number 0, by its number, as one stream of all the jobs.

    The first one's hello speaks for all. Ids of intervals have ``interval_of`` the guest. Lines that are no records are
    left out.
    """
    bodies: list[bytes] = []
    for nr, (job, stream) in enumerate(streams.items()):
        for record in _plain_records(stream):
            if record["t"] == "hello" and nr:
                continue
            record |= {"j": job} if "j" in record else {}
            record |= {"id": interval_of(nr, record["id"])} if "id" in record else {}
            bodies.append(msgspec.json.encode(record))
    bodies.append(b'{"t":"end","records":%d}' % len(bodies))
    return b"".join(b"kd1 %d %08x %s\n" % (n, zlib.crc32(b"%d %s" % (n, body)), body) for n, body in enumerate(bodies))


def _plain_records(stream: bytes) -> Iterator[dict[str, Any]]:
    """The records of a whole stream before its end, as they were written; lines behind its end are noise."""
    for line in stream.splitlines():
        if line.startswith(b"kd1 "):
            record: dict[str, Any] = msgspec.json.decode(line.split(b" ", 3)[3])
            if record["t"] == "end":
                return
            yield record


def interval_of(guest: int, interval: int) -> int:
    """The id of a guest's interval among those of all guests of a boot."""
    return guest << 32 | interval & 0xFFFFFFFF


def guest_of(interval: int) -> int:
    """Which guest of its boot an interval is of: the inverse of ``interval_of``."""
    return interval >> 32


def panic_of(console: bytes) -> str:
    """The line of a kernel panic on the console, "" without one."""
    found = _PANIC.search(console)
    return found.group(0).decode("utf-8", "replace") if found else ""


def diagnose(stream: Stream, console: bytes, timed_out: bool, exit_status: int | None) -> tuple[State, str]:
    """The state of a whole boot, from its stream, its console and how its machine ended."""
    if stream.state == "ok":
        return "ok", ""
    if panic := panic_of(console):
        return "panicked", panic
    if stream.state == "failed":
        return "failed", f"garbage in the record stream: {stream.why}"
    if timed_out:
        return "hung", f"the boot did not finish within its time limit ({stream.why})"
    why = stream.why
    if oom := _OOM.search(console):
        why += "; " + oom.group(0).decode("utf-8", "replace")
    if exit_status:
        why += f"; the machine ended with status {exit_status}"
    return "lost", why
