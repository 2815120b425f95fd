# SPDX-License-Identifier: GPL-2.0-or-later
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.machine import orders
from kdelta.machine.served import Child, NotForked


def test_qemu_of_a_distribution_takes_orders() -> None:
    qemu = shutil.which("qemu-system-x86_64")
    assert qemu is not None
    assert orders.are_taken(Path(qemu))


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\nexec qemu\n", b"\x7fELF" + b"\0" * 100])
def test_what_is_no_program_takes_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "qemu"
    path.write_bytes(content)
    assert not orders.are_taken(path)


def test_another_program_takes_none() -> None:
    assert not orders.are_taken(Path(sys.executable).resolve())
    assert not orders.are_taken(Path("/nowhere/qemu"))


def _heard(said: bytes, parent: int = 0) -> Child:
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    os.write(theirs, said)
    os.close(theirs)
    return Child(ours, parent)


@pytest.mark.parametrize(("said", "status"), [(b"7\nended\n", 1), (b"7\n", 2), (b"7\nend", 2)])
def test_a_child_ended_well_when_it_said_so(said: bytes, status: int) -> None:
    child = _heard(said)
    assert child.pid == 7
    assert child.poll() == status


@pytest.mark.parametrize("said", [b"", b"no number\n", b"-1\nended\n"])
def test_a_child_that_never_was(said: bytes) -> None:
    with pytest.raises(NotForked):
        _heard(said)


def test_only_its_own_children_are_killed() -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        _heard(b"%d\n" % other.pid, parent=1).kill()
        assert other.poll() is None
        _heard(b"%d\n" % other.pid, parent=os.getpid()).kill()
        assert other.wait() == -9
    finally:
        other.kill()
        other.communicate()
