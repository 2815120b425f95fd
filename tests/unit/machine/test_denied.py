# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest's process is denied: io_uring, which its forks would share. Asked of the kernel by a real process."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

from kdelta.machine.process import started

_ASK = """
import ctypes
ctypes.CDLL(None, use_errno=True).syscall(425, 8, ctypes.create_string_buffer(120))
print(ctypes.get_errno(), end="")
"""


def test_a_guests_process_and_what_it_executes_get_no_ring(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for argv in ([sys.executable, "-c", _ASK], ["/bin/sh", "-c", '"$0" -c "$1"; :', sys.executable, _ASK]):
        with started(argv, log) as process:
            assert process.wait(30) == 0
        assert log.read_text() == str(errno.ENOSYS)


def _bounds() -> list[str]:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return [line for line in lines if line.startswith(("Seccomp", "NoNewPrivs"))]


def test_the_caller_keeps_what_it_had(tmp_path: Path) -> None:
    before = _bounds()
    with started(["/bin/true"], tmp_path / "log") as process:
        process.wait(30)
    assert _bounds() == before != []
