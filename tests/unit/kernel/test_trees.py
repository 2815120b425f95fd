# SPDX-License-Identifier: GPL-2.0-or-later
"""Work trees are listed while builds run in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdelta.kernel import trees


def test_files_that_a_build_removes_meanwhile_take_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "build" / "git-1"
    folder.mkdir(parents=True)
    for name in ("lock", "a.o", "b.o"):
        (folder / name).write_bytes(b"x" * 5000)
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path))
    (before,) = trees.trees()
    look = os.lstat

    def meanwhile(path: str) -> os.stat_result:
        if str(path).endswith("a.o"):
            (folder / "a.o").unlink(missing_ok=True)
        return look(path)

    monkeypatch.setattr(os, "lstat", meanwhile)
    (now,) = trees.trees()
    assert 0 < now.size_bytes < before.size_bytes
