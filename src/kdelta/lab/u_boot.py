# SPDX-License-Identifier: GPL-2.0-or-later
"""What U-Boot is told on its console to start a kernel once. Nothing is saved: a reset boots as it always does.

Source: docs.u-boot.org, "Usage": setenv, load, tftpboot, booti, zboot; hush, its shell.
"""

from __future__ import annotations

from kdelta.errors import UserError
from kdelta.lab.describe import Start, UBoot
from kdelta.model import Arch

_PIECE = 160  # characters of the command line that are typed at once: a line may have 256 (CONFIG_SYS_CBSIZE)
_BOOT: dict[Arch, str] = {
    "arm64": "booti ${kernel_addr_r} ${ramdisk_addr_r}:${filesize} ${fdtcontroladdr}",
    "x86_64": "zboot ${kernel_addr_r} 0 ${ramdisk_addr_r} ${filesize}",
}


def boot_command(said: UBoot, arch: Arch) -> str:
    """What starts the loaded kernel."""
    return said.boot or _BOOT[arch]


def commands(said: UBoot, start: Start, kernel: str, initramfs: str, cmdline: str) -> tuple[str, ...]:
    """All but the last command; ``kernel`` and ``initramfs``: files as U-Boot names them, the latter loaded last.

    Raises:
        UserError: there is no device to load from, or U-Boot cannot pass such a command line on.
    """
    load = said.load or ("tftpboot" if start == "tftp" else "")
    if not load:
        raise UserError("U-Boot is not told where to load from: write u-boot.load, as in 'load mmc 0:1'")
    return (
        *said.first,
        *_bootargs(cmdline),
        f"{load} ${{kernel_addr_r}} {kernel}",
        f"{load} ${{ramdisk_addr_r}} {initramfs}",
    )


def _bootargs(cmdline: str) -> list[str]:
    """The command line, a piece at a time; setenv joins its arguments by spaces."""
    if any(c in cmdline for c in "'\\"):
        raise UserError(f"U-Boot passes no single quotes and no backslashes on: {cmdline!r}")
    pieces: list[str] = []
    for word in cmdline.split():
        if pieces and len(pieces[-1]) + len(word) < _PIECE:
            pieces[-1] += f" {word}"
        else:
            pieces.append(word)
    return ["setenv bootargs", *(f"setenv bootargs \"${{bootargs}}\" '{piece}'" for piece in pieces)]
