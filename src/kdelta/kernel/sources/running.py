# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel that this machine is running, as a Kernel. It is measured natively, so it needs no image."""

from __future__ import annotations

import os
import platform
import zlib
from pathlib import Path

from msgspec.structs import replace

from kdelta import digests
from kdelta.errors import UserError
from kdelta.kernel import elf, kconfig
from kdelta.kernel.sources._source import Source
from kdelta.model import Arch, Kernel
from kdelta.spec.kernels import KernelSpec

_MACHINES: dict[str, Arch] = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}


def _readable(root: Path, *names: str) -> Path | None:
    return next((root / name for name in names if os.access(root / name, os.R_OK) and (root / name).is_file()), None)


def config_text(root: Path, release: str) -> str:
    """The running kernel's .config from /boot, its modules' directory or /proc/config.gz, "" where none is readable."""
    path = _readable(
        root, f"boot/config-{release}", f"usr/lib/modules/{release}/config", f"lib/modules/{release}/config"
    )
    if path is not None:
        return path.read_text(errors="replace")
    packed = _readable(root, "proc/config.gz")
    return zlib.decompress(packed.read_bytes(), 31).decode(errors="replace") if packed else ""


def check(spec: KernelSpec) -> None:
    """Raises:
    UserError: options that a kernel in use cannot take.
    """
    if spec.cmdline or spec.config:
        raise UserError(f"kernel {spec.text!r}: the running kernel has the command line and config it was started with")


def resolve_running(spec: KernelSpec, root: Path = Path("/")) -> Kernel:
    """The running kernel; ``root`` is where /proc, /boot and /sys are.

    Raises:
        UserError: options that a kernel in use cannot take, or an architecture that kdelta does not know.
    """
    check(spec)
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise UserError(f"kernel {spec.text!r}: this machine is {platform.machine()}; kdelta knows x86_64 and arm64")
    release = platform.release()
    image = _readable(root, f"boot/vmlinuz-{release}", f"usr/lib/modules/{release}/vmlinuz")
    notes = _readable(root, "sys/kernel/notes")
    version = _readable(root, "proc/version")
    return Kernel(
        label=spec.label or release,
        spec=spec.text,
        release=release,
        arch=machine,
        image_path=str(image) if image else "",
        image_sha256=digests.of_file(image) if image else "",
        build_id=elf.build_id_of(notes.read_bytes()) if notes else None,
        config=kconfig.facts(config_text(root, release)),
        origin=f"running: {version.read_text(errors='replace').strip() if version else release}",
    )


SOURCE = Source(
    prefix="running",
    word=True,
    forms="running",
    about="the kernel that this machine is running, measured natively",
    kinds=("running",),
    parse=lambda spec, _: replace(spec, kind="running"),
    write=lambda _: "running",
    resolve=lambda spec, _: resolve_running(spec),
    check=check,
    arch=lambda _: _MACHINES.get(platform.machine(), ""),
    lies_here=True,
)
