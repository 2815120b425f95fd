# SPDX-License-Identifier: GPL-2.0-or-later
"""One serial line with the console and the records: what is taken from it, and what is not believed."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import msgspec
import pytest

from kdelta.lab import hearing
from kdelta.model import Kernel

_BUILD = "ab" * 20
_KERNEL = Kernel(label="a", spec="a", release="6.12.1", image_path="/a", image_sha256="0", build_id=_BUILD)
_CMDLINE = "console=ttyS0 kdelta.boot=77"
_BEFORE = "11111111-old"


def _line(records: list[dict[str, Any]]) -> bytes:
    rows = []
    for n, record in enumerate([*records, {"t": "end", "records": len(records)}]):
        body = msgspec.json.encode(record)
        rows.append(b"kd1 %d %08x %s\r\n" % (n, zlib.crc32(b"%d %s" % (n, body)), body))
    return b"".join(rows)


def _notes(build_id: str) -> str:
    identity = bytes.fromhex(build_id)
    return base64.b64encode(struct.pack("<III", 4, len(identity), 3) + b"GNU\0" + identity).decode()


def _hello(**changes: str) -> dict[str, Any]:
    return {
        "t": "hello",
        "proto": 1,
        "release": "6.12.1",
        "machine": "x86_64",
        "cmdline": f"BOOT_IMAGE=k {_CMDLINE}",
    } | changes


def _build(**changes: str) -> dict[str, Any]:
    return {"t": "kernel", "version": "#1 SMP", "boot_id": "22222222-new", "notes": _notes(_BUILD)} | changes


def _outcome(line: bytes, timed_out: bool = False, why: str = "") -> tuple[str, str]:
    return hearing.outcome(hearing.apart(line), _KERNEL, _CMDLINE, _BEFORE, timed_out, why)


def test_a_first_record_may_stand_behind_a_prompt() -> None:
    whole = _line([_hello(), _build(text="said kd1 0 0011aabb {}")])
    said = hearing.apart(b"Debian\r\nlab login: " + whole)
    assert said.console == b"Debian\nlab login: \n" and said.stream == whole.replace(b"\r", b"")
    assert hearing.spoken(b"lab login: " + whole) and not hearing.spoken(b"lab login: kd1 ")


def test_the_console_between_records_is_kept_apart() -> None:
    whole = _line([_hello(), _build()])
    rows = whole.splitlines(keepends=True)
    said = hearing.apart(b"GRUB\r\n[ 0.1] Linux\r\n" + rows[0] + b"[ 9.9] late\r\n" + b"".join(rows[1:]) + b"SeaBIOS")
    assert said.console == b"GRUB\n[ 0.1] Linux\n[ 9.9] late\nSeaBIOS"
    assert said.stream == whole.replace(b"\r", b"")
    assert hearing.ended(whole)
    assert not hearing.ended(whole[:-3])


def test_the_start_that_was_meant_is_believed() -> None:
    assert _outcome(_line([_hello(), _build()])) == ("ok", "")


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([_hello(cmdline="console=ttyS0 kdelta.boot=78"), _build()], "command line is another"),
        ([_hello(), _build(notes=_notes("cd" * 20))], "build id cdcdcd"),
        ([_hello(), _build(notes="")], "build id none"),
        ([_hello(release="6.1.0"), _build()], "6.1.0 instead of 6.12.1"),
        ([_hello(), _build(boot_id=_BEFORE)], "the machine's own system"),
        ([_hello(), _build(boot_id="")], "the machine's own system"),
        ([_hello()], "did not say which kernel"),
    ],
)
def test_another_start_is_not(records: list[dict[str, Any]], why: str) -> None:
    state, told = _outcome(_line(records))
    assert state == "failed"
    assert why in told


def test_a_boot_that_does_not_end_well_says_how() -> None:
    whole = _line([_hello(), _build()])
    panic = b"[ 3.0] Kernel panic - not syncing: sysrq triggered crash\r\n"
    assert _outcome(whole[:80] + b"\r\n" + panic) == ("panicked", "Kernel panic - not syncing: sysrq triggered crash")
    assert _outcome(b"", timed_out=True)[0] == "hung"
    assert _outcome(b"", why="its serial line went away") == (
        "lost",
        "its serial line went away (the guest wrote no records)",
    )
    state, why = _outcome(whole.replace(b'"6.12.1"', b'"6.1[ 1.0] BUG2.1"'))
    assert (state, "checksum" in why) == ("failed", True)
