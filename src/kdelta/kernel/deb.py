# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian packages. Source: deb(5), deb-control(5), deb-version(7), and what dpkg-deb takes (lib/dpkg/compress.c)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO, get_args

from kdelta.errors import UserError
from kdelta.kernel import ar, package, unpack
from kdelta.kernel.package import Entry, KernelFiles, Part

_PARTS: dict[Part, re.Pattern[str]] = {
    "image": re.compile(
        r"^(boot/vmlinu[xz]-[^/]+|(usr/)?lib/modules/[^/]+/vmlinuz|(usr/)?lib/linux-image-[^/]+/Image)$"
    ),
    "config": re.compile(r"^(boot/config-[^/]+|(usr/)?lib/modules/[^/]+/config)$"),
}
_KINDS: dict[str, unpack.Kind] = {f".{kind}".rstrip("."): kind for kind in get_args(unpack.Kind)}
_VERSION = re.compile(rb"2\.[0-9]+\n")
_CONTROL_BYTES, _CONTROL_TAR_BYTES = 1 << 20, 64 << 20  # md5sums of a kernel's modules are half a MB
_KERNEL = re.compile(r"\s*(linux-(?:image|binary)-[a-z0-9.+-]+)")
_FIELDS = {
    "Package": re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*"),
    "Version": re.compile(r"[A-Za-z0-9.+~:_-]+"),
    "Architecture": re.compile(r"[A-Za-z0-9-]+"),
}


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], ar.Member, ar.Member]]:
    """The file with its members control.tar and data.tar.

    Raises:
        UserError: no such file, or no Debian package.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    with ExitStack() as kept:
        try:
            file = kept.enter_context(path.open("rb"))
            control, data = _members(file)
        except ar.ArError as error:
            raise _unreadable(path, str(error)) from None
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None
        yield file, control, data


def _unreadable(path: Path, why: str) -> UserError:
    return UserError(f"{path}: not a readable Debian package ({why})")


def _members(file: IO[bytes]) -> tuple[ar.Member, ar.Member]:
    """control.tar and data.tar, which come in this order; what dpkg may leave out begins with an underscore.

    Raises:
        ar.ArError: the file is no Debian package.
    """
    found = (member for member in ar.members(file) if not member.name.startswith("_"))
    first = next(found, None)
    if first is None or first.name != "debian-binary":
        raise ar.ArError("its first member is not debian-binary")
    file.seek(first.at)
    if not _VERSION.match(file.read(min(first.size, 64))):
        raise ar.ArError("its format is not of version 2")
    return _packed(next(found, None), "control.tar"), _packed(next(found, None), "data.tar")


def _packed(member: ar.Member | None, stem: str) -> ar.Member:
    if member is None or not member.name.startswith(stem):
        raise ar.ArError(f"there is no {stem} where it should be")
    if _suffix(member) not in _KINDS:
        raise ar.ArError(f"its member {member.name} is compressed in a way that is not known")
    return member


def _suffix(member: ar.Member) -> str:
    return member.name.partition(".tar")[2]


def _read(file: IO[bytes], member: ar.Member, path: Path, limit_bytes: int) -> AbstractContextManager[Iterator[Entry]]:
    data = unpack.Stream(ar.opened(file, member), _KINDS[_suffix(member)], limit_bytes)
    return package.stream(data, path)


def _control(text: str) -> dict[str, str]:
    """The fields of a control file's paragraph, by name. Pure."""
    paragraph = text.lstrip("\n").partition("\n\n")[0]
    lines = (line.partition(":") for line in paragraph.split("\n") if line[:1].isalpha())
    return {name.strip().capitalize(): value.strip() for name, _, value in lines}


def fields(path: Path) -> dict[str, str]:
    """The control fields Package, Version and Architecture.

    Raises:
        UserError: no such file, or not a Debian package.
    """
    found = _paragraph(path)
    for name, pattern in _FIELDS.items():
        if not pattern.fullmatch(found.get(name, "")):
            raise _unreadable(path, f"its control file gives no valid {name}")
    return {name: found[name] for name in _FIELDS}


def depends_on_kernels(path: Path) -> tuple[str, ...]:
    """The packages of kernels that this one depends on, as linux-image-amd64 does, which itself is empty.

    Raises:
        UserError: as ``fields``.
    """
    names = re.split(r"[,|]", _paragraph(path).get("Depends", ""))
    return tuple(dict.fromkeys(match[1] for name in names if (match := _KERNEL.match(name))))


def _paragraph(path: Path) -> dict[str, str]:
    with _opened(path) as (file, member, _), _read(file, member, path, _CONTROL_TAR_BYTES) as entries:
        text = next((one.read() for _, one in package.members(entries, _is_control)), b"")
    return _control(text.decode("utf-8", "replace"))


def _is_control(name: str) -> int | None:
    return _CONTROL_BYTES if name == "control" else None


@contextmanager
def contents(path: Path) -> Iterator[Iterator[Entry]]:
    """The members of the package's data, for ``package.members``.

    Raises:
        UserError: no such file, not a package, or damaged.
    """
    with _opened(path) as (file, _, member), _read(file, member, path, package.TOTAL_LIMIT_BYTES) as entries:
        yield entries


def read_kernel(path: Path) -> KernelFiles:
    """Kernel image and config of a package; either may be absent (see linux-base-* in newer releases).

    Raises:
        UserError: no such file, not a package, damaged, or implausibly large members.
    """
    control = fields(path)
    with contents(path) as entries:
        found = package.parts(entries, _PARTS)
    return KernelFiles(
        package=control["Package"],
        version=control["Version"],
        architecture=control["Architecture"],
        image=found.get("image", b""),
        config=found.get("config", b""),
    )
