# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels as named by a user (spec.KernelSpec) to kernels as used (model.Kernel)."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.errors import UserError
from kdelta.kernel import cache, deb, debian, image, ingest
from kdelta.kernel.debver import DebianKernel
from kdelta.kernel.progress import Progress, Quiet
from kdelta.kernel.running import resolve_running
from kdelta.model import Kernel
from kdelta.spec.kernels import KernelSpec

_HEADER = re.compile(r"^# Linux/\S+ (\S+) Kernel Configuration", re.MULTILINE)
_DISTRIBUTION = re.compile(r"(\+deb[\d.]+(\+\d+)?)?-(amd64|arm64)$|\+deb[\d.]+(\+\d+)?(?=-)|-(amd64|arm64)(?=-\d+k$)")


def short(release: str) -> str:
    """A readable label from a release: ``6.12.117+deb13-cloud-amd64`` -> ``6.12.117-cloud``."""
    return _DISTRIBUTION.sub("", _DISTRIBUTION.sub("", release)) or release


def _debian_label(found: DebianKernel) -> str:
    """The upstream version, since 6.1.0-56 says less than 6.1.192."""
    return found.upstream + (f"-{found.flavour}" if found.flavour else "")


def _kernel(spec: KernelSpec, stored: cache.Stored, label: str) -> Kernel:
    entry = stored.entry
    vmlinux = stored.image if entry.form == "vmlinux" else stored.vmlinux
    if "arch=" in spec.text and spec.arch != entry.arch:
        raise UserError(f"kernel {spec.text!r}: the image is for {entry.arch}, not {spec.arch}")
    cache.touch(stored, time.time())
    return Kernel(
        label=spec.label or label,
        spec=spec.text,
        release=entry.release,
        arch=entry.arch,
        image_path=str(stored.image),
        image_sha256=entry.sha256,
        vmlinux_path=str(vmlinux) if vmlinux else None,
        build_id=entry.build_id,
        cmdline=spec.cmdline,
        config=dict(entry.config),
        origin=entry.origin,
    )


def _config_beside(path: Path, release: str) -> str:
    """The .config that belongs to an image file: by name beside it, or its build tree's; "" if none is its own."""
    candidates = [path.with_name("config" + path.name.removeprefix(stem)) for stem in ("vmlinuz", "vmlinux", "bzImage")]
    candidates += [folder / ".config" for folder in (path.parent, *path.parents[2:4])]
    for candidate in candidates:
        if candidate == path or not candidate.is_file() or candidate.stat().st_size > 4 << 20:
            continue
        try:
            text = candidate.read_text(errors="replace")
        except OSError:
            continue
        header = _HEADER.search(text)
        if header and release.startswith(header[1]):
            return text
    return ""


def _read(path: Path, text: str) -> bytes:
    if path.is_dir():
        raise UserError(f"kernel {text!r}: {path} is a folder; name an image in it, or src:{path} to build it")
    try:
        if path.stat().st_size > image.LIMIT_BYTES:
            raise UserError(f"{path}: {path.stat().st_size >> 20} MiB are no kernel image")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"kernel {text!r}: cannot read {path}: {error.strerror}") from None


def _image(spec: KernelSpec) -> Kernel:
    path = Path(spec.target).expanduser().resolve()
    data = _read(path, spec.text)
    config = _config_beside(path, image.unpack(str(path), data).release)
    stored = ingest.store(str(path), data, config, origin=f"file {path}")
    return _kernel(spec, stored, short(stored.entry.release))


def _deb(spec: KernelSpec) -> Kernel:
    path = Path(spec.target).expanduser()
    files = deb.read_kernel(path)
    if not files.image:
        raise UserError(
            f"{path}: the package {files.package} holds no kernel image (want boot/vmlinuz-* or linux-binary-*)"
        )
    origin = f"package {files.package} {files.version}"
    stored = ingest.store(
        str(path), files.image, files.config, origin=origin, package=files.package, version=files.version
    )
    return _kernel(spec, stored, short(stored.entry.release))


def _debian(spec: KernelSpec, found: DebianKernel, progress: Progress) -> Kernel:
    return _kernel(spec, debian.fetch(found, progress), _debian_label(found))


