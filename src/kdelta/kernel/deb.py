# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian packages, read by dpkg-deb."""

from __future__ import annotations

import re
import subprocess
import tarfile
from contextlib import AbstractContextManager
from pathlib import Path

from kdelta.errors import UserError
from kdelta.kernel import package
from kdelta.kernel.package import KernelFiles, Part

AR_MAGIC = b"!<arch>\n"
_PARTS: dict[Part, re.Pattern[str]] = {
    "image": re.compile(
        r"^(boot/vmlinu[xz]-[^/]+|(usr/)?lib/modules/[^/]+/vmlinuz|(usr/)?lib/linux-image-[^/]+/Image)$"
    ),
    "config": re.compile(r"^(boot/config-[^/]+|(usr/)?lib/modules/[^/]+/config)$"),
}


def _program() -> str:
    return package.program("dpkg-deb", "dpkg", "to read Debian packages")


def fields(path: Path) -> dict[str, str]:
    """The control fields Package, Version and Architecture.

    Raises:
        UserError: no such file, or not a Debian package.
        HostError: dpkg-deb is missing.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    run = subprocess.run(
        [_program(), "--field", str(path.absolute()), "Package", "Version", "Architecture"],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    if run.returncode:
        why = (run.stderr.strip().splitlines() or ["dpkg-deb failed"])[-1].removeprefix("dpkg-deb: error: ")
        raise UserError(f"{path}: not a readable Debian package ({why})")
    pairs = (line.partition(": ") for line in run.stdout.splitlines())
    return {key: value for key, _, value in pairs}


def contents(path: Path) -> AbstractContextManager[tarfile.TarFile]:
    """The package's data as a tar stream, for ``package.members``.

    Raises:
        HostError: dpkg-deb is missing.
    """
    return package.contents([_program(), "--fsys-tarfile", str(path.absolute())], path)


def read_kernel(path: Path) -> KernelFiles:
    """Kernel image and config of a package; either may be absent (see linux-base-* in newer releases).

    Raises:
        UserError: no such file, not a package, damaged, or implausibly large members.
        HostError: dpkg-deb is missing.
    """
    control = fields(path)
    with contents(path) as tar:
        found = package.parts(tar, _PARTS)
    return KernelFiles(
        package=control.get("Package", ""),
        version=control.get("Version", ""),
        architecture=control.get("Architecture", ""),
        image=found.get("image", b""),
        config=found.get("config", b""),
    )
