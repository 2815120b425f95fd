# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that lies in well-formed records: a state of its boot or its run, never the end of kdelta."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.errors import GuestError
from kdelta.guest import metrics, protocol
from kdelta.model import Metric

HELLO = '{"t":"hello","proto":1,"release":"6.12","machine":"x86_64","clock_step_ns":40}'
METRICS = (
    Metric(name="ns_per_op", unit="ns", better="lower", source="window:ns_per_op", primary=True),
    Metric(name="mb_per_s", unit="MB/s", better="higher", source="window:mb_per_s"),
    Metric(name="latency_p99", unit="ns", better="lower", source="hist:latency:p99"),
    Metric(name="kbest", unit="ns", better="lower", source="value:kbest"),
)


def line(seq: object, body: str) -> bytes:
    text = f"{seq} {body}".encode()
    return b"kd1 %b %08x %b\n" % (str(seq).encode(), zlib.crc32(text), body.encode())


def runs(*bodies: str) -> tuple[protocol.Stream, list[str]]:
    told = [HELLO, *bodies, '{"t":"done","j":0,"state":"ok"}']
    told.append(f'{{"t":"end","records":{len(told)}}}')
    got = protocol.parse(b"".join(line(seq, body) for seq, body in enumerate(told)))
    found = metrics.timed_runs(got.records, (0,), {0: METRICS}, (got.state, got.why))
    return got, [run.state for run in found]


@pytest.mark.parametrize(
    "record",
    [
        '{"t":"win","j":0,"i":0,"ops":1' + "0" * 400 + ',"ns":1}',
        '{"t":"win","j":0,"i":0,"ops":-5,"ns":1}',
        '{"t":"win","j":0,"i":0,"ops":1,"ns":1' + "0" * 5000 + "}",
        '{"t":"val","j":0,"name":"kbest","v":1e999}',
        '{"t":"val","j":0,"name":"kbest","v":' + "9" * 400 + "}",
        '{"t":"hist","j":0,"name":"latency","count":1,"b64":"\u00e9\u00e9\u00e9\u00e9"}',
        '{"t":"hist","j":0,"name":"latency","count":1,"b64":"@@@@"}',
        '{"t":"note","text":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"t":"rep","j":0,"r":0,"id":-1,"ops":1}',
        '{"t":"job","j":99999999999999999999}',
    ],
)
def test_a_record_out_of_bounds_is_garbage(record: str) -> None:
    got, states = runs(record)
    assert got.state == "failed" and states == ["failed"], got.why


def test_a_sequence_number_of_any_length_is_no_error_of_ours() -> None:
    got = protocol.parse(line("1" * 5000, HELLO))
    assert got.state in ("failed", "lost") and "malformed" in got.why


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)), max_size=9))
def test_windows_of_any_size_give_figures_or_a_state(windows: list[tuple[int, int, int]]) -> None:
    bodies = [
        json.dumps({"t": "win", "j": 0, "i": i, "ops": ops, "ns": ns, "bytes": size})
        for i, (ops, ns, size) in enumerate(windows)
    ]
    got, states = runs(*bodies)
    assert got.state == "ok" and states[0] in ("ok", "failed")


@given(st.binary(max_size=120), st.integers(0, 160))
def test_a_damaged_histogram_is_an_error_with_a_name(noise: bytes, cut: int) -> None:
    whole = b"\x1c\x84\x93\x13" + (3).to_bytes(4, "big") + metrics._V2_RANGE + b"\x01\x02\x04"
    for payload in (whole[:cut] + noise, noise, whole[: max(40, cut)] + noise + whole[cut:]):
        try:
            metrics.histogram(payload)
        except GuestError as error:
            assert "damaged" in str(error)


@pytest.mark.parametrize(("digits", "highest"), [(5, 2**62), (3, 2**62), (0, 1), (9, 60_000_000_000)])
def test_a_histogram_cannot_ask_for_memory(digits: int, highest: int) -> None:
    head = b"\x1c\x84\x93\x13" + (3).to_bytes(4, "big") + bytes(4) + digits.to_bytes(4, "big") + (1).to_bytes(8, "big")
    payload = head + highest.to_bytes(8, "big") + b"\x3f\xf0" + bytes(6) + b"\x01\x02\x04"
    with pytest.raises(GuestError, match="range is not the guest's own"):
        metrics.histogram(payload)
    told = base64.b64encode(payload).decode()
    _, states = runs(
        '{"t":"win","j":0,"i":0,"ops":1,"ns":100000}', f'{{"t":"hist","j":0,"name":"latency","count":1,"b64":"{told}"}}'
    )
    assert states == ["failed"]
