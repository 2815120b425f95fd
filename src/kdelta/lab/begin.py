# SPDX-License-Identifier: GPL-2.0-or-later
"""The one seam where a kernel is started on a machine, whatever its boot loader is."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from kdelta.lab import start, u_boot
from kdelta.lab.control import Control
from kdelta.lab.describe import Start
from kdelta.model import Arch


class Load(Struct, frozen=True, kw_only=True):
    """What is started: files of this machine, and ``names`` of the same in ``there``, where they were sent.

    ``last`` is what the machine's own system does last.
    """

    arch: Arch
    kernel: Path
    initramfs: tuple[Path, ...]
    cmdline: str
    there: str = ""
    names: tuple[str, ...] = ()
    last: str = ""


def sends(kind: Start) -> bool:
    """Whether the machine's own system is to have the files."""
    return start.by_script(kind) or kind == "u-boot"


def begin(control: Control, load: Load, clock: Callable[[], float] = time.monotonic) -> None:
    """Start it; the machine's own system is left, and its console is listened to from here on.

    Raises:
        UserError: its boot loader cannot be told so. HostError: it refuses, or is not reached.
    """
    kind = control.machine.options.start
    if start.by_script(kind):
        words = (load.there, load.names[0], load.names[1:], load.cmdline, load.last)
        control.run(start.script(kind, *words), root=True)
        control.disconnected()
    elif kind == "fastboot":
        _fastboot(control, load, clock)
    else:
        _u_boot(control, load)


def _whole(load: Load) -> Path:
    """The archives as one file, in the private directory of the boot."""
    path = load.initramfs[0].with_name("initramfs-whole")
    path.write_bytes(b"".join(part.read_bytes() for part in load.initramfs))
    return path


def _fastboot(control: Control, load: Load, clock: Callable[[], float]) -> None:
    """``fastboot boot``: nothing is written to the device. fastboot(1) makes the boot image itself."""
    options = control.machine.options
    words = (*options.fastboot, "--cmdline", load.cmdline, "boot")
    control.reboot("bootloader")
    end = clock() + options.start_limit_s
    control.loaders.fastboot(words, (load.kernel, _whole(load)), lambda: end - clock(), control.sleep)


def _u_boot(control: Control, load: Load) -> None:
    """U-Boot loads from the disk, where the machine's own system puts the files, or from a TFTP server."""
    options = control.machine.options
    said = options.u_boot
    if options.start == "tftp":
        kernel, initramfs = (control.loaders.staged(path) for path in _named(control.machine.name, load))
    else:
        kernel, initramfs = f"{said.path}/kernel", f"{said.path}/initramfs"
    commands = u_boot.commands(said, options.start, kernel, initramfs, load.cmdline)
    if options.start == "u-boot":
        control.run(_copied(said.folder, load), root=True)
    control.reboot()
    control.loaders.u_boot(commands, u_boot.boot_command(said, load.arch), options.start_limit_s)


def _copied(folder: str, load: Load) -> str:
    parts = " ".join(map(shlex.quote, load.names[1:]))
    there = shlex.quote(folder)
    return (
        f"set -eu; cd {shlex.quote(load.there)}; mkdir -p {there}; "
        f"cp {load.names[0]} {there}/kernel; cat {parts} >{there}/initramfs; sync"
    )


def _named(machine: str, load: Load) -> tuple[Path, Path]:
    """The files under names of this machine's own: others may use the same server."""
    folder = load.initramfs[0].parent
    kernel, initramfs = folder / f"kdelta-{machine}-kernel", folder / f"kdelta-{machine}-initramfs"
    kernel.symlink_to(load.kernel)
    _whole(load).rename(initramfs)
    return kernel, initramfs
