# SPDX-License-Identifier: GPL-2.0-or-later
"""What a machine's one serial line said, taken apart, and held against what was started there. Pure."""

from __future__ import annotations

import re

from msgspec import Struct

from kdelta.guest import protocol
from kdelta.kernel import elf
from kdelta.model import Kernel, State

_END = re.compile(rb'^kd1 \d{1,18} [0-9a-f]{8} \{"t":"end"[^\n]*\n', re.MULTILINE)
_RECORD = re.compile(rb"kd1 \d{1,18} [0-9a-f]{8} \{")
_SAMPLE = re.compile(rb'^kd1 \d{1,18} [0-9a-f]{8} \{"t":"(?:win|rep)"', re.MULTILINE)


class Said(Struct, frozen=True):
    """The records' lines, and all others."""

    stream: bytes
    console: bytes


def apart(line: bytes) -> Said:
    """Records and console of what one serial ``line`` brought."""
    rows = [part for row in line.replace(b"\r\n", b"\n").splitlines(keepends=True) for part in _split(row)]
    records = [row.startswith(b"kd1 ") for row in rows]
    return Said(
        b"".join(row for row, record in zip(rows, records, strict=True) if record),
        b"".join(row for row, record in zip(rows, records, strict=True) if not record),
    )


def _split(row: bytes) -> list[bytes]:
    """A record stands behind what a system or a boot loader left of its last line, as a prompt for a login."""
    found = None if row.startswith(b"kd1 ") else _RECORD.search(row)
    return [row] if found is None else [row[: found.start()] + b"\n", row[found.start() :]]


def ended(line: bytes) -> bool:
    """Whether the last record has come."""
    return _END.search(line.replace(b"\r\n", b"\n")) is not None


def spoken(line: bytes) -> bool:
    """Whether a first record has come."""
    return _RECORD.search(line) is not None


def sampled(line: bytes) -> bool:
    """Whether a first sample has come."""
    return _SAMPLE.search(line) is not None


def differs(records: tuple[protocol.Record, ...], kernel: Kernel, cmdline: str, before: str) -> str:
    """Why what spoke is not the start that was meant, "" where it is.

    ``before``: the boot id of the machine's own system. A kernel without a build id is known by its release.
    """
    hello = next((one for one in records if isinstance(one, protocol.Hello)), None)
    build = next((one for one in records if isinstance(one, protocol.Build)), None)
    if hello is None or build is None:
        return "it did not say which kernel it is"
    if cmdline not in hello.cmdline:
        return f"its command line is another: {hello.cmdline!r}"
    found = elf.build_id_of(build.payload())
    if kernel.build_id and found != kernel.build_id:
        return f"another kernel ran: build id {found or 'none'} instead of {kernel.build_id}"
    if kernel.release and hello.release != kernel.release:
        return f"another kernel ran: {hello.release} instead of {kernel.release}"
    if not build.boot_id or build.boot_id == before:
        return "its boot id is that of the machine's own system"
    return ""


def outcome(said: Said, kernel: Kernel, cmdline: str, before: str, timed_out: bool, why: str) -> tuple[State, str]:
    """The state of a boot; ``why`` says what ended it where it did not end itself."""
    parsed = protocol.parse(said.stream)
    state, reason = protocol.diagnose(parsed, said.console, timed_out, None)
    if state == "ok" and (wrong := differs(parsed.records, kernel, cmdline, before)):
        return "failed", wrong
    if state == "lost" and why:
        return state, f"{why} ({reason})"
    return state, reason
