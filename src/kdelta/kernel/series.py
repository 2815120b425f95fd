# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels along a series of patches."""

from __future__ import annotations

from kdelta.kernel.resolve import check, unique
from kdelta.kernel.source import resolve_each
from kdelta.model import Kernel, Progress
from kdelta.spec.kernels import KernelSpec


def along(spec: KernelSpec, progress: Progress) -> tuple[Kernel, ...]:
    """``spec`` without its patches, then with one more each, with labels of their own.

    Raises:
        UserError, HostError: see ``kernel.resolve.resolve``.
    """
    check([spec])
    return unique(resolve_each(spec, progress))
