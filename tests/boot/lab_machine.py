# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine for a lab: a QEMU guest with a stock Debian, sshd, kexec-tools and GRUB, a serial line and a power switch.

Its image is made once, from the archive that this machine's apt is configured for, and kept in the cache.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

from kdelta.kernel import apt
from kdelta.machine.process import find_program

_PACKAGES = (
    "linux-image-cloud-amd64,systemd-sysv,udev,dbus,openssh-server,kexec-tools,grub-pc,initramfs-tools,zstd,iproute2"
)
_NETWORK = "[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n"
_GRUB = (
    "GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_DISTRIBUTOR=Debian\n"
    "GRUB_CMDLINE_LINUX='console=ttyS0 quiet mitigations=off'\n"  # its own system is no part of what is tried
)
# All modules of a kernel are 30 MB that GRUB reads and the kernel unpacks, both slowly on an emulated CPU.
_SMALL_INITRD = (
    'sed -i s/^MODULES=.*/MODULES=list/ "$1/etc/initramfs-tools/initramfs.conf"; '
    "printf 'virtio_pci\\nvirtio_blk\\next4\\n' >>\"$1/etc/initramfs-tools/modules\"; "
    'chroot "$1" update-initramfs -u'
)
_UNUSED = ("e2scrub_reap.service", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer")
_TOOLS = {"mmdebstrap": "mmdebstrap", "ssh-keygen": "openssh-client", "mke2fs": "e2fsprogs"}
# As an i6300esb's driver does (drivers/watchdog/i6300esb.c); neither kexec nor a kernel without one stops its timer.
_WATCHDOG = r"""
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile char *registers;
static void unlocked(void) {
	*(volatile uint16_t *)(registers + 12) = 0x80;
	*(volatile uint16_t *)(registers + 12) = 0x86;
}
int main(int argc, char **argv) {
	if (argc != 3 || chdir(argv[1])) return 2;
	int enable = open("enable", O_WRONLY), memory = open("resource0", O_RDWR), config = open("config", O_RDWR);
	if (write(enable, "1", 1) != 1) return 3;
	registers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (registers == MAP_FAILED) return 4;
	uint32_t half = (uint32_t)atoi(argv[2]) * 512; /* two stages, in 1/1024 s */
	for (int at = 0; at < 8; at += 4) {
		unlocked();
		*(volatile uint32_t *)(registers + at) = half;
	}
	unlocked();
	*(volatile uint16_t *)(registers + 12) = 0x100; /* reload */
	uint16_t resets = 3;
	uint8_t runs = 2;
	return pwrite(config, &resets, 2, 0x60) != 2 || pwrite(config, &runs, 1, 0x68) != 1;
}
"""
_PART = 1 << 20  # where the one partition begins
_BYTES = 1 << 30
_VERSION = "2"  # of what is made below


def lacking() -> str:
    """Why no image can be made here, "" where one can."""
    if os.geteuid() != 0:
        return "only root can make the image of a Debian system"
    missing = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    return f"apt-get install {' '.join(missing)}" if missing else ""


def image(cache: Path) -> Path:
    """The directory with ``disk``, which nobody may change, and the ``key`` that its root lets in."""
    made = cache / "lab-machine" / _VERSION
    if made.exists():
        return made
    folder = made.with_name(f"{made.name}.{os.getpid()}")
    folder.mkdir(parents=True)
    try:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
        _partition(folder, _system(folder))
        _install_grub(folder)
        folder.rename(made)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return made


def _system(folder: Path) -> Path:
    """The file tree of a Debian, as its installer would leave it."""
    main, security = apt.archives(apt.machine_sources())
    assert main is not None, "apt knows no Debian archive"
    lines = [f"deb {main.uri} {apt.OLDEST} main"]
    lines += [f"deb {security.uri} {apt.OLDEST}-security main"] if security else []
    root = folder / "root"
    words = [
        "mmdebstrap",
        "--variant=minbase",
        "--format=directory",
        f"--include={_PACKAGES}",
        f"--customize-hook={_SMALL_INITRD}",
        apt.OLDEST,
        str(root),
        "-",
    ]
    subprocess.run(words, input="\n".join(lines) + "\n", text=True, check=True, capture_output=True)
    for name, text in {
        "root/.ssh/authorized_keys": (folder / "key.pub").read_text(),
        "etc/systemd/network/lan.network": _NETWORK,
        "etc/fstab": "/dev/vda1 / ext4 errors=remount-ro 0 1\n",
        "etc/hostname": "lab\n",
        "etc/default/grub": _GRUB,
    }.items():
        (root / name).parent.mkdir(mode=0o700, exist_ok=True)
        (root / name).write_text(text)
    wanted = root / "etc/systemd/system"
    for unit in _UNUSED:
        (wanted / unit).symlink_to("/dev/null")
    (wanted / "multi-user.target.wants/systemd-networkd.service").symlink_to(
        "/lib/systemd/system/systemd-networkd.service"
    )
    return root


def _partition(folder: Path, root: Path) -> None:
    """A disk with one bootable ext4 partition that holds ``root``, which goes away; kernel and initrd are kept."""
    for name in ("vmlinuz", "initrd.img"):
        shutil.copyfile(
            (root / name).resolve() if not (root / name).is_symlink() else root / os.readlink(root / name),
            folder / name,
        )
    part = folder / "part"
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", root, part, f"{_BYTES >> 20}M"], check=True)
    entry = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", _PART // 512, _BYTES // 512)
    with (folder / "disk").open("wb") as disk:
        disk.write(b"\0" * 446 + entry + b"\0" * 48 + b"\x55\xaa")
        disk.truncate(_PART + _BYTES)
    words = ["dd", f"if={part}", f"of={folder / 'disk'}", "bs=1M", f"seek={_PART >> 20}", "conv=notrunc,sparse"]
    subprocess.run(words, check=True, capture_output=True)
    part.unlink()
    shutil.rmtree(root)


def _install_grub(folder: Path) -> None:
    """What its installer would do, in the running system."""
    box = Box(folder, folder, folder / "disk")
    box.on("-kernel", str(folder / "vmlinuz"), "-initrd", str(folder / "initrd.img"), "-append", "root=/dev/vda1")
    try:
        box.ssh("grub-install /dev/vda && update-grub && sync && systemctl --no-block poweroff", limit_s=900)
        box.ended(300)
    finally:
        box.off()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Box:
    """The machine, on ports of its own; ``console`` is a file with all that its serial line ever said."""

    def __init__(self, made: Path, folder: Path, disk: Path) -> None:
        self.key, self.console, self._pid = made / "key", folder / "box.console", folder / "box.pid"
        self.ssh_port, self.serial_port = _free_port(), _free_port()
        # "max" without any of its parts fails at random in systemd (QEMU 7.2); GRUB waits for ever without a VGA
        self._argv = [
            str(find_program("qemu-system-x86_64", "qemu-system-x86")), "-nodefaults",
            "-display", "none", "-vga", "std",
            "-m", "1024", "-accel", "tcg", "-cpu", "max",
            "-drive", f"file={disk},if=virtio,format=raw,cache=unsafe",
            "-nic", f"user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{self.ssh_port}-:22",
            "-chardev", f"socket,id=line,host=127.0.0.1,port={self.serial_port},server=on,wait=off,"
            f"logfile={self.console},logappend=on",
            "-serial", "chardev:line", "-device", "i6300esb,addr=0x1e", "-daemonize", "-pidfile", str(self._pid),
        ]  # fmt: skip
        self.scripts = {"on": folder / "on", "off": folder / "off"}
        self.scripts["on"].write_text(f"#!/bin/sh\nexec {shlex.join(self._argv)}\n")
        self.scripts["off"].write_text(f"#!/bin/sh\nkill -9 $(cat {self._pid}) && rm -f {self._pid}\ntrue\n")
        for script in self.scripts.values():
            script.chmod(0o755)

    def described(self, path: Path, start: str, start_limit_s: int = 300, watchdog: str = "") -> None:
        """Write a lab.toml with this machine as ``box``, which has a power switch or a ``watchdog``."""
        power = '[box.drivers.ExternalPowerDriver]\ncmd_on = "{on}"\ncmd_off = "{off}"\n'.format_map(self.scripts)
        path.write_text(
            f'[box]\naddress = "127.0.0.1"\nport = {self.ssh_port}\nkey = "{self.key}"\nstart = "{start}"\n'
            f'start_limit_s = {start_limit_s}\nreturn_limit_s = 900\nwatchdog = "{watchdog}"\n'
            f'[box.resources.NetworkSerialPort]\nhost = "127.0.0.1"\nport = {self.serial_port}\nprotocol = "raw"\n'
            + ("" if watchdog else power)
        )

    def on(self, *more: str) -> None:
        subprocess.run([*self._argv, *more], check=True)

    def off(self) -> None:
        """As if the plug were pulled."""
        if self._pid.exists():
            os.kill(int(self._pid.read_text()), signal.SIGKILL)
            self._pid.unlink(missing_ok=True)

    def ended(self, limit_s: float) -> None:
        """Wait until it has switched itself off: QEMU takes its file away."""
        end = time.monotonic() + limit_s
        while self._pid.exists():
            assert time.monotonic() < end, "the machine did not switch itself off"
            time.sleep(0.5)

    def watchdog(self, folder: Path) -> str:
        """Put a program there that arms its watchdog; the command for ``$seconds``."""
        source, program = folder / "arm.c", folder / "arm"
        source.write_text(_WATCHDOG)
        subprocess.run(["cc", "-Os", "-static", "-o", program, source], check=True)
        self.ssh("cat >/root/arm && chmod 755 /root/arm", limit_s=900, given=program.read_bytes())
        return "/root/arm /sys/bus/pci/devices/0000:00:1e.0 $seconds"

    def ssh(self, command: str, limit_s: float, given: bytes = b"") -> str:
        """Run a command there, as soon as it answers."""
        words = ["ssh", "-i", str(self.key), "-p", str(self.ssh_port), "-o", "StrictHostKeyChecking=no"]
        words += ["-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=30", "root@127.0.0.1", command]
        end = time.monotonic() + limit_s
        while True:
            done = subprocess.run(words, input=given, capture_output=True, check=False)
            if done.returncode != 255:  # ssh's own
                assert done.returncode == 0, done.stdout + done.stderr
                return done.stdout.decode()
            assert time.monotonic() < end, done.stderr.decode()
            time.sleep(2)
