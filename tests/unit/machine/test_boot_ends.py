# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of a guest that did not come to its end."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.machine import boot, process, snapshot
from kdelta.machine.options import GuestSpec
from kdelta.model import Kernel, MachineOptions


def _guest(folder: Path) -> GuestSpec:
    return GuestSpec(
        kernel=Kernel(label="a", spec="a", release="6.12", image_path="a", image_sha256="0"), mode="exact",
        accel="tcg", options=MachineOptions(), qemu=Path(sys.executable), qemu_version=(7, 2), mitigations="default",
        folder=folder,
    )  # fmt: skip


@pytest.mark.parametrize("timed_out", [False, True])
def test_a_guest_that_never_said_who_it_is_ended_while_it_booted(tmp_path: Path, timed_out: bool) -> None:
    """It was told as a panic in the first case; one that is restored has said who it is before."""
    (tmp_path / "console").write_bytes(b"" if timed_out else b"x\n[    1.0] Kernel panic - not syncing: no\n")
    (tmp_path / "stream").write_bytes(b"")
    guest = _guest(tmp_path)
    ended = process.Ended(
        status=0, timed_out=timed_out, flooded=False, elapsed_s=1.0, first_record_s=None, first_sample_s=None
    )
    said = boot.collect(guest, (), ended)
    assert said.state == ("hung" if timed_out else "panicked") and said.why.startswith("while it booted: ")
    assert "while it booted" not in boot.collect(replace(guest, restored=True), (), ended).why


def test_a_guest_that_does_not_boot_is_told_with_what_its_config_lacks(tmp_path: Path) -> None:
    """It was "Unable to mount root fs": true, and no help, for no guest has one."""
    (tmp_path / "console").write_bytes(b'[ 1.0] Kernel panic - not syncing: VFS: Unable to mount root fs on ""\n')
    (tmp_path / "stream").write_bytes(b"")
    guest = _guest(tmp_path)
    ended = process.Ended(
        status=0, timed_out=False, flooded=False, elapsed_s=1.0, first_record_s=None, first_sample_s=None
    )
    said = {}
    for config in ({}, {"BLK_DEV_INITRD": "y"}, {"BLK_DEV_INITRD": "n", "BINFMT_ELF": "y", "SMP": "n"}):
        kernel = replace(guest.kernel, config=config)
        said[len(config)] = boot.collect(replace(guest, kernel=kernel), (), ended).why
    assert said[0] == said[1] and "config" not in said[0]
    assert said[3] == f"{said[0]}; its config lacks CONFIG_BLK_DEV_INITRD, without which no guest starts"


@pytest.mark.parametrize("guest_ends", [True, False])
def test_records_that_went_to_the_console_are_told_with_what_the_kernel_lacks(tmp_path: Path, guest_ends: bool) -> None:
    """Of a kernel without SYSFS and PROC_FS it was "lost: the guest wrote no records", as if the host were at fault."""
    (tmp_path / "console").write_bytes(b'[ 1.0] Run /init\r\nkd1 0 00000000 {"t":"hello"}\r\n')
    (tmp_path / "stream").write_bytes(b"")
    ended = process.Ended(
        status=0, timed_out=not guest_ends, flooded=False, elapsed_s=1.0, first_record_s=None, first_sample_s=None
    )
    said = boot.collect(_guest(tmp_path), (), ended)
    assert said.state == "failed"
    assert "found no port for its records" in said.why and "CONFIG_SYSFS" in said.why


@pytest.mark.parametrize("word", ["reboot: Power down", "reboot: Restarting system", "reboot: System halted"])
def test_a_program_that_ends_its_guest_is_told_so(tmp_path: Path, word: str) -> None:
    """It was "lost: the guest wrote no records", or hung. Who is not restored restarts itself at its end."""
    (tmp_path / "console").write_bytes(f"x\n[   25.2] {word}\n".encode())
    (tmp_path / "stream").write_bytes(b"")
    ended = process.Ended(
        status=0, timed_out="halted" in word, flooded=False, elapsed_s=1.0, first_record_s=None, first_sample_s=None
    )
    said = boot.collect(replace(_guest(tmp_path), restored=True), (), ended)
    assert (said.state, said.why) == ("failed", f"a process ended the guest ({word})")
    assert (boot.collect(_guest(tmp_path), (), ended).state == "lost") == ("Restarting" in word)


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="needs qemu-system-x86_64")
def test_a_qemu_that_is_told_to_end_before_its_monitor_is_asked_was_killed(tmp_path: Path) -> None:
    """It ends with 0 then: its guest was said to be one that cannot be paused, and several CPUs were not counted."""
    guest, socket = _guest(tmp_path), tmp_path / "qmp.sock"
    argv = ("qemu-system-x86_64", "-M", "none", "-display", "none", "-qmp", "unix:qmp.sock,server=on,wait=off")
    deadline = time.monotonic() + 60
    with process.started(argv, guest.path("qemu.log"), folder=tmp_path) as running:
        while not socket.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)  # it takes signals as it begins to serve, and dies of them before
        os.kill(running.pid, signal.SIGTERM)
        running.wait(60)
        assert snapshot._ended(guest, argv, running, deadline, 60).killed
