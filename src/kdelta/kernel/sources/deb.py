# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel by the path of its Debian package: ``deb:FILE``."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel import deb, ingest
from kdelta.kernel.sources._source import Source, kernel_of, short
from kdelta.model import Kernel
from kdelta.model.progress import Progress
from kdelta.paths import expanded
from kdelta.spec.kernels import ARCHES, KernelSpec


def _resolve(spec: KernelSpec, _: Progress) -> Kernel:
    path = expanded(spec.target)
    files = deb.read_kernel(path)
    if not files.image:
        image = files.package.removesuffix("-dbg")
        holders = (image,) if image != files.package else deb.depends_on_kernels(path)
        hint = f"; the image is in the package {' or '.join(holders)}" if holders else ""
        raise UserError(
            f"{path}: the package {files.package} holds no kernel image (want boot/vmlinuz-* or linux-binary-*){hint}"
        )
    origin = f"package {files.package} {files.version}"
    stored = ingest.store(
        str(path), files.image, files.config, origin=origin, package=files.package, version=files.version
    )
    return kernel_of(spec, stored, short(stored.entry.release))


def _check(spec: KernelSpec) -> None:
    deb.fields(expanded(spec.target))


def _arch(spec: KernelSpec) -> str:
    return ARCHES.get(deb.fields(expanded(spec.target)).get("Architecture", ""), "")


SOURCE = Source(
    prefix="deb",
    forms="deb:FILE",
    about="a Debian package on disk",
    kinds=("deb",),
    parse=lambda spec, path: replace(spec, kind="deb", target=path),
    write=lambda spec: f"deb:{spec.target}",
    resolve=_resolve,
    check=_check,
    arch=_arch,
    lies_here=True,
)
