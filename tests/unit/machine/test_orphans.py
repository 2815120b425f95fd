# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kdelta that was killed leaves behind: no guest, and no directory for longer than until the next start."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from kdelta.machine import folders, process

KILLS = 60
FIRST_MS = 30


def _with_word(word: str) -> list[int]:
    """The processes that have ``word`` on their command line and have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            found.append(int(folder.name))
    return found


def _start_and_be_killed(argv: list[str], log: Path, after_s: float) -> None:
    """A process that starts a guest, and is killed ``after_s`` after it set out to."""
    ready, tell = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(tell, b"x")
            with process.started(argv, log):
                time.sleep(60)
        finally:
            os._exit(1)
    os.read(ready, 1)
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(ready)
    os.close(tell)


def test_no_guest_outlives_its_parent_whenever_that_is_killed(tmp_path: Path) -> None:
    rng = random.Random(11)
    word = f"31{os.getpid()}"  # seconds to sleep, and a word that is nobody else's
    for turn in range(KILLS):
        # half of them while the guest's process is only coming to be
        most_ms = FIRST_MS if turn % 2 else 6
        _start_and_be_killed(["/bin/sleep", word], tmp_path / "log", rng.uniform(0, most_ms) / 1000)
    deadline = time.monotonic() + 5
    while (left := _with_word(word)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_a_dead_one_s_folder_goes_with_the_next_start_and_a_living_one_s_stays(tmp_path: Path) -> None:
    ready, tell = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            with folders.private(tmp_path) as folder:
                (folder / "ram").write_bytes(b"memory")
                os.write(tell, b"x")
                time.sleep(60)
        finally:
            os._exit(1)
    os.read(ready, 1)
    (left,) = tmp_path.iterdir()
    with folders.private(tmp_path) as living:
        assert left.is_dir()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with folders.private(tmp_path) as other:
            assert set(tmp_path.iterdir()) == {living, other}
    assert list(tmp_path.iterdir()) == []
