# SPDX-License-Identifier: GPL-2.0-or-later
"""The scripts that start a kernel, run by a real shell where kexec and GRUB only write down what they are told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.lab import start
from kdelta.lab.describe import Start
from kdelta.model import Hardware

_TOLD = '#!/bin/sh\n{ echo "$(basename "$0")"; for word; do echo "<$word>"; done; } >>"$TOLD"\n'


def _run(folder: Path, script: str, **commands: str) -> tuple[str, subprocess.CompletedProcess[str]]:
    """What the commands were told, and how the script ended. No shutdown is among them, unless as one of these."""
    programs, told = folder / "bin", folder / "told"
    programs.mkdir(exist_ok=True)
    for name in ("kexec", "grub-reboot", "systemctl", "reboot", "sync"):
        commands.setdefault(name.replace("-", "_"), _TOLD)
    for name, text in commands.items():
        (programs / name.replace("_", "-")).write_text(text)
        (programs / name.replace("_", "-")).chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "TOLD": str(told)}
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=environment, check=False)
    return told.read_text() if told.exists() else "", done


@pytest.fixture
def there(tmp_path: Path) -> Path:
    folder = tmp_path / "it's there"
    folder.mkdir()
    for name in ("kernel1", "base", "jobs"):
        (folder / name).write_text(name)
    return folder


def _script(kind: Start, there: Path, cmdline: str) -> str:
    return start.script(kind, str(there), "kernel1", ("base", "jobs"), cmdline)


def test_kexec_is_told_every_word(there: Path, tmp_path: Path) -> None:
    cmdline = """console=ttyS0 dyndbg="file a.c +p; x" $(reboot) it's"""
    told, done = _run(tmp_path, _script("kexec", there, cmdline))
    assert done.returncode == 0, done.stderr
    assert f"<--command-line={cmdline}>" in told
    assert "<--load>\n<kernel1>" in told
    assert (there / "initramfs").read_text() == "basejobs"


def test_a_kernel_that_cannot_be_loaded_ends_it(there: Path, tmp_path: Path) -> None:
    refused = "#!/bin/sh\necho 'kexec_load failed: Operation not permitted' >&2\nexit 255\n"
    script = start.script("kexec", str(there), "kernel1", ("base", "jobs"), "quiet", "touch armed")
    told, done = _run(tmp_path, script, kexec=refused)
    assert done.returncode == 255
    assert "not permitted" in done.stderr
    assert "systemctl" not in told
    assert not (there / "armed").exists(), "its own system would be reset"


def test_what_comes_last_is_done_before_the_machine_goes_down(there: Path, tmp_path: Path) -> None:
    script = start.script("kexec", str(there), "kernel1", ("base", "jobs"), "quiet", "seconds=7\necho $seconds >>$TOLD")
    told, done = _run(tmp_path, script)
    assert done.returncode == 0, done.stderr
    loaded, _, left = told.partition("\n7\n")
    assert "--load" in loaded
    assert "sync" not in loaded and "systemctl" not in loaded, told
    assert "sync" in left or "systemctl" in left, told


def _grub(there: Path, tmp_path: Path) -> tuple[Path, str]:
    """/boot of a machine, and the script that writes to it."""
    boot = tmp_path / "boot"
    (boot / "grub").mkdir(parents=True)
    (boot / "grub/grub.cfg").write_text("")
    return boot / "grub", _script("grub", there, "console=ttyS0,115200 a$b").replace("/boot/", f"{boot}/")


def test_grub_has_an_entry_for_one_boot(there: Path, tmp_path: Path) -> None:
    grub, script = _grub(there, tmp_path)
    for _ in range(2):  # our own entry is replaced
        told, done = _run(tmp_path, script, grub_probe="#!/bin/sh\necho ext2\n")
        assert done.returncode == 0, done.stderr
    assert "grub-reboot\n<kdelta>" in told
    assert "  linux \"${kdelta}/kernel\" console=ttyS0,115200 'a$b'\n" in (grub / "custom.cfg").read_text()
    assert (grub / "kdelta/kernel").read_text() == "kernel1"
    assert (grub / "kdelta/initramfs").read_text() == "basejobs"


