# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a resolved kernel, held against the sums it was resolved with: a name alone proves no content."""

from __future__ import annotations

from pathlib import Path

from kdelta import digests
from kdelta.errors import KdeltaError, UserError
from kdelta.kernel import cache
from kdelta.kernel.layouts import laid_out
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel, source_of
from kdelta.model import Kernel, Progress


def _sums(kernel: Kernel) -> list[tuple[Path, str]]:
    """Each file of ``kernel`` and the sum it has to have; "" where an older kdelta stored none and nobody knows."""
    return [found for block in range(len(kernel.layouts) + 1) for found in _of_one(laid_out(kernel, block))]


def _of_one(kernel: Kernel) -> list[tuple[Path, str]]:
    image, vmlinux = kernel.image_path, kernel.vmlinux_path
    found = [(Path(image), kernel.image_sha256)] if image else []
    if vmlinux and vmlinux != image:
        found.append((Path(vmlinux), kernel.vmlinux_sha256 or cache.vmlinux_sum(kernel.image_sha256, Path(vmlinux))))
    return found


def fault(kernel: Kernel) -> str:
    """What is wrong with a file of ``kernel``, which it names; "" where all are what they were resolved as."""
    for path, expected in _sums(kernel):
        try:
            found = digests.of_file(path)
        except OSError as error:
            return f"{path} cannot be read ({error.strerror})"
        if expected and found != expected:
            return f"{path} has changed (its sha256 is {found[:12]}, not {expected[:12]})"
    return ""


def require(kernel: Kernel) -> None:
    """Refuse a kernel whose files are not those that it was resolved as.

    Raises:
        UserError: one of them was replaced, damaged or removed.
    """
    if why := fault(kernel):
        raise UserError(f"kernel {kernel.label}: {why}; name the kernel again")


def mend(kernel: Kernel, progress: Progress) -> str:
    """Get the files of ``kernel`` again by its name, where nothing has to be built; why that gave none, or "".

    The cache keeps images by content, so what comes back lies where it was.
    """
    try:
        spec = parse_kernel(kernel.spec)
        if source_of(spec).builds:
            return f"build it again with: kdelta kernels fetch {kernel.spec!r}"
        progress.step(f"getting {kernel.label} again")
        found = resolve(spec, progress)
    except KdeltaError as error:
        return str(error)
    if found.image_sha256 != kernel.image_sha256:
        return f"{kernel.spec} is another image today (sha256 {found.image_sha256[:12]})"
    return fault(kernel)
