# SPDX-License-Identifier: GPL-2.0-or-later
"""What one guest is started with, as data: everything that the argv is made from."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from kdelta.machine import icount
from kdelta.model import Arch, Kernel, MachineOptions, Mitigations, Mode

Port = Literal["virtio", "uart"]
Accel = Literal["kvm", "tcg"]


class GuestSpec(Struct, frozen=True, kw_only=True):
    """A guest to start. Paths are the host's; ``folder`` is private to this boot."""

    kernel: Kernel
    mode: Mode
    accel: Accel
    options: MachineOptions
    mitigations: Mitigations
    qemu: Path
    qemu_version: tuple[int, int]
    folder: Path
    port: Port = "uart"
    seed: int = 1
    # exact mode
    plugin: Path | None = None
    hold_sites: Path | None = None  # where locks are taken and released: see plugin/hold.c
    entries: Path | None = None  # where the kernel is entered: see plugin/calls.c
    functions: Path | None = None  # where they start: see plugin/functions.c
    kernel_facts: Path | None = None  # what lines that move are named by: see plugin/guest_facts.c
    snapshot_save: bool = False  # its memory lies in the file "ram", which the snapshot keeps
    boot_shift: int = icount.SHIFT_BOOT  # of that boot: its instructions take 1 << this many ns
    restored: bool = (
        False  # its memory starts as the file "ram" is and leaves it so; its state comes through the monitor
    )
    jobs_in_fw_cfg: bool = False
    # Told in flight whom to become (plugin/serve.c): by the text of this file, or once for each packet of this socket.
    order: Path | None = None
    # What is translated before the first interval has its counters too: dearer, and done once for all who are told.
    counters_from_start: bool = False
    orders: int | None = None

    @property
    def arch(self) -> Arch:
        return self.kernel.arch

    def path(self, name: str) -> Path:
        """A file of this boot: console, stream, initramfs, jobs, counts, entries, holds, lines, ram, sockets, a log."""
        return self.folder / name


def common_port(kernels: tuple[Kernel, ...], mode: Mode) -> Port:
    """The record port that every kernel of an experiment has built in, so that all guests are the same machine.

    Exact guests write to the UART wherever it may be there: virtio-serial answers when the host gets round to it, and
    its interrupts then come at another virtual time in each run (QEMU 7.2 and 10.0: counts differed).
    """
    if mode == "exact" and all(k.config.get("SERIAL_8250", "y") == "y" for k in kernels):
        return "uart"
    virtio = all(k.config.get("VIRTIO_CONSOLE") == "y" and k.config.get("VIRTIO_PCI") == "y" for k in kernels)
    return "virtio" if virtio else "uart"
