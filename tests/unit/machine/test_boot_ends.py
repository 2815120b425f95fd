# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of a guest that did not come to its end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.machine import boot, process
from kdelta.machine.options import GuestSpec
from kdelta.model import Kernel, MachineOptions


@pytest.mark.parametrize("timed_out", [False, True])
def test_a_guest_that_never_said_who_it_is_ended_while_it_booted(tmp_path: Path, timed_out: bool) -> None:
    """It was told as a panic in the first case; one that is restored has said who it is before."""
    (tmp_path / "console").write_bytes(b"" if timed_out else b"x\n[    1.0] Kernel panic - not syncing: no\n")
    (tmp_path / "stream").write_bytes(b"")
    guest = GuestSpec(
        kernel=Kernel(label="a", spec="a", release="6.12", image_path="a", image_sha256="0"), mode="exact",
        accel="tcg", options=MachineOptions(), qemu=Path(sys.executable), qemu_version=(7, 2), mitigations="default",
        folder=tmp_path,
    )  # fmt: skip
    ended = process.Ended(
        status=0, timed_out=timed_out, flooded=False, elapsed_s=1.0, first_record_s=None, first_sample_s=None
    )
    said = boot.collect(guest, (), ended)
    assert said.state == ("hung" if timed_out else "panicked") and said.why.startswith("while it booted: ")
    assert "while it booted" not in boot.collect(replace(guest, restored=True), (), ended).why
