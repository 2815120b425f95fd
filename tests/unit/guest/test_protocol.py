# SPDX-License-Identifier: GPL-2.0-or-later
"""The record stream: what is believed, and what a boot's end is called."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.guest import protocol

HELLO = '{"t":"hello","proto":1,"release":"6.12","machine":"x86_64"}'
DONE = '{"t":"done","j":0,"state":"ok","why":""}'


def line(seq: int, body: str) -> bytes:
    crc = zlib.crc32(f"{seq} {body}".encode())
    return f"kd1 {seq} {crc:08x} {body}\n".encode()


def stream(*bodies: str) -> bytes:
    ended = [*bodies, f'{{"t":"end","records":{len(bodies)}}}']
    return b"".join(line(seq, body) for seq, body in enumerate(ended))


def test_a_whole_stream_is_ok() -> None:
    got = protocol.parse(stream(HELLO, DONE))
    assert (got.state, len(got.records)) == ("ok", 3)


def test_carriage_returns_and_foreign_lines_do_not_harm() -> None:
    whole = stream(HELLO, DONE).replace(b"\n", b"\r\n")
    got = protocol.parse(b"[    0.1] hello\xff\xfe\r\n" + whole)
    assert got.state == "ok"
    assert got.noise == (b"[    0.1] hello\xff\xfe",)


@pytest.mark.parametrize(
    ("damage", "state", "why"),
    [
        (lambda s: s[: s.index(b"kd1 2")], "lost", "no end record"),
        (lambda s: s[:-20], "lost", "malformed"),
        (lambda s: s.replace(b'"ok"', b'"OK"'), "failed", "bad checksum"),
        (lambda s: s.replace(line(1, DONE), b""), "failed", "is missing"),
        (lambda s: s.replace(line(0, HELLO), line(0, '{"t":"what"}')), "failed", "does not fit the protocol"),
        (lambda s: b"", "lost", "no record"),
        (lambda s: b"\x00\xff garbage \n" * 5, "failed", "not text"),
        (lambda s: line(0, HELLO) + line(1, '{"t":"end","records":7}'), "lost", "counts 7"),
    ],
)
def test_a_stream_cut_short_is_lost_and_one_with_garbage_is_failed(damage, state: str, why: str) -> None:  # type: ignore[no-untyped-def]
    got = protocol.parse(damage(stream(HELLO, DONE)))
    assert got.state == state
    assert why in got.why


@given(st.binary(max_size=300), st.integers(0, 200))
def test_any_bytes_are_parsed_without_a_crash(noise: bytes, cut: int) -> None:
    whole = stream(HELLO, DONE)
    assert protocol.parse(whole[:cut] + noise + whole[cut:]).state in ("ok", "lost", "failed")


@given(st.integers(0, 150))
def test_a_cut_stream_is_never_ok(cut: int) -> None:
    whole = stream(HELLO, DONE)
    assert protocol.parse(whole[: min(cut, len(whole) - 2)]).state == "lost"


def test_the_ends_of_a_boot_are_told_apart() -> None:
    good, lost = protocol.parse(stream(HELLO)), protocol.parse(b"")
    panic = b"x\n[    1.0] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009\n"
    assert protocol.diagnose(good, panic, False, 0) == ("ok", "")
    assert protocol.diagnose(lost, panic, False, 0)[0] == "panicked"
    assert protocol.diagnose(lost, b"booting", True, None)[0] == "hung"
    assert protocol.diagnose(lost, b"\xff\xfe", False, 0)[0] == "lost"
    garbage = protocol.parse(b"\xff\xfe\x00\n")
    assert protocol.diagnose(garbage, b"", True, None)[0] == "failed"
    assert "status 1" in protocol.diagnose(lost, b"", False, 1)[1]
