# SPDX-License-Identifier: GPL-2.0-or-later
"""What programs and cases take for granted, and the config of a kernel has off."""

from __future__ import annotations

from collections.abc import Iterator

from kdelta.kernel import kconfig, source
from kdelta.model import Experiment, Remark


def of(experiment: Experiment) -> Iterator[Remark]:
    """Of each kernel what is off, once where it is the same: the C library ends by SIGABRT where there is no futex."""
    found: dict[tuple[str, ...], list[str]] = {}
    for kernel in experiment.kernels:
        if off := kconfig.expected_off(source.options(kernel)):
            found.setdefault(off, []).append(kernel.label)
    for off, labels in found.items():
        names = ", ".join(f"CONFIG_{name}" for name in off)
        told = f"{', '.join(labels)}: off in {'its config' if len(labels) == 1 else 'their configs'} are {names}"
        yield Remark("config", f"{told}; what needs them fails there, or does less, and need not say why")
