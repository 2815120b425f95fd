# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel is started by boot loaders that are told from here, through labgrid, against stand-ins at their end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.lab import begin, control
from kdelta.lab.describe import described
from unit.lab.stand_ins import UBootLine, program

pytest.importorskip("labgrid")
CMDLINE = "console=ttyAMA0,115200 panic=10 " + " ".join(f"word{n}=$x" for n in range(40)) + " kdelta.boot=77"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What adb and fastboot were told."""
    for name in ("adb", "fastboot"):
        program(tmp_path / "bin", name)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return tmp_path / "bin/told"


@pytest.fixture
def load(tmp_path: Path) -> begin.Load:
    folder = tmp_path / "boot"
    folder.mkdir()
    for name in ("vmlinuz", "base", "jobs"):
        (folder / name).write_text(name)
    return begin.Load(
        arch="arm64",
        kernel=folder / "vmlinuz",
        initramfs=(folder / "base", folder / "jobs"),
        cmdline=CMDLINE,
        there=str(folder),
        names=("vmlinuz", "base", "jobs"),
    )


@pytest.fixture
def line() -> Iterator[UBootLine]:
    made = UBootLine(lambda command: ("File not found\r\n", 1) if "gone" in command else ("", 0))
    yield made
    made.close()


def _started(tmp_path: Path, load: begin.Load, text: str, port: int = 9) -> None:
    (tmp_path / "lab.toml").write_text(
        f'[phone]\nadb = "0123"\nstart_limit_s = 20\n{text}\n'
        f'[phone.resources.NetworkSerialPort]\nhost = "127.0.0.1"\nport = {port}\nprotocol = "raw"\n'
    )
    with control.opened(described(f"{tmp_path / 'lab.toml'}:phone")) as machine:
        assert machine.connected(10)
        if port != 9:
            machine.listening()
        begin.begin(machine, load)


def _bootargs(commands: list[str]) -> str:
    """The variable that the commands leave behind."""
    value = ""
    for command in commands:
        assert len(command) < 200
        if command.startswith("setenv bootargs"):
            value = " ".join(filter(None, [value, command.partition(" '")[2].rstrip("'")]))
    return value


def test_u_boot_loads_from_the_disk(tmp_path: Path, told: Path, load: begin.Load, line: UBootLine) -> None:
    there = tmp_path / "it's boot"
    text = f'start = "u-boot"\nu-boot = {{ load = "load mmc 0:1", folder = "{there}", path = "/k", first = ["a"] }}'
    _started(tmp_path, load, text, line.port)
    assert "adb\n<-s>\n<0123>\n<reboot>\n" in told.read_text()
    assert ((there / "kernel").read_text(), (there / "initramfs").read_text()) == ("vmlinuz", "basejobs")
    line.close()
    assert line.commands[0] == "a"
    assert _bootargs(line.commands) == CMDLINE
    assert line.commands[-3:] == [
        "load mmc 0:1 ${kernel_addr_r} /k/kernel",
        "load mmc 0:1 ${ramdisk_addr_r} /k/initramfs",
        "booti ${kernel_addr_r} ${ramdisk_addr_r}:${filesize} ${fdtcontroladdr}",
    ]


def test_u_boot_loads_from_labgrids_tftp_server(tmp_path: Path, told: Path, load: begin.Load, line: UBootLine) -> None:
    served = tmp_path / "srv"
    server = f'resources.TFTPProvider = {{ internal = "{served}", external = "lab" }}'
    text = f'start = "tftp"\nu-boot.boot = "bootz 1 2"\n{server}'
    _started(tmp_path, load, text, line.port)
    assert (served / "kdelta-phone-kernel").read_text() == "vmlinuz"
    assert (served / "kdelta-phone-initramfs").read_text() == "basejobs"
    line.close()
    assert line.commands[-3:] == [
        "tftpboot ${kernel_addr_r} lab/kdelta-phone-kernel",
        "tftpboot ${ramdisk_addr_r} lab/kdelta-phone-initramfs",
        "bootz 1 2",
    ]


def test_what_u_boot_refuses_is_one_line(tmp_path: Path, told: Path, load: begin.Load, line: UBootLine) -> None:
    text = f'start = "u-boot"\nu-boot = {{ load = "load mmc 0:1", folder = "{tmp_path}/b", path = "/gone" }}'
    with pytest.raises(HostError, match=r"machine phone: U-Boot: load mmc .* /gone/kernel: File not found$"):
        _started(tmp_path, load, text, line.port)


def test_u_boot_is_not_reached_where_it_cannot_be_told(tmp_path: Path, told: Path, load: begin.Load) -> None:
    with pytest.raises(UserError, match=r"u-boot\.load, as in 'load mmc 0:1'"):
        _started(tmp_path, load, 'start = "u-boot"')
    quoted = begin.Load(arch="arm64", kernel=load.kernel, initramfs=load.initramfs, cmdline="a='b c'")
    with pytest.raises(UserError, match="no single quotes"):
        _started(tmp_path, quoted, 'start = "u-boot"\nu-boot.load = "load mmc 0:1"')
    assert not told.exists() or "reboot" not in told.read_text()


FASTBOOT = (
    'start = "fastboot"\nfastboot = ["--header-version", "2"]\nresources.AndroidNetFastboot = { address = "::1" }'
)


def test_fastboot_boots_once(tmp_path: Path, told: Path, load: begin.Load) -> None:
    _started(tmp_path, load, FASTBOOT)
    said = told.read_text()
    assert said.index("adb\n<-s>\n<0123>\n<reboot>\n<bootloader>\n") < said.index("fastboot\n")
    assert f"<--header-version>\n<2>\n<--cmdline>\n<{CMDLINE}>\n<boot>\n<{load.kernel}>\n" in said
    assert (load.kernel.parent / "initramfs-whole").read_text() == "basejobs"
    assert "flash" not in said


def test_what_fastboot_refuses_is_one_line(tmp_path: Path, told: Path, load: begin.Load) -> None:
    fastboot = told.with_name("fastboot")
    refusing = '[ "$3" = getvar ] || { echo "FAILED (remote: \'unlock the device\')" >&2; exit 1; }\n'
    fastboot.write_text(fastboot.read_text() + refusing)
    with pytest.raises(HostError, match=r"machine phone: fastboot: FAILED \(remote: 'unlock the device'\)$"):
        _started(tmp_path, load, FASTBOOT)


def test_a_phone_that_nobody_answers_for_is_told(
    tmp_path: Path, told: Path, load: begin.Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    told.with_name("told.refuse").write_text("error: device '0123' not found\n")
    (tmp_path / "lab.toml").write_text(
        f'[phone]\nadb = "0123"\n{FASTBOOT}\n[phone.resources.NetworkSerialPort]\nhost = "127.0.0.1"\nport = 9\n'
    )
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    with control.opened(described(f"{tmp_path / 'lab.toml'}:phone"), lambda: now[0], sleep) as machine:
        assert not machine.connected(5)
        with pytest.raises(HostError, match="adb reboot: error: device '0123' not found"):
            machine.reboot()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('adb = "0123"\nstart = "fastboot"', r"has not a fastboot device \(a resource AndroidUSBFastboot\)"),
        ('adb = "0123"\nstart = "tftp"', r"has not a TFTP server \(a resource TFTPProvider\)"),
        ('adb = "0123"\naddress = "::1"', "give an address .ssh., or a serial number for adb, and not both"),
        ('start = "kexec"', "give an address"),
        ('adb = "0123"\nstart = "u-boot"\nu-boot.lod = "x"', "lod"),
    ],
)
def test_what_is_missing_of_a_description_is_one_line(tmp_path: Path, told: Path, text: str, why: str) -> None:
    (tmp_path / "lab.toml").write_text(
        f'[phone]\n{text}\n[phone.resources.NetworkSerialPort]\nhost = "127.0.0.1"\nport = 9\n'
    )
    with pytest.raises(UserError, match=why) as refused, control.opened(described(f"{tmp_path / 'lab.toml'}:phone")):
        pass
    assert "\n" not in str(refused.value)
