# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel says of its own build: the compiler in its banner (``linux_banner``, init/version.c)."""

from __future__ import annotations

import re
from pathlib import Path

from kdelta.model import Kernel

_LIMIT_BYTES = 512 << 20
_BANNER = re.compile(rb"Linux version [^\s\0]{1,100} \([^\n\0]{1,100}?\) \(([^\n\0]{1,200}?), (?:GNU |LLD|ld)")
_COMPILER = re.compile(r"(gcc|clang)\b.*?(\d+\.\d+(?:\.\d+)?)(?!.*\d+\.\d+)")


def compiler_in(image: bytes) -> str:
    """``gcc 14.2.0``; the banner's own words where they are others, "" where there is no banner. Pure."""
    match = _BANNER.search(image)
    if match is None:
        return ""
    text = match[1].decode("ascii", "replace")
    found = _COMPILER.search(text)
    return f"{found[1]} {found[2]}" if found else text


def compiler(kernel: Kernel) -> str:
    """The compiler that built ``kernel``; "" where its image is not at hand uncompressed."""
    for path in (kernel.vmlinux_path, kernel.image_path):
        if path and Path(path).is_file() and Path(path).stat().st_size <= _LIMIT_BYTES:
            found = compiler_in(Path(path).read_bytes())
            if found:
                return found
    return ""
