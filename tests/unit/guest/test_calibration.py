# SPDX-License-Identifier: GPL-2.0-or-later
"""How many operations a window holds is no matter of one unlucky instant."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.guest import binary
from kdelta.paths import shipped

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")


def test_a_slow_first_operation_makes_no_tiny_windows(guest_cache: Path, tmp_path: Path) -> None:
    # The windows of a busy host held one system call each; the clock was then called too coarse for them.
    program = binary.build("x86_64", (shipped("guest") / "tests" / "workloads" / "slow_start.c",), cache=guest_cache)
    job = "job 0 slow_start limit_ms=20000 warmup=1 windows=3 window_ms=40 latency_ops=0"
    (tmp_path / "jobs").write_text(f"kdelta-jobs 1\nset mode timed\n{job}\nend\n", encoding="ascii")
    with (tmp_path / "stream").open("wb") as file:
        words = ["--native", "--jobs", str(tmp_path / "jobs"), "--data", str(tmp_path), "--fd", str(file.fileno())]
        subprocess.run([str(program), *words], pass_fds=[file.fileno()], check=True, timeout=120)
    lines = (tmp_path / "stream").read_text(encoding="ascii").splitlines()
    records = [json.loads(line.split(" ", 3)[3]) for line in lines]
    windows = [record["ops"] for record in records if record["t"] == "win"]
    assert len(windows) == 4
    assert min(windows) > 10_000
