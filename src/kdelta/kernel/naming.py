# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of a kernel's functions, from where they can be had, proven, and kept.

The image's own tables come first, then the System.map of its package, then the /proc/kallsyms of a guest that was
booted for it. What comes out, also that nothing does, is cached by the digest of the image that proves it: reading and
proving takes 2 s of a distribution's kernel, looking it up 0.1 s.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import zstandard
from msgspec import Struct

from kdelta import digests
from kdelta.kernel import cache, symbols
from kdelta.kernel.symbols import NoSymbols, SymbolTable
from kdelta.model import Kernel
from kdelta.paths import cache_dir

FORMAT = 2  # of what is cached: raised when its content or its proof changes
_TEXT_LIMIT_BYTES = 256 << 20


class _Known(Struct, frozen=True, kw_only=True):
    """What was found out of one image by one source."""

    format: int
    table: SymbolTable | None = None
    why: str = ""


def image_path(kernel: Kernel) -> Path | None:
    """The file that holds the kernel's code uncompressed, None where it is not readable here."""
    path = Path(kernel.vmlinux_path or kernel.image_path)
    return path if kernel.image_path and path.is_file() else None


def cached_path(image: Path, kind: str = "") -> Path:
    """Where in the cache that belongs which was read from ``image``: ``kind`` says what it is."""
    return cache_dir() / "symbols" / f"{digests.of_file(image)}{kind}.msgpack"


def _remembered(path: Path, make: Callable[[], SymbolTable | NoSymbols]) -> SymbolTable | NoSymbols:
    stored = cache.read_checked(path)
    if stored is not None:
        try:
            known = msgspec.msgpack.decode(stored, type=_Known)
        except msgspec.MsgspecError:
            known = _Known(format=0)  # of another version
        if known.format == FORMAT:
            return known.table or NoSymbols(known.why)
    made = make()
    table = made if isinstance(made, SymbolTable) else None
    known = _Known(format=FORMAT, table=table, why="" if isinstance(made, SymbolTable) else made.why)
    cache.write_checked(path, msgspec.msgpack.encode(known))
    return made


def _guest_path(image: Path) -> Path:
    return cache_dir() / "symbols" / f"{digests.of_file(image)}.kallsyms.zst"


def can_ask(kernel: Kernel) -> bool:
    """Whether a guest of this kernel might tell names that its image can prove, and was not asked before."""
    path = image_path(kernel)
    if path is None or _packed(kernel) or kernel.config.get("KALLSYMS") == "n":
        return False
    return cache.read_checked(_guest_path(path)) is None


def _packed(kernel: Kernel) -> bool:
    return kernel.vmlinux_path is None and kernel.arch == "x86_64"


def keep_guest_text(kernel: Kernel, text: bytes) -> None:
    """Keep the /proc/kallsyms of a guest that booted ``kernel`` with nokaslr, for ``load`` to read.

    Raises:
        HostError: the cache cannot be written.
        ValueError: the kernel's own image is not readable here.
    """
    path = image_path(kernel)
    if path is None:
        raise ValueError(f"no image of {kernel.label} is readable here")
    cache.write_checked(_guest_path(path), zstandard.ZstdCompressor(level=6).compress(text))


def _texts(kernel: Kernel, image: Path) -> list[tuple[symbols.Source, bytes]]:
    found: list[tuple[symbols.Source, bytes]] = []
    beside = Path(kernel.image_path).with_name(cache.SYSTEM_MAP)
    if beside.is_file() and beside.stat().st_size <= _TEXT_LIMIT_BYTES:
        found.append(("System.map", beside.read_bytes()))
    if (packed := cache.read_checked(_guest_path(image))) is not None:
        found.append(("guest", zstandard.ZstdDecompressor().decompress(packed, max_output_size=_TEXT_LIMIT_BYTES)))
    return found


def _from_text(source: symbols.Source, text: bytes, image: Path) -> SymbolTable | NoSymbols:
    return symbols.from_text(text.decode("latin-1").split("\n"), source, image.read_bytes())


def load(kernel: Kernel) -> SymbolTable | NoSymbols:
    """The proven names of a kernel, from the cache where they are there; else why it has none.

    Raises:
        HostError: the cache cannot be written.
    """
    path = image_path(kernel)
    if path is None:
        return NoSymbols(f"no image of {kernel.label} is readable here")
    if _packed(kernel):
        return NoSymbols("its image could not be unpacked, so no name can be checked against its code")
    found = _remembered(cached_path(path), lambda: symbols.from_image(path.read_bytes()))
    if isinstance(found, SymbolTable):
        return found
    reasons = [found.why]
    for source, text in _texts(kernel, path):
        kind = f".{source}.{hashlib.sha256(text).hexdigest()[:12]}"
        found = _remembered(cached_path(path, kind), partial(_from_text, source, text, path))
        if isinstance(found, SymbolTable):
            return found
        reasons.append(f"{source}: {found.why}")
    return NoSymbols("; ".join(reasons))
