# SPDX-License-Identifier: GPL-2.0-or-later
"""Runtime constants: where code has what a variable holds once the kernel has started, without its address. Pure.

The instruction has a placeholder (0x0123456789abcdef), and the kernel's start writes the value over it: the hash of
dentries, slab caches of files and names. Tables say where: include/asm-generic/runtime-const.h (since v6.11;
asm/runtime-const.h of x86 and arm64, whose entries are relative to their own place).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from kdelta.attribution.disassembly import Image
from kdelta.kernel.spelling import fold

_WORD = re.compile(r"\b__start_runtime_\w+")
_BOUND = re.compile(r"__(start|stop)_runtime_(?:ptr|shift|mask)_(\w+)")  # of RUNTIME_CONST in vmlinux.lds.h


def variable(bound: str) -> str:
    """The variable whose places the table has that begins or ends at a symbol, "" where none does."""
    found = _BOUND.fullmatch(bound)
    return found[2] if found else ""


def initialised(texts: Iterable[str]) -> set[str]:
    """The variables whose tables instructions begin to go through."""
    starts = (text for text in texts if not text.startswith("cmp"))  # one may end where another begins
    return {variable(word) for text in starts for word in _WORD.findall(text)} - {""}


def users(image: Image) -> dict[str, frozenset[str]]:
    """For each such variable the functions into which the kernel's start writes its value."""
    addresses, names, _ = image.symbols()
    bounds = {name: at for at, name in zip(addresses, names, strict=True) if variable(name)}
    found: dict[str, set[str]] = {}
    for name, start in bounds.items():
        stop = bounds.get(name.replace("__start_", "__stop_", 1), 0)
        content = image.content(start, stop - start) if start < stop else b""
        for index, distance in enumerate(np.frombuffer(content, "<i4", len(content) // 4).tolist()):
            if (function := image.function_at(start + 4 * index + distance)) is not None:
                found.setdefault(variable(name), set()).add(fold(function.name.partition("#")[0]))
    return {name: frozenset(functions) for name, functions in found.items()}