def resolve(spec: KernelSpec, progress: Progress | None = None) -> Kernel:
    """The kernel that ``spec`` names, fetched or built where it must be.

    Raises:
        UserError: there is no such kernel, it is none, or an option does not apply to it.
        HostError: fetching, building or storing it failed.
    """
    said = progress or Quiet()
    if spec.kind in ("src", "src-debian"):
        from kdelta.kernel.source import resolve_source

        return resolve_source(spec, said)
    if spec.config:
        raise UserError(
            f"kernel {spec.text!r}: config= needs a kernel that is built here, as src:TREE or src:debian:VERSION"
        )
    if spec.kind == "running":
        return resolve_running(spec)
    if spec.kind == "deb":
        return _deb(spec)
    if spec.kind == "debian":
        return _debian(spec, debian.find(spec.target, spec.flavour, spec.arch, said), said)
    if spec.kind == "range":
        raise UserError(f"kernel {spec.text!r}: a range is several kernels; name one of them, or use kdelta sweep")
    return _image(spec)


def expand(spec: KernelSpec, progress: Progress) -> list[KernelSpec]:
    """``spec`` itself, or the single kernels of a range, oldest first; nothing is fetched yet.

    Raises:
        UserError: the range holds no kernel, or an option does not apply to it.
        HostError: the archive's index cannot be had.
    """
    if spec.kind != "range":
        return [spec]
    if spec.config:
        raise UserError(f"kernel {spec.text!r}: config= needs a kernel that is built here, as src:debian:VERSION")
    found = debian.find_range(spec.target, spec.last, spec.flavour, spec.arch, progress)
    return [
        msgspec.structs.replace(
            spec,
            kind="debian",
            target=one.package_version,
            last="",
            label=f"{spec.label}-{_debian_label(one)}" if spec.label else "",
        )
        for one in found
    ]


def _differing(kernel: Kernel, others: Sequence[Kernel]) -> str:
    """The words of a command line that not all kernels of the same label have."""
    words = [set(other.cmdline.split()) for other in others]
    return " ".join(word for word in kernel.cmdline.split() if not all(word in each for each in words))


def unique(kernels: Sequence[Kernel], chosen: frozenset[int] = frozenset()) -> tuple[Kernel, ...]:
    """Kernels with labels made unique: by the words of the command line that differ, by architecture, else by ``#2``.

    The labels of the kernels at the indexes ``chosen`` were given by the user and stay. Pure.
    """
    taken = {kernels[index].label for index in chosen}
    result: list[Kernel] = []
    for index, kernel in enumerate(kernels):
        label = kernel.label
        if index not in chosen:
            alike = [other for other in kernels if other.label == label]
            if len({other.arch for other in alike}) > 1:
                label += f"-{kernel.arch}"
            if words := _differing(kernel, alike):
                label += f" {words}"
            base, number = label, 1
            while label in taken:
                number += 1
                label = f"{base}#{number}"
            taken.add(label)
        result.append(msgspec.structs.replace(kernel, label=label))
    return tuple(result)


def resolve_all(specs: Sequence[KernelSpec], progress: Progress | None = None) -> tuple[Kernel, ...]:
    """All kernels of ``specs`` in order, ranges expanded to the newest of each series, labels unique.

    Raises:
        UserError: see ``resolve``; also a label given twice.
        HostError: see ``resolve``.
    """
    said = progress or Quiet()
    labels_differ(specs)
    singles = [single for spec in specs for single in expand(spec, said)]
    kernels = []
    for done, single in enumerate(singles):
        said.step(f"kernel {single.label or single.target}", done, len(singles))
        kernels.append(resolve(single, said))
    return unique(kernels, frozenset(i for i, single in enumerate(singles) if single.label and single in specs))


def labels_differ(specs: Sequence[KernelSpec]) -> None:
    """Raises:
    UserError: a label is given to several kernels.
    """
    named = [spec.label for spec in specs if spec.label]
    for label in named:
        if named.count(label) > 1:
            raise UserError(f"the label {label}= is given to {named.count(label)} kernels; labels must differ")
