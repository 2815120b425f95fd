# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a kernel takes mutexes, from made-up machine code, and what becomes of the plugin's figures."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.attribution import holds
from kdelta.attribution.warnings import HoldUnclear
from kdelta.errors import GuestError, UserError

BASE = 0xFFFFFFFF81000000


class Symbols(Struct, frozen=True):
    addresses: NDArray[np.uint64]
    all_names: tuple[str, ...]
    ranges: tuple[tuple[int, int], ...]


def _elf(code: bytes, machine: int) -> bytes:
    """One loaded segment at BASE, no sections."""
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, BASE, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    return head + struct.pack("<IIQQQQQQ", 1, 5, 120, BASE, BASE, len(code), len(code), 4096) + code


def _table(*names: str, size: int = 0x100) -> Symbols:
    starts = np.array([BASE + i * size for i in range(len(names))], np.uint64)
    return Symbols(starts, names, ((BASE, BASE + len(names) * size),))


def _x86(at: int, opcode: int, target: int) -> tuple[int, bytes]:
    return at, bytes([opcode]) + struct.pack("<i", target - at - 5)


def _arm(at: int, opcode: int, target: int) -> tuple[int, bytes]:
    return at, struct.pack("<I", opcode << 26 | (target - at >> 2) & 0x3FFFFFF)


def _code(size: int, *pieces: tuple[int, bytes]) -> bytes:
    code = bytearray(size)
    for at, piece in pieces:
        code[at : at + len(piece)] = piece
    return bytes(code)


NAMES = ("mutex_lock", "mutex_unlock", "writer.isra.0", "writer.cold", "wrapper")


def test_calls_and_tail_jumps_of_x86_are_found_and_grouped_by_the_function_of_the_source() -> None:
    code = _code(
        0x500,
        _x86(0x210, 0xE8, 0x0),  # writer: call mutex_lock
        _x86(0x250, 0xE8, 0x100),  # call mutex_unlock
        _x86(0x310, 0xE9, 0x100),  # writer.cold: jmp mutex_unlock
        _x86(0x410, 0xE9, 0x0),  # wrapper: jmp mutex_lock: begins no hold of its own
        _x86(0x420, 0xE8, 0x200),  # a call of something else
    )
    sites = holds.find(_elf(code, 62), _table(*NAMES))
    assert [(p.pc - BASE, p.takes, p.function, p.offset) for p in sites.places] == [
        (0x215, True, "writer", 0x15),
        (0x250, False, "writer", 0x50),
        (0x310, False, "writer", 0x10),
    ]
    assert sites.text().splitlines() == [
        "kdelta-hold-sites 2",
        f"ask {BASE + 0x210:x} 0 0",
        f"acq {BASE + 0x215:x} 0 0",
        f"rel {BASE + 0x250:x} 0 0",
        f"rel {BASE + 0x310:x} 0 0",
    ]


def test_calls_of_arm64_are_found() -> None:
    code = _code(0x500, _arm(0x210, 0x25, 0x0), _arm(0x250, 0x25, 0x100), _arm(0x310, 0x05, 0x100))
    places = holds.find(_elf(code, 183), _table(*NAMES)).places
    assert [(p.pc - BASE, p.takes) for p in places] == [(0x214, True), (0x250, False), (0x310, False)]


def test_helpers_with_the_same_users_hold_for_each_other() -> None:
    """Of fdget_pos and __f_unlock_pos, which five functions call, no hold ended; seq_file calls start and stop."""
    helpers = ("fdget_pos", "__f_unlock_pos", "unlock_all", "s_start", "s_stop", "other_start")
    users = ("read", "write", "lseek", "getdents", "readv", "sync")
    table = _table("mutex_lock", "mutex_unlock", *helpers, *users)
    at = {name: 0x100 * (2 + number) for number, name in enumerate([*helpers, *users])}
    takes = [_x86(at[name] + 8, 0xE8, 0x0) for name in ("fdget_pos", "s_start", "other_start")]
    releases = [_x86(at[name] + 8, 0xE9, 0x100) for name in ("__f_unlock_pos", "unlock_all", "s_stop")]
    called = [_x86(at[user] + 8, 0xE8, at["fdget_pos"]) for user in users[:5]]
    called += [_x86(at[user] + 32, 0xE9, at["__f_unlock_pos"]) for user in users[:5]]
    called += [_x86(at[user] + 64, 0xE8, at["unlock_all"]) for user in ("sync", "readv")]
    code = _code(0x100 * (2 + len(at)), *takes, *releases, *called)
    sites = holds.find(_elf(code, 62), table)
    group = {place.function: place.group for place in sites.places}
    assert group["fdget_pos"] == group["__f_unlock_pos"] and group["s_start"] == group["s_stop"]
    assert len(set(group.values())) == 4
    unseen = holds.Interval(holds={}, unclear={sites.groups.index(group["other_start"]): 4})
    (warning,) = holds.result(holds.facts(sites, [unseen]), {})[1]
    assert isinstance(warning, HoldUnclear) and warning.elsewhere and warning.holds == 5


def test_a_kernel_whose_locks_are_inline_says_so() -> None:
    with pytest.raises(UserError, match="inlined and cannot be observed"):
        holds.find(_elf(bytes(0x100), 62), _table("writer"), "mine")
    with pytest.raises(UserError, match=r"mine: .*uncompressed vmlinux"):
        holds.find(b"no elf", _table(*NAMES), "mine")


OUTPUT = b"""kdelta-holds 1
interval 0
site 0 2 20 12
interval 1
site 0 2 22 12
group 0 1 0
interval 2
site 0 2 20 12
end 3
"""


def test_the_repetition_that_occurs_most_stands_for_all() -> None:
    intervals = list(holds.read(OUTPUT).values())
    chosen, same = holds.pick(intervals)
    assert (chosen.holds[0], same) == (holds.Hold(count=2, total=20, most=12), 2)


@pytest.mark.parametrize("size", [0, 10, 30, len(OUTPUT) - 7])
def test_output_that_is_cut_off_is_refused(size: int) -> None:
    with pytest.raises(GuestError, match="holds: "):
        holds.read(OUTPUT[:size])


def test_figures_survive_the_store_and_name_unclear_holds() -> None:
    place = holds.Place(pc=BASE, takes=True, function="anon_pipe_write", offset=0x4A)
    other = holds.Place(pc=BASE + 64, takes=True, function="anon_pipe_write", offset=0x8A)
    ends = holds.Place(pc=BASE + 96, takes=False, function="anon_pipe_write", offset=0xAA)
    sites = holds.Sites(places=(place, other, ends))
    one = holds.Interval(
        holds={0: holds.Hold(count=3, total=300, most=120), 1: holds.Hold(count=1, total=50, most=50)}, unclear={0: 2}
    )
    probe, (warning,) = holds.result(holds.facts(sites, [one, one]), {"anon_pipe_write": "pipe_write"})
    (row,) = probe.rows
    assert (row.site, row.count, row.sums, row.most) == ("pipe_write", 4, {"instructions": 350}, 120)
    assert row.sites == {"anon_pipe_write+0x4a": 3, "anon_pipe_write+0x8a": 1}
    assert probe.way.endswith("2 of 2 repetitions identical")
    assert isinstance(warning, HoldUnclear) and (warning.site, warning.holds) == ("anon_pipe_write", 2)
