# SPDX-License-Identifier: GPL-2.0-or-later
"""One fuzzing target, with no more of kdelta than it needs: to instrument all takes longer than some round lasts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from kdelta.errors import KdeltaError
from kdelta.kernel import btf, elf, kallsyms, memory

GROUPS = ("fuzz_guest", "fuzz_mails", "fuzz_kernels", "fuzz_spec", "fuzz_files", "fuzz_pages")  # the slow ones last
DECLARED = (KdeltaError, elf.ElfError, memory.ImageError, btf.BtfError, kallsyms.KallsymsError)
Target = Callable[[bytes], object]


def group_of(name: str) -> ModuleType:
    """The module that has the target.

    Raises:
        StopIteration: none has.
    """
    return next(module for module in map(import_module, GROUPS) if name in module.TARGETS)


def run(target: Target, data: bytes) -> None:
    """One input; what the target declares is no failure."""
    with contextlib.suppress(*DECLARED):
        target(data)
