# SPDX-License-Identifier: GPL-2.0-or-later
"""RPM packages of kernels (Fedora, RHEL: kernel-core; openSUSE: kernel-default), read by rpm's own programs.

Of packages by name rpm would also read lists of further ones, and fetch those: only what begins as a package is shown
to it (lib/rpmlead.c), and without that (``--nomanifest``).
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from kdelta.errors import UserError
from kdelta.kernel import package
from kdelta.kernel.package import KernelFiles, Part

MAGIC = b"\xed\xab\xee\xdb"
PARTS: dict[Part, re.Pattern[str]] = {
    "image": re.compile(r"^(boot/(vmlinuz|Image)-[^/]+|(usr/)?lib/modules/[^/]+/(vmlinuz|Image))$"),
    "config": re.compile(r"^(boot/config-[^/]+|(usr/)?lib/modules/[^/]+/config)$"),
    "system_map": re.compile(r"^(boot/System\.map-[^/]+|(usr/)?lib/modules/[^/]+/System\.map)$"),
}
_QUERY = ("--query", "--package", "--nosignature", "--nomanifest", "--noglob")
_TAGS = "%{NAME}\n%{VERSION}-%{RELEASE}\n%{ARCH}\n"


def _program(name: str) -> str:
    return package.program(name, "rpm", "to read RPM packages")


def fields(path: Path) -> tuple[str, str, str]:
    """Name, version with release, and architecture, from the package's header.

    Raises:
        UserError: no such file, or not an RPM package.
        HostError: rpm is missing.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if magic != MAGIC:
        raise UserError(f"{path}: not an RPM package")
    run = subprocess.run(
        [_program("rpm"), *_QUERY, "--queryformat", _TAGS, str(path.absolute())],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    lines = run.stdout.splitlines()
    if run.returncode or len(lines) != 3:
        why = (run.stderr.strip().splitlines() or ["rpm failed"])[0].removeprefix("error: ")
        raise UserError(f"{path}: not a readable RPM package ({why})")
    return lines[0], lines[1], lines[2]


def _verify(path: Path) -> None:
    """Raises:
    UserError: the package is not what its digests say.
    """
    run = subprocess.run(
        [_program("rpmkeys"), "--checksig", "--nosignature", str(path.absolute())], capture_output=True, check=False
    )
    if run.returncode:
        raise UserError(f"{path}: damaged, its digests do not match; is the download complete?")


def read_kernel(path: Path) -> KernelFiles:
    """Kernel image, config and System.map of a package; each may be absent.

    Raises:
        UserError: no such file, not a package, damaged, or implausibly large members.
        HostError: rpm is missing.
    """
    name, version, architecture = fields(path)
    _verify(path)
    with package.contents([_program("rpm2archive"), "--nocompression", "-"], path) as tar:
        found = package.parts(tar, PARTS)
    return KernelFiles(
        package=name,
        version=version,
        architecture=architecture,
        image=found.get("image", b""),
        config=found.get("config", b""),
        system_map=found.get("system_map", b""),
    )
