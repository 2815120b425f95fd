# SPDX-License-Identifier: GPL-2.0-or-later
"""What this machine can do: a QEMU that is none, and a trial whose memory is damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.machine import probe


def program(folder: Path, body: str) -> str:
    path = folder / "qemu-system-x86_64"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (r"printf '\377\232garbage'", "is not QEMU: to --version it says"),
        ("exit 3", "is not QEMU: to --version it says 'nothing'"),
        ("echo another version 1.2.3", "is not QEMU"),
    ],
)
def test_a_program_that_is_no_qemu_is_named(body: str, told: str, tmp_path: Path) -> None:
    """Bytes that are no text were a traceback."""
    with pytest.raises(HostError, match=told) as error:
        probe.find_qemu("qemu-system-x86_64", "x86_64", program(tmp_path, body))
    assert "\n" not in str(error.value)


def test_a_qemu_says_its_version(tmp_path: Path) -> None:
    found = probe.find_qemu("x", "x86_64", program(tmp_path, "echo 'QEMU emulator version 8.2.0 (v8.2.0)'"))
    assert (found.version, found.text) == ((8, 2), "8.2.0 (v8.2.0)")


@pytest.mark.parametrize("content", [b"", b"x", b"[]", b'{"key": 1}', b'{"key": "k", "works": "perhaps"}'])
def test_a_damaged_memory_of_the_trial_is_none(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kvm.json").write_bytes(content)
    monkeypatch.setattr(probe, "kvm_opens", lambda: True)
    qemu = probe.Qemu(path=Path("/usr/bin/qemu"), version=(8, 2), text="8.2.0")
    arch = {"aarch64": "arm64"}.get(machine := os.uname().machine, machine)
    assert probe.tried(tmp_path) is None and probe.foreseen(qemu, tmp_path) is None
    said = probe.decide_accel("auto", qemu, arch, tmp_path, lambda: (False, "it hung"))
    assert said == ("tcg", "emulation: /dev/kvm opens but cannot run a stock guest (it hung)")
    assert probe.foreseen(qemu, tmp_path) == "tcg"


def test_nothing_is_foreseen_of_another_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "kvm_opens", lambda: True)
    old, new = (probe.Qemu(path=Path("/usr/bin/qemu"), version=(one, 0), text=f"{one}.0") for one in (7, 8))
    arch = {"aarch64": "arm64"}.get(machine := os.uname().machine, machine)
    probe.decide_accel("auto", old, arch, tmp_path, lambda: (True, ""))
    assert probe.foreseen(old, tmp_path) == "kvm" and probe.foreseen(new, tmp_path) is None
