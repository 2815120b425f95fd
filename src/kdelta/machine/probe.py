# SPDX-License-Identifier: GPL-2.0-or-later
"""What this machine can do: QEMU and its version, and whether KVM really runs a stock guest.

/dev/kvm that opens proves nothing: under some nested hypervisors a guest hangs at its first instruction. So the
decision is made by booting the kernel at hand once, and remembered until the host reboots or QEMU changes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from kdelta.errors import HostError, UserError
from kdelta.machine.options import Accel
from kdelta.machine.process import find_program

KVM_TRIAL_LIMIT_S = 20.0
_VERSION_LIMIT_S = 20
_TRIAL = "kvm.json"
_PACKAGES = {"x86_64": "qemu-system-x86", "arm64": "qemu-system-arm"}


class Qemu(msgspec.Struct, frozen=True, kw_only=True):
    """A QEMU on this machine."""

    path: Path
    version: tuple[int, int]
    text: str  # "7.2.22 (Debian ...)"


def find_qemu(name: str, arch: str, chosen: str = "") -> Qemu:
    """QEMU for ``arch``, from PATH or as ``chosen`` by the user.

    Raises:
        UserError: the chosen one is not there. HostError: not installed, or it does not say its version.
    """
    if chosen and shutil.which(chosen) is None:
        raise UserError(f"QEMU {chosen}: no such program that may be run; correct --qemu, or leave it out")
    path = find_program(chosen or name, _PACKAGES[arch])
    try:
        done = subprocess.run([str(path), "--version"], capture_output=True, timeout=_VERSION_LIMIT_S, check=False)
    except OSError as error:
        raise HostError(f"{path} does not run: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise HostError(f"{path} does not run: no answer to --version in {_VERSION_LIMIT_S} s") from None
    said, complaint = (out.decode("utf-8", "replace") for out in (done.stdout, done.stderr))
    match = re.search(r"QEMU emulator version ((\d{1,4})\.(\d{1,4})[^\n]*)", said)
    if match is None:
        told = " ".join((said + complaint).split())[:120]
        raise HostError(f"{path} is not QEMU: to --version it says {told or 'nothing'!r}")
    return Qemu(path=path, version=(int(match.group(2)), int(match.group(3))), text=match.group(1))


def _key(qemu: Qemu) -> str:
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    return f"{boot_id.read_text().strip() if boot_id.exists() else 'unknown'} {qemu.text}"


def kvm_opens() -> bool:
    """Whether /dev/kvm is there and ours to open."""
    return os.access("/dev/kvm", os.R_OK | os.W_OK)


class Trial(msgspec.Struct, frozen=True):
    """What came of the trial under KVM; ``key``: this start of the host, and its QEMU."""

    key: str
    works: Literal["yes", "no"]
    why: str = ""


def tried(cache: Path) -> Trial | None:
    """The last trial that this machine remembers; None where there was none, or its file is damaged."""
    try:
        return msgspec.json.decode((cache / _TRIAL).read_bytes(), type=Trial)
    except (OSError, msgspec.MsgspecError):
        return None


def foreseen(qemu: Qemu, cache: Path) -> Accel | None:
    """What ``decide_accel`` will say of kernels of the host's architecture; None where it would have to try."""
    if not kvm_opens():
        return "tcg"
    known = tried(cache)
    if known is None or known.key != _key(qemu):
        return None
    return "kvm" if known.works == "yes" else "tcg"


def decide_accel(
    wanted: str, qemu: Qemu, arch: str, cache: Path, trial: Callable[[], tuple[bool, str]]
) -> tuple[Accel, str]:
    """KVM or emulation, and the one line that says why.

    ``trial`` boots a stock guest under KVM and says whether it came up; it runs at most once per host boot.

    Raises:
        HostError: the user demanded KVM and it does not work.
    """
    if wanted == "off":
        return "tcg", "emulation, as requested"
    host = os.uname().machine
    if arch != {"aarch64": "arm64"}.get(host, host):
        return "tcg", f"emulation: the guest is {arch}, the host {host}"
    if not kvm_opens():
        if wanted == "on":
            raise HostError("KVM was requested, but /dev/kvm cannot be opened: add your user to the group kvm")
        return "tcg", "emulation: there is no usable /dev/kvm"
    known = tried(cache)
    if known is None or known.key != _key(qemu):
        works, why = trial()
        known = Trial(_key(qemu), "yes" if works else "no", why)
        cache.mkdir(parents=True, exist_ok=True)
        (cache / _TRIAL).write_bytes(msgspec.json.encode(known))
    if known.works == "yes":
        return "kvm", "KVM"
    if wanted == "on":
        raise HostError(f"KVM was requested, but it cannot run a stock guest here: {known.why}")
    return "tcg", f"emulation: /dev/kvm opens but cannot run a stock guest ({known.why})"
