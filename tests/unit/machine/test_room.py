# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots do not fill the disk: the least recently used go, and none that may be in use."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kdelta.machine import room, snapshot
from kdelta.machine.room import Kept

NOW_S = 1e9
KEPT = st.builds(
    Kept,
    stem=st.uuids().map(lambda name: Path(str(name))),
    size_bytes=st.integers(0, 1000),
    used_s=st.floats(NOW_S - 10 * room.IN_USE_S, NOW_S),
)


@given(st.lists(KEPT), st.integers(0, 5000))
def test_the_least_recently_used_go_until_the_rest_fits(kept: list[Kept], limit_bytes: int) -> None:
    gone = room.doomed(kept, limit_bytes=limit_bytes, now_s=NOW_S)
    stay = [one for one in kept if one not in gone]
    assert all(NOW_S - one.used_s >= room.IN_USE_S for one in gone)
    assert max((one.used_s for one in gone), default=0) <= min((one.used_s for one in stay), default=NOW_S)
    idle = [one for one in stay if NOW_S - one.used_s >= room.IN_USE_S]
    assert sum(one.size_bytes for one in stay) <= limit_bytes or not idle
    if gone:
        assert sum(one.size_bytes for one in (*stay, gone[-1])) > limit_bytes, "no more than needed"


def test_a_snapshot_goes_with_all_its_files(tmp_path: Path) -> None:
    for name, idle_s in (("old", 9000.0), ("broken", 8000.0), ("new", 1.0)):
        for suffix in (".lock", ".state.part") if name == "broken" else (".state", ".ram", ".sum", ".seen", ".lock"):
            path = tmp_path / f"{name}{suffix}"
            path.write_bytes(b"x" * 8192)
            os.utime(path, (time.time() - idle_s,) * 2)
    os.utime(tmp_path / "old.state", (time.time() - 90_000,) * 2)  # made long ago: its lock says when it was used
    assert {one.stem.name: round(time.time() - one.used_s, -3) for one in room.snapshots(tmp_path)} == {
        "old": 9000, "broken": 8000, "new": 0,
    }  # fmt: skip
    room.make(tmp_path, limit_bytes=5 * 8192 + 2 * 8192)
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"new{suffix}" for suffix in (".state", ".ram", ".sum", ".seen", ".lock")), "broken.lock", "broken.state.part"
    }  # fmt: skip
    room.make(tmp_path, limit_bytes=0)
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {"new"}


def test_a_snapshot_that_another_process_removes_meanwhile_is_none(tmp_path: Path) -> None:
    (tmp_path / "gone.state").symlink_to(tmp_path / "nowhere")  # listed, and no longer there
    (tmp_path / "kept.state").touch()
    assert [one.stem.name for one in room.snapshots(tmp_path)] == ["kept"]


def test_what_one_boot_alone_needs_stays_until_it_is_over_and_is_then_the_first_to_go(tmp_path: Path) -> None:
    """On several CPUs each kernel and seed has a snapshot: twenty of ten kernels are 18 GB."""
    saved = snapshot.Saved(tmp_path / "once.state", tmp_path / "once.ram")
    for path in (saved.state, saved.ram):
        path.write_bytes(b"x" * 8192)
    with snapshot.used_once(saved):
        (once,) = room.snapshots(tmp_path)
        assert time.time() - once.used_s < room.IN_USE_S
        os.utime(tmp_path / "once.lock", (0, 0))
        room.make(tmp_path, limit_bytes=0)  # as another process would, that thinks it unused
        assert saved.ram.exists()
    (over,) = room.snapshots(tmp_path)
    assert time.time() - over.used_s >= room.IN_USE_S
    room.make(tmp_path, limit_bytes=0)
    assert not list(tmp_path.iterdir())


def test_what_was_used_since_it_was_looked_at_stays(tmp_path: Path) -> None:
    for suffix in ("state", "ram", "sum", "lock"):
        (tmp_path / f"a.{suffix}").write_bytes(b"x")
    os.utime(tmp_path / "a.lock", (1, 1))
    (found,) = room.snapshots(tmp_path)
    os.utime(tmp_path / "a.lock")  # another process: snapshot.ensure()
    room.remove(found)
    assert (tmp_path / "a.ram").exists()
    room.remove(room.snapshots(tmp_path)[0])
    assert not (tmp_path / "a.ram").exists()
