# SPDX-License-Identifier: GPL-2.0-or-later
"""--on on the command line: what cannot be is refused before the machine is asked or a kernel fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.cli import _kernels, _lab, _patching, main
from kdelta.errors import UserError
from kdelta.lab import control
from unit.fleet.fleet_builders import asked

COMPARE = ["compare", "debian:6.1", "debian:6.12", "--case", "getppid"]
RUN = ["run", "--kernel", "debian:6.12", "--case", "getppid"]
_LAB = """
[bench1]
address = "192.0.2.7"
[board]
address = "192.0.2.8"
start = "tftp"
[set]
address = "192.0.2.9"
hardware = { turbo = false }
"""
CALIBRATE = ["calibrate", "debian:6.12", "--case", "getppid"]


@pytest.fixture(autouse=True)
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_far(*_: object) -> None:
        raise AssertionError("the machine was asked, or a kernel fetched")

    monkeypatch.setenv("KDELTA_STATE", str(tmp_path))
    monkeypatch.delenv("KDELTA_STORE", raising=False)
    monkeypatch.setattr(_kernels, "fetched", too_far)
    monkeypatch.setattr(_patching, "fetched", too_far)
    monkeypatch.setattr(control, "_target", too_far)
    (tmp_path / "lab.toml").write_text(_LAB)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", [COMPARE, RUN, CALIBRATE])
@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--on", "lab.toml:bench2"], "has no machine 'bench2': it has bench1, board, set"),
        (["--on", "gone.toml:bench1"], "gone.toml cannot be read: No such file"),
        (["--on", "lab.toml"], "lab.toml:bench1"),
        (["--on", "lab.toml:bench1", "--smp", "4"], "--smp is about guests, and --on names a machine"),
        (["--on", "lab.toml:bench1", "--kvm", "off"], "--kvm is about guests"),
        (["--in-system"], "--in-system is about a machine of a lab: add --on"),
        (["--on", "lab.toml:board", "--in-system"], "board starts by tftp; kexec, grub and systemd-boot can do it"),
        (["--on", "lab.toml:set"], "hardware.turbo is set in the installed system alone: add --in-system"),
    ],
)
def test_what_cannot_be_is_one_line(
    words: list[str], more: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run([*words, *more]) == 1
    said = capsys.readouterr().err
    assert why in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([*COMPARE, "--exact"], "--exact needs guests"),
        ([*COMPARE, "--why", "locks"], "--why needs guests"),
        (["compare", "src:debian:6.1", "src:debian:6.12", "--selftests", "pidfd"], "--selftests needs guests"),
        ([*COMPARE, "--seeds", "5"], "--seeds is for exact mode"),
        ([*COMPARE, "--fleet"], "name it alone, --on bench1"),
        ([*RUN, "--exact"], "--exact needs guests"),
        (["run"], "--on starts a kernel there: name it"),
    ],
)
def test_what_needs_guests_is_refused(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*words, "--on", "lab.toml:bench1"]) == 1
    said = capsys.readouterr().err
    assert why in said and said.count("\n") == 1


def test_a_kernel_of_another_architecture_is_refused_before_anything_is_stored() -> None:
    """By what the machine said of itself; resuming would fail again."""
    host = {"machine": "bench1", "arch": "aarch64"}
    with pytest.raises(UserError, match="bench1 is aarch64, and kernel a is of x86_64"):
        _lab.of(asked(), host)
    assert _lab.of(asked(), {**host, "arch": "x86_64"}).host["machine"] == "bench1"
