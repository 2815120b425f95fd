# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel is started on a phone by the real programs adb and fastboot, against a stand-in of their protocols."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.lab import begin, control
from kdelta.lab.describe import described
from unit.lab.android_stand_ins import AdbServer, Bootloader, boot_image

pytest.importorskip("labgrid")
pytestmark = pytest.mark.skipif(
    not (shutil.which("adb") and shutil.which("fastboot")), reason="apt-get install adb fastboot"
)
_CMDLINE = "console=ttyMSM0,115200 panic=10 " + " ".join(f"word{n}=$x" for n in range(40)) + " kdelta.boot=77"


def test_a_phone_takes_kernel_initramfs_and_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server, loader = AdbServer(), Bootloader()
    monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:127.0.0.1:{server.port}")
    for name, size in (("Image", 9000), ("base", 5000), ("jobs", 3)):
        (tmp_path / name).write_bytes(name.encode() * size)
    (tmp_path / "lab.toml").write_text(
        f'[phone]\nadb = "0123"\nstart = "fastboot"\nstart_limit_s = 20\n'
        '[phone.resources.NetworkSerialPort]\nhost = "127.0.0.1"\nport = 9\n'
        f'[phone.resources.AndroidNetFastboot]\naddress = "127.0.0.1"\nport = {loader.port}\nprotocol = "tcp"\n'
    )
    load = begin.Load(
        arch="arm64", kernel=tmp_path / "Image", initramfs=(tmp_path / "base", tmp_path / "jobs"), cmdline=_CMDLINE
    )
    with control.opened(described(f"{tmp_path / 'lab.toml'}:phone")) as machine:
        assert machine.connected(10)
        assert machine.run("echo it; echo \"is $((1 + 1))\" 'quoted  words'") == "it\nis 2 quoted  words"
        with pytest.raises(HostError, match=r"machine phone: gone$"):
            machine.run("echo gone >&2; exit 3")
        begin.begin(machine, load)
    assert capfd.readouterr().out == "", "it would be among the lines of --json"
    server.close()
    loader.close()
    assert [service for service in server.services if service.startswith("reboot:")] == ["reboot:bootloader"]
    assert loader.commands[-1] == "boot"
    assert not [command for command in loader.commands if command.startswith(("flash", "erase"))]
    kernel, ramdisk, cmdline = boot_image(loader.image)
    assert kernel == b"Image" * 9000
    assert ramdisk == b"base" * 5000 + b"jobs" * 3
    assert cmdline == _CMDLINE
