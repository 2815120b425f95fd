# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

import made_packages
from kdelta.kernel import rpm_header
from kdelta.kernel.rpm_header import IMMUTABLE, SIGNATURES, HeaderError, Region

VALUES: dict[int, made_packages.Values] = {
    1000: "kernel",
    1004: bytes(range(16)),
    1030: ("H", [0o100644, 0o100755]),
    1028: ("I", [1, 0xFFFFFFFF]),
    1117: ["a", "", "c"],
    5008: ("Q", [1 << 40]),
    5010: ("B", [1, 2, 255]),
}
WHOLE = made_packages.header(IMMUTABLE, VALUES)


def _parsed(data: bytes, region: Region = IMMUTABLE) -> rpm_header.Header:
    lengths = rpm_header.lengths(data[:16], region)
    return rpm_header.parse(data[16:], lengths, region)


def test_values_of_each_type_are_read_most_significant_byte_first() -> None:
    found = _parsed(WHOLE)
    assert (found.strings(1000), found.strings(1117)) == (["kernel"], ["a", "", "c"])
    assert (found.numbers(1030), found.numbers(1028)) == ((0o100644, 0o100755), (1, 0xFFFFFFFF))
    assert (found.numbers(5008), found.numbers(5010)) == ((1 << 40,), (1, 2, 255))
    assert found.binary(1004) == bytes(range(16)) and 1004 in found and 1005 not in found


def test_a_value_of_another_type_is_none() -> None:
    found = _parsed(WHOLE)
    assert found.strings(1004) == found.strings(5) == [] and found.numbers(1000) == () and found.binary(1000) == b""
    assert found.strings(1117, rpm_header.STRING) == []


@given(st.dictionaries(st.integers(100, 6000), st.lists(st.text("ab", max_size=3), min_size=1, max_size=4), min_size=1))
def test_all_lists_of_texts_come_out_as_they_went_in(lists: dict[int, list[str]]) -> None:
    found = _parsed(made_packages.header(SIGNATURES, dict(lists)), SIGNATURES) if len(lists) < 32 else None
    assert found is None or {tag: found.strings(tag) for tag in lists} == lists


ENTRIES = 16 + 16 * (len(VALUES) + 1)  # where the data begins


def _changed(entry: int, field: int, value: int, data: bytes = WHOLE) -> bytes:
    """A header with another number in an entry: 0 is its tag, 1 its type, 2 the offset, 3 the count."""
    made = bytearray(data)
    struct.pack_into(">I", made, 16 + 16 * entry + 4 * field, value & 0xFFFFFFFF)
    return bytes(made)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        WHOLE[:15],
        b"\0" + WHOLE[1:],
        WHOLE[:-1],
        WHOLE[:8] + struct.pack(">II", 0, 0),
        WHOLE[:8] + struct.pack(">II", 0x10000, 100) + WHOLE[16:],
        WHOLE[:8] + struct.pack(">II", 8, 0x10000000) + WHOLE[16:],
        _changed(0, 1, 6),
        _changed(0, 3, 15),
        _changed(0, 2, -1),
        _changed(0, 2, 1 << 20),
        _changed(0, 0, 61),
        _changed(1, 0, 99),
        _changed(1, 0, 1 << 31 | 1000),
        _changed(1, 1, 0),
        _changed(1, 1, 10),
        _changed(1, 2, -1),
        _changed(1, 2, 1 << 20),
        _changed(1, 3, 0),
        _changed(1, 3, 2),
        _changed(2, 3, 0xFFFFFFFF),
        _changed(2, 2, 3),
        _changed(3, 2, 33),
        _changed(5, 3, 1000),
        _changed(7, 3, 20),
        WHOLE[:-16] + struct.pack(">IIiI", 62, 7, -128, 16),
        WHOLE[:-16] + struct.pack(">IIiI", 63, 7, 128, 16),
        WHOLE[:-16] + struct.pack(">IIiI", 63, 7, -112, 16),
        WHOLE[:-16] + struct.pack(">IIiI", 63, 7, -129, 16),
        WHOLE[:-16] + struct.pack(">IIiI", 63, 7, -(1 << 31), 16),
        WHOLE[:-16] + struct.pack(">IIiI", 63, 7, -128, 17),
    ],
)
def test_a_header_that_rpm_would_not_take_is_refused(data: bytes) -> None:
    with pytest.raises(HeaderError):
        _parsed(data)


def test_a_header_of_digests_may_hold_more_than_its_region_and_an_old_trailer() -> None:
    made = made_packages.header(SIGNATURES, {1000: ("I", [7]), 1004: bytes(16)})
    assert _parsed(made[:-16] + struct.pack(">IIiI", 61, 7, -32, 16), SIGNATURES).numbers(1000) == (7,)
    with pytest.raises(HeaderError):
        _parsed(made_packages.header(SIGNATURES, dict.fromkeys(range(100, 133), "x")), SIGNATURES)


def test_a_header_of_a_time_before_regions_is_read() -> None:
    data = struct.pack(">IIiI", 1000, 6, 0, 1) + b"kernel\0"
    begin = WHOLE[:8] + struct.pack(">II", 1, 7)
    assert _parsed(begin + data).strings(1000) == ["kernel"]
