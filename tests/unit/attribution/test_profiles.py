# SPDX-License-Identifier: GPL-2.0-or-later
"""Plugin output is read whole or refused; profiles add up."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kdelta.attribution import profiles
from kdelta.errors import GuestError
from kdelta.model import Profile
from kdelta.store import codec
from unit.attribution import counts

KERNEL = 0xFFFFFFFF81000000
ONE = (1, 2, 3, 4, 5, 6, 7)


class ByPage:
    """Names an address by its page; the first page of the kernel has no name. Each function calls the next."""

    def names(self, addresses: NDArray[np.uint64], /) -> list[str | None]:
        return [None if a >> 12 == KERNEL >> 12 else f"f{(a >> 12) & 0xFF}.isra.0" for a in addresses.tolist()]

    def calls(self, functions: Iterable[str], /) -> dict[str, tuple[str, ...]]:
        return {name: (f"f{int(name[1:]) + 1}",) if name != "f9" else () for name in functions}


def test_intervals_come_back_as_they_were_written() -> None:
    data = counts.output(counts.interval(7, [(0x400000, ONE), (KERNEL, ONE)]), counts.interval(0xDEADBEEF, []))
    first, second = profiles.read(data)
    assert (first.id, first.pcs.tolist(), first.counts.tolist()) == (7, [0x400000, KERNEL], [list(ONE), list(ONE)])
    assert (second.id, second.pcs.shape, second.counts.shape) == (0xDEADBEEF, (0,), (0, 7))


@pytest.mark.parametrize("kept", range(0, 64 + 16 + 64 + 16, 5))
def test_output_cut_off_anywhere_is_refused(kept: int) -> None:
    data = counts.output(counts.interval(1, [(KERNEL, ONE)]))
    assert kept < len(data)
    with pytest.raises(GuestError, match=r"truncated|too short for a header"):
        profiles.read(data[:kept])


@given(st.integers(64 + 12, 64 + 16 + 2 * 64 - 1), st.integers(1, 255))
def test_a_changed_byte_in_an_interval_is_refused(position: int, flip: int) -> None:
    data = bytearray(counts.output(counts.interval(1, [(KERNEL, ONE), (KERNEL + 4, ONE)])))
    data[position] ^= flip
    with pytest.raises(GuestError, match="checksum"):
        profiles.read(bytes(data))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "too short for a header"),
        (b"ELF" + counts.HEADER[3:] + counts.trailer(0), "not the counting plugin"),
        (counts.HEADER[:12] + b"\x08" + counts.HEADER[13:] + counts.trailer(0), "8 counters"),
        (counts.HEADER + b"KDXX" + bytes(12), "does not start an interval"),
        (counts.HEADER + counts.interval(1, []) + counts.trailer(2), "trailer says 2 intervals, 1 were found"),
        (counts.output() + b"more", "4 bytes follow"),
        (counts.output(flags=1), "BEGIN mark without its END"),
        (counts.output(flags=4), "no task switch of this kernel was recognised"),
        (counts.output(flags=16), "the turns of the CPUs were long"),
        (counts.output(counts.interval(5, []), counts.interval(5, [])), "0x5 occurs twice"),
        (counts.output(counts.interval(5, [(2, ONE), (1, ONE)])), "not in order"),
        (counts.output(counts.interval(5, [(2, ONE), (2, ONE)])), "not in order"),
    ],
)
def test_damaged_output_is_refused_with_a_reason(data: bytes, complaint: str) -> None:
    with pytest.raises(GuestError, match=complaint):
        profiles.read(data)


def test_an_abandoned_interval_is_no_damage() -> None:
    assert profiles.read(counts.output(counts.interval(1, []), flags=2))[0].id == 1


def test_addresses_become_functions_user_space_and_unknown_pages() -> None:
    records = [(0x400000, ONE), (KERNEL, ONE), (KERNEL + 8, ONE), (KERNEL + 0x1000, ONE), (KERNEL + 0x2000, ONE)]
    (interval,) = profiles.read(counts.output(counts.interval(1, records)))
    folded = profiles.fold(interval, ByPage(), ops=16)
    assert folded.functions == {
        "[user]": ONE,
        f"[unknown {KERNEL:#x}]": tuple(2 * v for v in ONE),
        "f1": ONE,
        "f2": ONE,
    }
    assert folded.ops == 16
    assert profiles.user_vector(folded) == ONE
    assert profiles.kernel_vector(folded) == tuple(4 * v for v in ONE)


def test_a_fold_keeps_whom_the_functions_that_ran_call() -> None:
    records = [(0x400000, ONE), (KERNEL, ONE), (KERNEL + 0x1000, ONE), (KERNEL + 0x9000, ONE)]
    (interval,) = profiles.read(counts.output(counts.interval(1, records)))
    folded = profiles.fold(interval, ByPage())
    assert folded.calls == "f1 f2\nf9"
    assert profiles.calls_of(folded) == {"f1": {"f2"}, "f9": set()}
    assert profiles.calls_of(profiles.fold(interval, None)) == {}
    again = profiles.calls_of(profiles.fold(interval, ByPage()))
    assert again["f1"] is profiles.calls_of(folded)["f1"]  # the same row of many profiles is kept once


def test_a_profile_that_was_stored_before_calls_were_kept_is_read() -> None:
    stored = codec.pack({"ops": 16, "functions": {"f": ONE}, "total": ONE})
    assert codec.unpack(stored, Profile) == Profile(ops=16, functions={"f": ONE}, total=ONE)


def test_without_symbols_no_address_is_dropped() -> None:
    (interval,) = profiles.read(counts.output(counts.interval(1, [(0x1000, ONE), (KERNEL, ONE)])))
    assert profiles.fold(interval, None).functions == {"[user]": ONE, f"[unknown {KERNEL:#x}]": ONE}


def test_an_empty_interval_folds_to_nothing() -> None:
    (interval,) = profiles.read(counts.output(counts.interval(1, [])))
    assert profiles.fold(interval, ByPage()) == Profile(ops=1, functions={}, total=(0,) * 7)


vectors = st.tuples(*[st.integers(0, 2**50)] * 7)


@given(st.dictionaries(st.one_of(st.integers(0, 2**47), st.integers(KERNEL, KERNEL + 2**20)), vectors, max_size=40))
def test_the_functions_of_a_fold_add_up_to_the_interval(records: dict[int, tuple[int, ...]]) -> None:
    (interval,) = profiles.read(counts.output(counts.interval(1, sorted(records.items()))))
    folded = profiles.fold(interval, ByPage())
    expected = tuple(sum(v[column] for v in records.values()) for column in range(7))
    assert folded.total == expected
    assert tuple(sum(v[column] for v in folded.functions.values()) for column in range(7)) == expected
    both = zip(profiles.kernel_vector(folded), profiles.user_vector(folded), strict=True)
    assert tuple(kernel + user for kernel, user in both) == expected


def test_a_profile_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(GuestError, match="add up to"):
        profiles.check(Profile(ops=1, functions={"f": ONE}, total=(2, *ONE[1:])))


@pytest.mark.parametrize(
    ("totals", "index"),
    [
        ([5], 0),
        ([9, 7, 7, 7, 1], 1),  # the mode, not the minimum
        ([4, 3, 2, 1, 5, 6, 7], 0),  # all differ: the median
        ([8, 2, 6, 4], 3),  # an even number: the lower median
        ([9, 9, 1, 1, 5], 2),  # two modes: the lower
        ([3, 3, 2, 2, 1, 1], 2),  # three modes: the middle one
    ],
)
def test_the_repetition_that_stands_for_all_is_the_mode_or_the_lower_median(totals: list[int], index: int) -> None:
    assert profiles.pick(totals) == index


def test_nothing_can_be_picked_from_nothing() -> None:
    with pytest.raises(ValueError, match="no repetition"):
        profiles.pick([])
    with pytest.raises(ValueError, match="no profile"):
        profiles.median_profile([])


def test_the_median_seed_is_chosen_by_kernel_instructions_per_operation() -> None:
    low = counts.profile({"f": 10}, ops=1, user=1000)
    middle = counts.profile({"f": 44}, ops=4)
    high = counts.profile({"f": 24}, ops=2)
    assert profiles.median_profile([high, low, middle]) is middle
    assert profiles.median_profile([high, low]) is low


def test_system_calls_belong_to_the_interval_before_them() -> None:
    rows = [(3, 2, 700, 64), (0xFFFFFFFF, 0, -1, 0)]
    data = counts.output(counts.interval(7, [(KERNEL, ONE)]) + counts.system_calls(7, rows), counts.interval(8, []))
    first, second = profiles.read(data)
    assert first.system_calls is not None
    assert first.system_calls.tolist() == [list(row) for row in rows]
    assert second.system_calls is None


@pytest.mark.parametrize("sections", [[8], [7, 7]])
def test_system_calls_of_another_interval_or_twice_are_refused(sections: list[int]) -> None:
    told = b"".join(counts.system_calls(ident, [(0, 1, 1, 0)]) for ident in sections)
    with pytest.raises(GuestError, match="does not start an interval"):
        profiles.read(counts.output(counts.interval(7, [(KERNEL, ONE)]) + told))


def test_damaged_system_calls_are_refused() -> None:
    data = bytearray(counts.output(counts.interval(7, []) + counts.system_calls(7, [(0, 1, 1, 0)])))
    data[-16 - 8] ^= 1
    with pytest.raises(GuestError, match="checksum"):
        profiles.read(bytes(data))


def test_lines_of_data_are_those_of_who_touched_them_first_and_lines_of_code_of_what_ran_in_them() -> None:
    ran = [
        (0x400000, ONE),
        (KERNEL + 0x1000, ONE),
        (KERNEL + 0x1030, ONE),
        (KERNEL + 0x1040, ONE),
        (KERNEL + 0x2000, ONE),
    ]
    touched = {KERNEL + 0x1000: 5, KERNEL + 0x1040: 2, KERNEL + 0x2000: 1}
    (found,) = profiles.read(counts.output(counts.interval(7, ran) + counts.touched(7, touched)))
    profile = profiles.fold(found, ByPage(), ops=2)
    assert profile.data_lines == {"f1": 7, "f2": 1}
    assert profile.code_lines == {"f1": 2, "f2": 1}
    assert profiles.column(profile, "data_lines") == {"f1": 3.5, "f2": 0.5}
    assert profiles.column(profile, "locked") == {"f1": 6.0, "f2": 2.0}, "the program's own do not count"
    (bare,) = profiles.read(counts.output(counts.interval(7, ran)))
    assert profiles.fold(bare, ByPage()).code_lines == {}, "on several CPUs they are not counted"


def test_the_places_that_ran_are_told_by_symbol_over_all_intervals() -> None:
    several = [[(KERNEL + 0x1000, ONE), (KERNEL + 0x1030, ONE), (KERNEL + 0x2000, ONE)], [(KERNEL + 0x1034, ONE)]]
    found = profiles.read(counts.output(*(counts.interval(i, ran) for i, ran in enumerate(several))))
    watched = (("f", KERNEL + 0x1000, KERNEL + 0x1034), ("f.cold", KERNEL + 0x1034, KERNEL + 0x2000))
    assert profiles.places(found, watched) == {"f": (0, 0x30), "f.cold": (0,)}
    assert profiles.places(found, (("g", KERNEL + 0x3000, KERNEL + 0x4000),)) == profiles.places(found, ()) == {}


def test_damaged_lines_are_refused() -> None:
    data = bytearray(counts.output(counts.interval(7, []) + counts.touched(7, {KERNEL: 1})))
    data[-16 - 8] ^= 1
    with pytest.raises(GuestError, match="checksum"):
        profiles.read(bytes(data))
    with pytest.raises(GuestError, match="does not start an interval"):
        profiles.read(counts.output(counts.interval(7, []) + counts.touched(8, {KERNEL: 1})))
