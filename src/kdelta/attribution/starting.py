# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that the kernel's start calls, though it is not alone in that. Pure.

What such a function sets there (the objects of a slab, the pages of a batch) changes paths that never call it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kdelta.attribution.disassembly import Image

_START = ".init."  # include/linux/init.h
_DEEPEST = 4  # calls from a function of the start
_MOST = 100  # functions that are asked for their callers: what more may call says little


def calls(image: Image, functions: Iterable[str], callers: Callable[[str], Iterable[str]]) -> bool:
    """Whether code that is thrown away once the kernel has started calls one of ``functions``, or calls who does.

    ``callers`` are those of ``image``; calls by pointer are not seen.
    """
    seen, ring = set[str](), set(functions)
    for _ in range(_DEEPEST + 1):
        if any(_starts(image, name) for name in ring):
            return True
        seen |= ring
        if len(seen) > _MOST:
            return False
        ring = {caller for name in ring for caller in callers(name)} - seen
    return False


def _starts(image: Image, function: str) -> bool:
    parts = image.sources.get(function, ())
    return bool(parts) and all(part.section.startswith(_START) for part in parts)
