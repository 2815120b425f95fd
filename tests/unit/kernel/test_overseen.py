# SPDX-License-Identifier: GPL-2.0-or-later
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kdelta.kernel.overseen import Overseer

HANGS = [sys.executable, "-c", "import os; os.fork(); input()"]


def started(words: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [({"silence_limit_s": 0.0}, "it printed nothing"), ({"least_free_bytes": 1 << 62}, "No space left on device")],
)
def test_a_build_that_hangs_or_fills_the_disk_is_ended_with_its_children(
    tmp_path: Path, limits: dict[str, float], wanted: str
) -> None:
    with started(HANGS) as build, Overseer(build.pid, tmp_path, time.monotonic, each_s=0.01, **limits) as overseer:  # type: ignore[arg-type]
        assert build.stdout is not None
        assert build.stdout.read() == b""  # ends when the last of them is gone
        assert build.wait() == -9
    assert wanted in overseer.why


def test_one_that_prints_or_ends_is_left_alone(tmp_path: Path) -> None:
    now = [0.0]
    with started(HANGS) as build:
        overseer = Overseer(build.pid, tmp_path, lambda: now[0], silence_limit_s=10.0)
        now[0] = 9.0
        overseer.heard()
        now[0] = 18.0
        assert overseer._reason() == ""
        now[0] = 20.0
        assert "printed nothing" in overseer._reason()
        os.killpg(build.pid, 9)
    with Overseer(build.pid, tmp_path, lambda: now[0], silence_limit_s=-1.0, each_s=0.01) as late:
        late._thread.join()
    assert late.why
