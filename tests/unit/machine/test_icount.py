# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock of a guest that booted at another pace."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.machine import icount

CLOCK = b"\x05\x0ctimer/icount\x00\x00\x00\x01"


def of_state(state: bytes) -> tuple[int, int]:
    bias, instructions = struct.unpack_from(">qq", state, state.index(CLOCK) + len(CLOCK))
    return bias, instructions


@given(
    st.integers(-(1 << 40), 1 << 40),
    st.integers(0, 1 << 40),
    st.integers(0, 10),
    st.binary(min_size=24, max_size=64),
    st.binary(),
)
def test_it_is_the_same_instant_at_one_ns(
    bias: int, instructions: int, shift: int, before: bytes, after: bytes
) -> None:
    state = before + CLOCK + struct.pack(">qq", bias, instructions) + after
    made = icount.at_one_ns(state, shift)
    assert made is not None
    new_bias, same = of_state(made)
    assert same == instructions
    assert new_bias + same == bias + (instructions << shift)
    hosts = len(before) - 24  # of this QEMU's start: no two are alike
    assert (len(made), made[:hosts], made[len(made) - len(after) :]) == (len(state), before[:hosts], after)
    assert made[hosts : len(before)] == bytes(24)


@pytest.mark.parametrize(
    "state", [b"", b"timer/icount", CLOCK + bytes(16), bytes(24) + CLOCK + bytes(15), 2 * (CLOCK + bytes(16))]
)
def test_a_state_without_the_clock_that_is_known_is_of_use_at_one_ns_alone(state: bytes) -> None:
    assert icount.at_one_ns(state, 3) is None
    assert icount.at_one_ns(state, 0) == state