def test_an_entry_that_grub_cannot_forget_is_refused(there: Path, tmp_path: Path) -> None:
    grub, script = _grub(there, tmp_path)
    told, done = _run(tmp_path, script, grub_probe='#!/bin/sh\n[ "$1" = --target=fs ] && echo btrfs\nexit 0\n')
    assert (done.returncode, told) == (1, "")
    assert "cannot write" in done.stderr
    assert not (grub / "custom.cfg").exists()


def test_entries_of_others_are_left_alone(there: Path, tmp_path: Path) -> None:
    grub, script = _grub(there, tmp_path)
    (grub / "custom.cfg").write_text("menuentry mine {}\n")
    told, done = _run(tmp_path, script, grub_probe="#!/bin/sh\necho ext2\n")
    assert (done.returncode, told) == (1, "")
    assert (grub / "custom.cfg").read_text() == "menuentry mine {}\n"


def test_grub_passes_no_quotes_on(there: Path) -> None:
    with pytest.raises(UserError, match="by kexec alone"):
        _script("grub", there, 'a="b c"')


_BOOTCTL = """#!/bin/sh
case "$1" in
--print-*) echo "$ESP" ;;
*) { echo bootctl; for word; do echo "<$word>"; done; } >>"$TOLD" ;;
esac
"""


def _systemd_boot(there: Path, tmp_path: Path, default: str) -> tuple[Path, str, subprocess.CompletedProcess[str]]:
    """Its boot partition, what bootctl and the shutdown were told, and how the script ended."""
    esp = tmp_path / "efi"
    (esp / "loader").mkdir(parents=True, exist_ok=True)
    (esp / "loader/loader.conf").write_text(f"timeout 3\n{default}")
    script = _script("systemd-boot", there, "console=ttyS0,115200 a='b $c'").replace("/sys/firmware", f"{tmp_path}/sys")
    told, done = _run(tmp_path, script, bootctl=_BOOTCTL.replace("$ESP", str(esp)))
    return esp, told, done


def test_systemd_boot_has_an_entry_for_one_boot(there: Path, tmp_path: Path) -> None:
    esp, told, done = _systemd_boot(there, tmp_path, "default debian-*\n")
    assert done.returncode == 0, done.stderr
    assert "bootctl\n<set-oneshot>\n<kdelta.conf>\n" in told
    assert told.rindex("set-oneshot") < max(told.rfind("reboot"), told.rfind("systemctl"))
    assert (esp / "kdelta/kernel").read_text() == "kernel1"
    assert (esp / "kdelta/initramfs").read_text() == "basejobs"
    entry = (esp / "loader/entries/kdelta.conf").read_text().splitlines()
    assert entry[1:] == [
        "linux /kdelta/kernel", "initrd /kdelta/initramfs", "options console=ttyS0,115200 a='b $c'",
    ]  # fmt: skip


@pytest.mark.parametrize(("default", "why"), [("", "no default entry"), ("default *\n", "takes in kdelta's")])
def test_systemd_boot_without_a_default_of_its_own_is_refused(
    there: Path, tmp_path: Path, default: str, why: str
) -> None:
    esp, told, done = _systemd_boot(there, tmp_path, default)
    assert (done.returncode, "set-oneshot" in told) == (1, False)
    assert why in done.stderr and done.stderr.count("\n") == 1
    assert not (esp / "loader/entries").exists()


def test_systemd_boot_that_is_not_there_is_told(there: Path, tmp_path: Path) -> None:
    script = _script("systemd-boot", there, "quiet")
    told, done = _run(tmp_path, script, bootctl='#!/bin/sh\n[ "$1" != is-installed ]\n')
    assert (done.returncode, told) == (1, "")
    assert done.stderr == "systemd-boot is not installed there\n"


def test_the_users_words_come_after_the_machines() -> None:
    line = start.command_line("ttyS0,115200", True, "nosmt panic=5", "nosmt=force", "77")
    assert line.startswith("console=ttyS0,115200 panic=10 ")
    assert line.endswith(" nosmt panic=5 mitigations=off nosmt=force kdelta.boot=77")
    assert "  " not in start.command_line("ttyS0", False, "", "", "77")


def test_hardware_is_set_by_the_command_line_where_no_system_does() -> None:
    assert start.hardware_words(Hardware()) == []
    assert start.hardware_words(Hardware(smt=True)) == []
    wanted = Hardware(governor="performance", smt=False)
    assert start.hardware_words(wanted) == ["cpufreq.default_governor=performance", "nosmt"]
