# SPDX-License-Identifier: GPL-2.0-or-later
"""A boot of the installed system: what is asked of it, and what is not believed. The machine is a script."""

from __future__ import annotations

import base64
import hashlib
import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.errors import HostError
from kdelta.guest import protocol
from kdelta.lab import boot, start
from kdelta.model import Hardware, Kernel
from unit.lab.test_boot import Box, _machine
from unit.lab.test_hearing import _hello, _line, _notes

_OWN = "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro quiet initrd=\\x kdelta.boot=old"
_BUILD_ID = "ab" * 20


class Installed(Box):
    """A machine whose installed system comes up under the kernel after 40 s."""

    def __init__(self, line: dict[float, bytes] | None = None, back_s: float | None = 40) -> None:
        super().__init__(line or {}, back_s)
        self.machine = replace(
            self.machine, options=replace(self.machine.options, hardware=Hardware(turbo=False, cpus="1"))
        )
        self.installed, self.build_id, self.breaks = True, _BUILD_ID, False
        self.running, self.restarts, self.ids = _OWN, 0, iter(("new", "newer"))
        self.cmdline = ""
        self.sysfs = {
            "/sys/devices/system/cpu/online": "0-1",
            "/sys/devices/system/cpu/cpufreq/boost": "1",
            "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "schedutil",
            "/proc/irq/3/smp_affinity_list": "1",
            "/sys/class/thermal/thermal_zone0/type": "x86_pkg_temp",
            "/sys/class/thermal/thermal_zone0/temp": "47000",
        }

    def connected(self, limit_s: float) -> bool:
        before = self.boot_id
        answers = super().connected(limit_s)
        if answers and self.since_s >= 0:
            self.boot_id = before if before != "old" and self.restarts == 0 else ("newer" if self.restarts else "new")
            self.running = self.cmdline if not self.restarts else _OWN
        return answers

    def reboot(self, mode: str = "") -> None:
        self.restarts += 1
        self.started_at = self.now

    def run(self, script: str, *, root: bool = False, limit_s: float = 0) -> str:
        if script == "cat /proc/cmdline":
            return self.running
        if "[ -d /lib/modules/" in script:
            return "/boot/initrd.img-6.12.1" if self.installed else ""
        if "kexec" in script:
            loaded = next(line for line in script.splitlines() if line.startswith("kexec "))
            self.cmdline = shlex.split(loaded)[-1].removeprefix("--command-line=")
        elif script.startswith("for f in "):
            pattern = script.removeprefix("for f in ").split(";")[0]
            names = [name for name in self.sysfs if Path(name).match(pattern)]
            return "\n".join(f"{name} {self.sysfs[name]}" for name in names)
        elif script.startswith("printf %s "):
            text, path = script.removeprefix("printf %s ").split(" >")
            self.sysfs[path] = text
            return ""
        elif script.startswith("uname -v"):
            return f"#1 SMP\n{_notes(self.build_id)}"
        elif "--native" in script:
            self.commands.append(script)
            if self.breaks:
                raise HostError("machine box: the connection broke")
            return base64.b64encode(_line([_hello(cmdline=self.running)])).decode()
        elif root:
            self.commands.append(script)
            return ""
        return super().run(script, root=root, limit_s=limit_s)


def _order(kernel: Kernel, tmp_path: Path) -> boot.Order:
    (tmp_path / "guest").write_bytes(b"program")
    (tmp_path / "words").write_bytes(b"data")
    return boot.Order(
        kernel=kernel, mitigations_off=False, initramfs=b"base", jobs=b"jobs", limit_s=60,
        program=tmp_path / "guest", job_list="it's a list", data={"text/words": tmp_path / "words"},
    )  # fmt: skip


def test_the_program_runs_inside_the_installed_system(
    kernel: Kernel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = Installed()
    raw = _machine(box, monkeypatch).boot(_order(kernel, tmp_path), tmp_path)
    assert (raw.state, raw.why, box.restarts, box.cycles) == ("ok", "", 1, 0)
    assert raw.facts == {"temperature_c": 47.0, "turbo": "off", "governor": "schedutil"}
    assert box.sysfs["/sys/devices/system/cpu/cpufreq/boost"] == "0"
    assert box.sysfs["/proc/irq/3/smp_affinity_list"] == "0"
    said = "\n".join(box.commands)
    assert "taskset -c 1 ./program --native" in said
    assert "timeout -s KILL 60" in said
    assert "/boot/initrd.img-6.12.1" in raw.argv
    assert hashlib.sha256(b"base").hexdigest() not in box.files, "no initramfs of ours"
    assert isinstance(raw.records[0], protocol.Hello)


def test_its_command_line_is_that_of_the_installed_system_and_ours() -> None:
    assert start.installed_line(_OWN, "panic=10 kdelta.boot=77") == "root=/dev/vda1 ro quiet panic=10 kdelta.boot=77"


def test_a_kernel_that_is_not_installed_there_is_told(
    kernel: Kernel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = Installed()
    box.installed = False
    with pytest.raises(HostError, match=r"needs /lib/modules/6\.12\.1 and /boot/initrd\.img-6\.12\.1 there"):
        _machine(box, monkeypatch).boot(_order(kernel, tmp_path), tmp_path)


def test_another_kernel_is_not_believed(
    kernel: Kernel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = Installed()
    box.build_id = "cd" * 20
    raw = _machine(box, monkeypatch).boot(_order(kernel, tmp_path), tmp_path)
    assert (raw.state, "build id cdcdcd" in raw.why) == ("failed", True)


@pytest.mark.parametrize(
    ("line", "back_s", "breaks", "state", "why"),
    [
        ({5: b"Kernel panic - not syncing: Fatal exception\n"}, 60, False, "panicked", "Fatal exception"),
        ({}, None, False, "hung", "within its time limit"),
        ({}, 40, True, "lost", "the connection broke"),
    ],
)
def test_what_goes_wrong_has_its_name(
    line: dict[float, bytes],
    back_s: float | None,
    breaks: bool,
    state: str,
    why: str,
    kernel: Kernel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = Installed(line, back_s)
    box.breaks = breaks
    raw = _machine(box, monkeypatch).boot(_order(kernel, tmp_path), tmp_path)
    assert raw.state == state
    assert why in raw.why


def test_hardware_that_is_not_there_is_told_and_the_machine_restarted(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Installed()
    del box.sysfs["/sys/devices/system/cpu/cpufreq/boost"]
    raw = _machine(box, monkeypatch).boot(_order(kernel, tmp_path), tmp_path)
    assert (raw.state, box.restarts, box.cycles) == ("failed", 1, 0)
    assert raw.why.startswith("turbo cannot be set: there is neither")
