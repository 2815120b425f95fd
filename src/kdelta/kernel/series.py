# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels along a series of patches."""

from __future__ import annotations

from kdelta.kernel.partial import labelled
from kdelta.kernel.resolve import check
from kdelta.kernel.source import resolve_each
from kdelta.model import Gap, Kernel, Progress
from kdelta.spec.kernels import KernelSpec


def along(spec: KernelSpec, progress: Progress) -> tuple[Kernel | Gap, ...]:
    """``spec`` without its patches, then with one more each, with labels of their own; a Gap where that does not build.

    Raises:
        UserError, HostError: see ``kernel.resolve.resolve``.
    """
    check([spec])
    return labelled(resolve_each(spec, progress), frozenset())
