# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases of system calls that the kernel refuses, here by a filter: they fail, and no figure is told of them."""

from __future__ import annotations

import ctypes
import errno
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from kdelta.guest import binary, protocol
from kdelta.guest.jobs import case_jobs
from kdelta.model import Effort
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")

SHORT = Effort(warmup_windows=1, windows=1, window_ms=5, latency_ops=50, repetitions=2, limit_ms=20_000)
_FUTEX = 202  # of x86-64
_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _IS, _RETURN = 0x20, 0x15, 0x06  # of BPF: a word of seccomp_data, whether it equals, the answer
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _refuse(number: int) -> None:
    """Let this process and all that it executes be refused one system call."""
    lines = ((_LOAD, 0, 0, 0), (_IS, 0, 1, number), (_RETURN, 0, 0, _ERRNO | errno.EINVAL), (_RETURN, 0, 0, _ALLOW))
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    prctl = ctypes.CDLL(None).prctl
    prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    prctl(_SECCOMP, _FILTER, ctypes.byref(_Program(len(lines), ctypes.addressof(text))))


@pytest.fixture(scope="module")
def program(guest_cache: Path) -> Path:
    return binary.build("x86_64", (), cache=guest_cache)


def _state(program: Path, folder: Path, name: str, refused: int | None) -> str:
    known = catalogue()
    jobs = case_jobs(
        dict(enumerate(parse_case(f"syscalls/{name}", known))), mode="timed", efforts={0: SHORT}, exact_ops={0: 3}
    )
    (folder / "jobs").write_text(jobs.text(), "ascii")
    with (folder / "stream").open("wb") as file:
        argv: list[str | Path] = [
            program,
            "--native",
            "--jobs",
            folder / "jobs",
            "--data",
            folder,
            "--fd",
            str(file.fileno()),
        ]
        hook = None if refused is None else lambda: _refuse(refused)
        subprocess.run(argv, pass_fds=[file.fileno()], check=True, timeout=120, preexec_fn=hook)
    records = protocol.parse((folder / "stream").read_bytes()).records
    return next(record.state for record in records if isinstance(record, protocol.Done))


@pytest.mark.parametrize("name", ["futex_wait", "futex_wake", "futex_pingpong"])
def test_a_case_of_futexes_fails_where_these_are_refused(name: str, program: Path, tmp_path: Path) -> None:
    """Two of three came to their end, much faster: a patch that broke futex(2) had improved it."""
    assert _state(program, tmp_path, name, None) == "ok"
    assert _state(program, tmp_path, name, _FUTEX) == "failed"
