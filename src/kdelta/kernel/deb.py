# SPDX-License-Identifier: GPL-2.0-or-later
"""Take single files out of a Debian package without trusting it.

dpkg-deb streams the package's tar and tarfile reads it: nothing is unpacked to a folder, no link is followed, no member
name becomes a path on this machine, and sizes are limited.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from msgspec import Struct

from kdelta.errors import HostError, UserError

AR_MAGIC = b"!<arch>\n"
_IMAGE = re.compile(r"^(boot/vmlinu[xz]-[^/]+|(usr/)?lib/modules/[^/]+/vmlinuz|(usr/)?lib/linux-image-[^/]+/Image)$")
_CONFIG = re.compile(r"^(boot/config-[^/]+|(usr/)?lib/modules/[^/]+/config)$")
_IMAGE_LIMIT_BYTES = 512 << 20
_CONFIG_LIMIT_BYTES = 4 << 20
_TOTAL_LIMIT_BYTES = 16 << 30


class DebFiles(Struct, frozen=True, kw_only=True):
    """What a kernel package holds: ``image`` and ``config`` are file contents, empty when it has none."""

    package: str
    version: str
    architecture: str
    image: bytes = b""
    config: bytes = b""


def _program() -> str:
    found = shutil.which("dpkg-deb")
    if found is None:
        raise HostError("dpkg-deb is not installed: install dpkg to read Debian packages")
    return found


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


@contextmanager
def contents(path: Path) -> Iterator[tarfile.TarFile]:
    """The package's data as a tar stream, to be read with ``members``; a reader that stops early ends dpkg-deb.

    Raises:
        UserError: the data is damaged or cut short, also where that shows only while a member is read.
        HostError: dpkg-deb is missing.
    """
    process = subprocess.Popen(
        [_program(), "--fsys-tarfile", str(path.absolute())], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
            yield tar
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"{path}: its data cannot be read ({error}); is the download complete?") from None
    finally:
        process.stdout.close()
        process.terminate()
        process.wait()


def _name(member: tarfile.TarInfo) -> str | None:
    """The member's name without ./, None for one that climbs out or is absolute."""
    name = member.name.removeprefix("./")
    return None if name.startswith("/") or ".." in name.split("/") else name


def members(tar: tarfile.TarFile, want: Callable[[str], int | None]) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, open file) of each regular member for which ``want(name)`` gives a size limit in bytes.

    Each file must be read before the next is asked for, inside the ``contents`` that gave ``tar``.

    Raises:
        UserError: a wanted member is over its limit, or all of them together are implausible.
    """
    total_bytes = 0
    for member in tar:
        total_bytes += member.size
        if total_bytes > _TOTAL_LIMIT_BYTES:
            raise UserError(f"{member.name}: the package unpacks to more than {_TOTAL_LIMIT_BYTES >> 30} GiB")
        name = _name(member)
        limit = want(name) if name is not None and member.isreg() else None
        if name is None or limit is None:
            continue
        if member.size > limit:
            raise UserError(f"{name}: {member.size} bytes in a package, more than the {limit} that are plausible")
        opened = tar.extractfile(member)
        if opened is not None:
            yield name, opened


def read_kernel(path: Path) -> DebFiles:
    """Kernel image and config of a package; either may be absent (see linux-base-* in newer releases).

    Raises:
        UserError: no such file, not a package, damaged, or implausibly large members.
    """
    control = fields(path)
    files: dict[str, bytes] = {}

    def want(name: str) -> int | None:
        if _IMAGE.match(name):
            return _IMAGE_LIMIT_BYTES
        return _CONFIG_LIMIT_BYTES if _CONFIG.match(name) else None

    with contents(path) as tar:
        for name, opened in members(tar, want):
            files.setdefault("image" if _IMAGE.match(name) else "config", opened.read())
            if len(files) == 2:  # the modules that follow are most of the package
                break
    return DebFiles(
        package=control.get("Package", ""),
        version=control.get("Version", ""),
        architecture=control.get("Architecture", ""),
        image=files.get("image", b""),
        config=files.get("config", b""),
    )
