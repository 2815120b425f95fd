# SPDX-License-Identifier: GPL-2.0-or-later
"""compare --layouts N: each kernel linked N times, its boots spread over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdelta.errors import UserError
from kdelta.spec.kernels import BUILT_KINDS

if TYPE_CHECKING:
    from kdelta.model import Kernel, Progress
    from kdelta.spec.kernels import KernelSpec

HELP = "Kernels from source: link each N times, text and data shifted, and spread the boots over them."


def refuse(count: int | None, specs: Sequence[KernelSpec], *, each: bool, fleet: bool, lab: bool) -> None:
    """Raises:
    UserError: a kernel that is an image already, or boots that are not of this machine's guests.
    """
    if count is None:
        return
    asked = f"--layouts {count}"
    for spec in specs:
        if spec.kind not in BUILT_KINDS:
            source = f"src:{spec.text.partition('/')[0]}" if spec.text.startswith("debian:") else "src:TREE"
            raise UserError(f"{asked} links kernels anew, and {spec.text} is an image; write {source}")
    for option, given in (("--each", each), ("--fleet", fleet), ("--on", lab)):
        if given:
            raise UserError(f"{asked} is not for {option}: leave one of them out")


def linked(
    kernels: tuple[Kernel, ...], specs: Sequence[KernelSpec], count: int | None, seed: int | None, progress: Progress
) -> tuple[Kernel, ...]:
    """The kernels with their layouts, which ``seed`` tells; as they are without a ``count``."""
    if count is None:
        return kernels
    from kdelta.kernel import layouts
    from kdelta.kernel.source import resolve_layouts

    numbers = layouts.numbers(count, seed or 0)
    return tuple(resolve_layouts(spec, kernel, numbers, progress) for spec, kernel in zip(specs, kernels, strict=True))
