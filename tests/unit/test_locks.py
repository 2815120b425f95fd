# SPDX-License-Identifier: GPL-2.0-or-later
"""A lock of one process: who has it is named, and a holder that removes the file lets no two in."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from kdelta import locks
from kdelta.errors import HostError


def test_who_has_it_is_told_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "new" / "one.lock"
    with locks.take(path), pytest.raises(locks.Taken) as other:
        locks.take(path)
    assert other.value.process == str(os.getpid())
    locks.take(path).close()


def test_a_file_that_its_holder_removed_meanwhile_is_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second opened it before, and locked it after: a third would make the file anew, and hold it too."""
    path = tmp_path / "one.lock"
    first, real = [locks.take(path)], fcntl.flock

    def flock(file: object, how: int) -> None:
        while first:
            path.unlink()
            first.pop().close()
        real(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", flock)
    with locks.take(path) as second:
        assert locks.names(path, second)
        with pytest.raises(locks.Taken):
            locks.take(path)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match=r"file/one\.lock cannot be written: "):
        locks.take(tmp_path / "file" / "one.lock")
