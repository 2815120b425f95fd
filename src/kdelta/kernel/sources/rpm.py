# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel by the path of its RPM package: ``rpm:FILE``."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel import ingest, rpm
from kdelta.kernel.sources._source import Source, kernel_of, short
from kdelta.model import Kernel
from kdelta.model.progress import Progress
from kdelta.paths import expanded
from kdelta.spec.kernels import ARCHES, KernelSpec


def _resolve(spec: KernelSpec, progress: Progress) -> Kernel:
    path = expanded(spec.target)
    progress.step(f"unpacking {path.name}")
    files = rpm.read_kernel(path)
    if not files.image:
        raise UserError(
            f"{path}: the package {files.package} holds no kernel image (want lib/modules/*/vmlinuz or "
            "boot/vmlinuz-*): name kernel-core of Fedora or RHEL, kernel-default of openSUSE"
        )
    origin = f"package {files.package} {files.version}"
    stored = ingest.store(
        str(path), files.image, files.config,
        origin=origin, package=files.package, version=files.version, system_map=files.system_map,
    )  # fmt: skip
    return kernel_of(spec, stored, short(stored.entry.release))


def _check(spec: KernelSpec) -> None:
    rpm.fields(expanded(spec.target))


def _arch(spec: KernelSpec) -> str:
    return ARCHES.get(rpm.fields(expanded(spec.target))[2], "")


SOURCE = Source(
    prefix="rpm",
    forms="rpm:FILE",
    about="an RPM package on disk, as of Fedora, RHEL or openSUSE",
    kinds=("rpm",),
    parse=lambda spec, path: replace(spec, kind="rpm", target=path),
    write=lambda spec: f"rpm:{spec.target}",
    resolve=_resolve,
    check=_check,
    arch=_arch,
    lies_here=True,
)
