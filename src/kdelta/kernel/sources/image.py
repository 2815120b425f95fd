# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel by the path of its image: a bzImage, a vmlinux, an arm64 Image, or a unified kernel image."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel import cache, image, ingest
from kdelta.kernel.sources._source import Source, kernel_of
from kdelta.model import Arch, Kernel
from kdelta.model.progress import Progress
from kdelta.paths import expanded
from kdelta.spec.kernels import KernelSpec, is_commit

_HEADER = re.compile(r"^# Linux/\S+ (\S+) Kernel Configuration", re.MULTILINE)
_FLAVOURED = re.compile(r"v?\d+\.\d+(\.\d+)?/[a-z][a-z0-9-]*")
_DEBIANS = re.compile(r"debian[-/_]?v?(\d+\.\d+\S*)", re.IGNORECASE)
_STEMS = ("vmlinuz", "vmlinux", "bzImage")
_NAMED = re.compile(r"v?\d+\.\d+\S*|[a-z]+:\S+|running")  # what is a kernel's name at a glance
_PATCH = (b"From ", b"diff --git ", b"--- ", b"Index: ")  # what a patch or a mail with one begins with
_PATCH_NAMES = (".patch", ".diff", ".mbox", ".eml")
_REPORTS = (".json", ".html", ".csv", ".md", ".txt", ".xml")  # files that reports are written into
_CONFIG_LIMIT_BYTES = 4 << 20
_MAP_LIMIT_BYTES = 64 << 20


def _beside(path: Path, name: str) -> list[Path]:
    """Where a file of an image may lie: by name beside it (/boot), or in its build tree."""
    named = [path.with_name(name + path.name.removeprefix(stem)) for stem in _STEMS if path.name.startswith(stem)]
    return [*named, *(folder / name for folder in (path.parent, *path.parents[2:4]))]


def _config_beside(path: Path, unpacked: image.Unpacked) -> str:
    """The .config that belongs to an image file, "" if none is its own, or it needs none.

    Several images of one release may lie beside one .config, which is that of the last.
    """
    if unpacked.config:
        return ""
    for candidate in [*_beside(path, "config"), *_beside(path, ".config")]:
        if candidate == path or not candidate.is_file() or candidate.stat().st_size > _CONFIG_LIMIT_BYTES:
            continue
        try:
            text = candidate.read_text(errors="replace")
        except OSError:
            continue  # it would have helped, but is not needed
        header = _HEADER.search(text)
        if header and unpacked.release.startswith(header[1]) and ingest.may_be_of(unpacked, text):
            return text
    return ""


def _map_beside(path: Path) -> bytes:
    """The System.map of an image file, b"" if there is none; names in it are believed only with proof."""
    for candidate in _beside(path, cache.SYSTEM_MAP):
        if candidate.is_file() and candidate.stat().st_size <= _MAP_LIMIT_BYTES:
            try:
                return candidate.read_bytes()
            except OSError:
                continue  # it would have helped, but is not needed
    return b""


def _meant(target: str) -> str:
    """How to name what a file's name that is none may have been meant for."""
    tree, at, _ = target.rpartition("@")
    if at and expanded(tree).is_dir():
        return f"; did you mean src:{target}?"
    if is_commit(target):
        return f"; a commit is named with its tree, as in src:.@{target}"
    first, dots, last = target.partition("..")
    if dots and is_commit(first) and is_commit(last):
        return f"; commits are words of their own, each with its tree: src:.@{first} src:.@{last}"
    if Path(target).suffix in _REPORTS:
        return f"; a report goes into a file by -o {target}"
    if _FLAVOURED.fullmatch(target):
        return f"; did you mean debian:{target.removeprefix('v')}?"
    if debians := _DEBIANS.fullmatch(target):
        return f"; did you mean debian:{debians[1]}?"
    words = target.split()
    if len(words) > 1 and all(_NAMED.fullmatch(word) for word in words):
        return f"; each kernel is a word of its own: {' '.join(words)}"
    if "/" in target:
        return ""
    number = re.search(r"\d+\.\d+(\.\d+)?", target)
    example = f"debian:{number[0]}" if number else "debian:6.12 (kdelta kernels list --available has all)"
    return f"; a release of Debian's is named as in {example}, a file by its path, a tree as in src:./linux"


def _is_patch(path: Path) -> bool:
    with path.open("rb") as file:
        return path.suffix.lower() in _PATCH_NAMES or file.read(16).startswith(_PATCH)


@lru_cache(maxsize=64)
def _recognised(path: Path, _: tuple[int, int, int]) -> Arch:
    """What the image at ``path`` is for; read once, as long as it is the same file.

    Raises:
        UserError: it is none that can be booted. OSError: it cannot be read.
    """
    return image.unpack(str(path), path.read_bytes()).arch


def _arch(spec: KernelSpec) -> Arch:
    path = expanded(spec.target)
    stat = path.stat()
    return _recognised(path.absolute(), (stat.st_ino, stat.st_size, stat.st_mtime_ns))


def check(spec: KernelSpec) -> None:
    """Raises:
    UserError: no such file, a directory, a patch, one that cannot be read or is too large, or no kernel.
    """
    path = expanded(spec.target)
    if path.is_dir():
        raise UserError(f"kernel {spec.text!r}: {path} is a directory; name an image in it, or src:{path} to build it")
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise UserError(f"kernel {spec.text!r}: {path} is not a regular file")
        if _is_patch(path):
            raise UserError(
                f"{path} is a patch: kdelta review {path} --tree ./linux (or --tree debian:6.12) builds without and "
                f"with it, or kdelta compare src:debian:6.12 src:debian:6.12+{path}"
            )
        if path.suffix == ".toml":
            raise UserError(f"{path}: not a kernel image; what an experiment is made of is read by --spec {path}")
        if size > image.LIMIT_BYTES:
            raise UserError(f"{path}: {size >> 20} MiB is too large for a kernel image")
        _arch(spec)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(f"kernel {spec.text!r}: cannot read {path}: {why}{_meant(spec.target)}") from None


def _resolve(spec: KernelSpec, _: Progress) -> Kernel:
    check(spec)
    path = expanded(spec.target).resolve()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"kernel {spec.text!r}: cannot read {path}: {error.strerror}") from None
    config = _config_beside(path, image.unpack(str(path), data))
    stored = ingest.store(str(path), data, config, origin=f"file {path}", system_map=_map_beside(path))
    return kernel_of(spec, stored, Path(spec.target).name)


SOURCE = Source(
    prefix="",
    forms="a path to an image",
    about="a bzImage, a vmlinux, an arm64 Image or a unified kernel image",
    kinds=("image",),
    parse=lambda spec, path: replace(spec, kind="image", target=path),
    write=lambda spec: spec.target,
    resolve=_resolve,
    check=check,
    arch=_arch,
    lies_here=True,
)
