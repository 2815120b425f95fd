# SPDX-License-Identifier: GPL-2.0-or-later
"""labgrid's own words on what is wrong with a description, as one line; and its leftovers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.lab import control
from kdelta.lab.describe import described

pytest.importorskip("labgrid")
_SERIAL = '[b.resources.NetworkSerialPort]\nhost = "192.0.2.8"\nport = 1\nprotocol = "raw"\n'


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return tmp_path / "lab.toml"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("[b.drivers.SerialDriver]\n", "SerialDriver"),
        ("[b.resources.Nonsense]\n", "Nonsense"),
        ("[b.drivers.Nonsense]\n", "Nonsense"),
        (_SERIAL.replace("host", "hots"), "hots"),
        (_SERIAL.replace("= 1", '= "x"'), "NetworkSerialPort"),
        (_SERIAL.replace("raw", "smoke"), "unknown protocol"),
        (_SERIAL + '[b.resources.NetworkPowerPort]\nmodel = "nope"\nhost = "h"\nindex = 1\n', "nope"),
        (_SERIAL.replace("= 1", '= "x"'), "'port' must be"),
        ("", "has not a serial console"),
    ],
)
def test_what_labgrid_does_not_take_is_one_line(lab: Path, more: str, told: str) -> None:
    lab.write_text(f'[b]\naddress = "192.0.2.7"\n{more}')
    with pytest.raises(UserError) as refused, control.opened(described(f"{lab}:b")):
        pass
    assert str(refused.value).startswith(f"--on: {lab}: b")
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_machine_that_is_not_there_is_no_error_and_leaves_nothing(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.write_text(f'[b]\naddress = "127.0.0.1"\nport = 1\n{_SERIAL}')
    (temporaries := tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporaries))
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    with control.opened(described(f"{lab}:b"), lambda: now[0], sleep) as machine:
        assert not machine.connected(3.0)
        assert not machine.cycled()
    assert not list(temporaries.iterdir())


@pytest.mark.parametrize(
    ("said", "refused"),
    [("root@b: Permission denied (publickey).", True), ("ssh: connect to host b port 22: Connection refused", False)],
)
def test_what_ssh_says_is_kept_and_a_refusal_is_told_at_once(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, refused: bool
) -> None:
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(f"#!/bin/sh\necho '{said}'\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(ssh.parent), prepend=":")
    lab.write_text(f'[b]\naddress = "192.0.2.7"\n{_SERIAL}')
    now, waits = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += 100

    with control.opened(described(f"{lab}:b"), lambda: now[0], sleep) as machine:
        monkeypatch.setattr(control, "_CONNECT_S", 1.0)
        assert not machine.connected(90.0)
        assert (machine.unheard, machine.refused, bool(waits)) == (said, refused, not refused)


@pytest.mark.parametrize("more", ["drivers: 3", "resources: 3", "resources: [3]", "resources: {RemotePlace: 3}"])
def test_what_is_no_environment_is_one_line_for_a_worker_too(tmp_path: Path, more: str) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(f"targets:\n  b:\n    {more}\n")
    with pytest.raises(UserError, match=rf"--on: {path}: b: "):
        control.places_of(described(f"{path}:b"))
    path.write_text("targets:\n  b:\n    options: 4\n")
    with pytest.raises(UserError, match=r"b: options: Expected `object`"):
        described(f"{path}:b")


def test_a_console_that_cannot_be_opened_says_why(lab: Path) -> None:
    lab.write_text(f'[b]\naddress = "192.0.2.7"\n{_SERIAL.replace("192.0.2.8", "127.0.0.1")}')
    with (
        control.opened(described(f"{lab}:b")) as machine,
        pytest.raises(HostError, match=r"console cannot be opened: .*Connection refused"),
    ):
        machine.listening()
