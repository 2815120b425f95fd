# SPDX-License-Identifier: GPL-2.0-or-later
"""The bound on scaling by the line that moves most: which line it is, and how large."""

from __future__ import annotations

import pytest

from kdelta.attribution.serial import bound
from kdelta.model import MovedLine, Profile


def profile(*moved: MovedLine, waiting: int = 0) -> Profile:
    total = (40_000 + waiting, 0, 0, 0, 0, 0, 0)
    counts: tuple[int, ...] = (waiting, 0, 0, 0, 0, 0, 0)
    slow = {"queued_write_lock_slowpath": counts} if waiting else {}
    return Profile(ops=10, functions=slow, total=total, moved=moved)


LOCK = MovedLine(name="tasklist_lock", reads=20, writes=20, cpus=8)


def test_the_hottest_single_line_bounds_what_all_cpus_do_together() -> None:
    found = bound(profile(LOCK, MovedLine(name="pidmap_lock", reads=1, writes=1, cpus=8)))
    assert found is not None
    assert (found.line, found.transfers, found.instructions) == ("tasklist_lock", 4.0, 4000.0)
    assert found.cpus == pytest.approx(4000 / (4 * 100))


def test_lines_of_many_objects_are_not_serial() -> None:
    many = MovedLine(name="dentry.d_lockref", reads=900, writes=900, cpus=8, lines=7)
    found = bound(profile(many, LOCK))
    assert found is not None and found.line == "tasklist_lock"
    assert bound(profile(many)) is None and bound(profile()) is None


def test_waiting_is_no_work() -> None:
    found = bound(profile(LOCK, waiting=90_000))
    assert found is not None and found.instructions == 4000.0
