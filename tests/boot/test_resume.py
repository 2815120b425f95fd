# SPDX-License-Identifier: GPL-2.0-or-later
"""A killed experiment goes on where it was: nothing measured twice, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from kdelta.store.store import Store


def boots(state: Path) -> dict[tuple[int, int], str]:
    database = state / "kdelta.sqlite"
    if not database.exists():
        return {}
    with Store(f"sqlite:///{database}") as store:
        experiments = store.experiments()
        if not experiments:
            return {}
        return {(b.block, b.slot): b.started_at for b in store.boots(experiments[0].id)}


def test_kill_9_in_the_middle_then_resume(kdelta, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    state = tmp_path / "state"
    command = [
        "compare",
        "debian:6.1/cloud",
        "debian:6.12/cloud",
        "--timed",
        "--blocks",
        "1",
        "--case",
        "getppid",
        "-q",
    ]
    environment = {**os.environ, "KDELTA_STATE": str(state)}
    program = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]
    running = subprocess.Popen([*program, *command], env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not boots(state) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    before = boots(state)
    assert len(before) == 1
    resumed = json.loads(kdelta("resume", "last", "--json", "-q").stdout)
    after = boots(state)
    assert len(after) == 2
    assert {key: after[key] for key in before} == before
    (row,) = [r for r in resumed["results"] if r["primary"]]
    assert row["boots"] == [1, 1]
    assert row["verdict"] is None


def test_no_guest_outlives_a_killed_kdelta(tmp_path: Path, cache: Path) -> None:
    environment = {**os.environ, "KDELTA_STATE": str(tmp_path / "state")}
    program = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]
    command = [*program, "run", "--kernel", "debian:6.1/cloud", "--case", "getppid", "-q"]
    running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)

    def guests() -> list[str]:
        mine = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            except (OSError, IndexError):
                continue
            if words[0].endswith(b"qemu-system-x86_64") and parent in (str(running.pid), known.get(folder.name, "")):
                known[folder.name] = parent
                mine.append(folder.name)
        return mine

    known: dict[str, str] = {}
    deadline = time.monotonic() + 120
    while not (found := guests()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in found) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in found)
