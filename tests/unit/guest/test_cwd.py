# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that run elsewhere than where kdelta is started (--cwd)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.guest import closure, packing
from kdelta.spec.counted import SCRATCH
from kdelta.spec.program import Program


def test_paths_may_begin_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--cwd rel -- ./x data.txt`` is ``cd rel; ./x data.txt``: the program was not found, nor its file."""
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    (rel := tmp_path / "rel").mkdir()
    (rel / "x").write_text("#!/bin/sh\ncat $1\n")
    (rel / "x").chmod(0o755)
    (rel / "data.txt").write_text("in it")
    pack = packing.of_case(packing.pack(Program(argv=("./x", "data.txt"), cwd="rel"), tmp_path))
    words = [row for row in pack.spec.read_bytes().decode().split("\0") if row.startswith("arg=")]
    assert words == [f"arg={rel}/x", "arg=data.txt"]
    assert pack.tree is not None
    packed = pack.tree.read_bytes()
    assert all(name.encode() + b"\0" in packed for name in (f"program{rel}/x", f"program{rel}/data.txt"))


def test_suites_take_nothing_from_this_machines_scratch_directory(tmp_path: Path) -> None:
    assert closure.bases(tmp_path, SCRATCH) == (tmp_path,)
