# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that a kernel build needs on this machine, and what identifies their output."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from kdelta import distributions
from kdelta.errors import HostError
from kdelta.kernel import kconfig, sandbox
from kdelta.kernel.origin import run
from kdelta.kernel.worktree import decode
from kdelta.model import Arch

_MACHINES: dict[str, Arch] = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
_PREFIXES: dict[Arch, str] = {"x86_64": "x86_64-linux-gnu-", "arm64": "aarch64-linux-gnu-"}
_CROSS_PACKAGES: dict[Arch, str] = {"x86_64": "gcc-x86-64-linux-gnu", "arm64": "gcc-aarch64-linux-gnu"}
_TOOLS = {"make": "make", "gcc": "gcc", "ld": "binutils", "flex": "flex", "bison": "bison", "bc": "bc", "perl": "perl",
          "python3": "python3", "tar": "tar", "xz": "xz-utils", "git": "git"}  # fmt: skip
_LIBELF = ("/usr/include/libelf.h", "/usr/include/libelf/libelf.h", "/usr/local/include/libelf.h")


class Toolchain(Struct, frozen=True, kw_only=True):
    """Compiler and linker for one architecture. ``id`` changes when their versions do."""

    arch: Arch
    prefix: str  # "" when native
    ccache: bool
    title: str  # first line of the compiler's version
    id: str
    asked: tuple[tuple[str, str], ...] = ()  # options of which Kconfig has the value from programs, by name

    def suits(self, config: str) -> bool:
        """Whether a .config was made where the programs that Kconfig asks were those of today."""
        got = kconfig.parse(config) if self.asked else {}
        return all(got.get(name, value) == value for name, value in self.asked)


def missing(arch: Arch) -> list[str]:
    """Debian packages whose programs or headers are not here."""
    packages = {package for tool, package in _TOOLS.items() if shutil.which(tool) is None}
    prefix = prefix_for(arch)
    if prefix and any(shutil.which(prefix + tool) is None for tool in ("gcc", "ld")):
        packages.add(_CROSS_PACKAGES[arch])
    if arch == "x86_64" and not any(Path(header).is_file() for header in _LIBELF):
        packages.add("libelf-dev")
    return sorted(packages)


def prefix_for(arch: Arch) -> str:
    """CROSS_COMPILE for ``arch`` on this machine."""
    return "" if _MACHINES.get(platform.machine()) == arch else _PREFIXES[arch]


def probe(arch: Arch) -> Toolchain:
    """The toolchain for ``arch``.

    Raises:
        HostError: something is missing; the line that installs it is named.
    """
    if packages := missing(arch):
        raise HostError(
            f"building a kernel for {arch} needs programs that are missing: {distributions.install(packages)}"
        )
    prefix = prefix_for(arch)
    versions = [_said(shutil.which(prefix + tool) or prefix + tool).splitlines()[0] for tool in ("gcc", "ld")]
    return Toolchain(
        arch=arch,
        prefix=prefix,
        ccache=shutil.which("ccache") is not None,
        title=versions[0],
        id=hashlib.sha256("\n".join([arch, prefix, *versions]).encode()).hexdigest()[:12],
        asked=(("PAHOLE_VERSION", _pahole()), ("RUSTC_VERSION", _rustc())),
    )


def _pahole() -> str:
    """As the kernel's scripts/pahole-version.sh prints it: 124 of v1.24; "0" without it."""
    match = re.match(r"v(\d+)\.(\d+)", _version("pahole"))
    return f"{match[1]}{match[2]}" if match else "0"


def _rustc() -> str:
    """As scripts/rustc-version.sh prints it: 108501 of 1.85.1; "0" without it."""
    match = re.match(r"rustc (\d+)\.(\d+)\.(\d+)", _version("rustc"))
    return str(100_000 * int(match[1]) + 100 * int(match[2]) + int(match[3])) if match else "0"


def _version(program: str) -> str:
    path = sandbox.which(program)
    if path is None:
        return ""
    try:
        return _said(path)
    except HostError:  # it is there and does not run: to Kconfig it is missing too
        return ""


def _said(path: str) -> str:
    """What a program says of its version, asked once in a process as long as it is the same file.

    Raises:
        HostError: it is missing or fails.
    """
    facts = os.stat(path) if os.path.exists(path) else None
    return _asked(path, (facts.st_ino, facts.st_size, facts.st_mtime_ns) if facts else ())


@lru_cache(maxsize=16)
def _asked(path: str, _stamp: tuple[int, ...]) -> str:
    return decode(run([path, "--version"], f"reading the version of {Path(path).name}"))
