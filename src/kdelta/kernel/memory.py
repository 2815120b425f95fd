# SPDX-License-Identifier: GPL-2.0-or-later
"""An uncompressed kernel as it lies in memory: which bytes at which addresses, where its code is, where it begins.

Pure: bytes in, value out. Formats: ELF (vmlinux) and the arm64 Image (Documentation/arch/arm64/booting.rst).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from kdelta.kernel import elf
from kdelta.kernel.elf import Segment
from kdelta.model import Arch

# KIMAGE_VADDR of arm64 is the middle of the kernel's half plus the module area: 128 MiB, 256 MiB (5.x), 2 GiB (6.5 on).
_ARM64_BASES = tuple(
    (1 << 64) - (1 << (bits - 1)) + area for bits in (48, 47, 42, 39, 36) for area in (2 << 30, 256 << 20, 128 << 20)
)
_ARM64_BRANCH, _ARM64_BRANCH_MASK = 0x14000000, 0xFC000000
_KERNEL_HALF, _BEYOND = 1 << 63, 1 << 64
Span = tuple[int, int]  # half-open, virtual addresses


class ImageError(ValueError):
    """The bytes are no uncompressed kernel that can be read; the message says why."""


@dataclass(frozen=True)
class Image:
    """Bytes of a kernel and where they are loaded.

    ``code`` are the stretches that hold instructions, () where the file does not say; ``entry`` is the address of the
    first instruction executed, None where that is not known; ``end`` is where the kernel's own memory ends, with what
    the file does not hold (bss).
    """

    data: bytes
    segments: tuple[Segment, ...]
    arch: Arch = "x86_64"
    code: tuple[Span, ...] = ()
    entry: int | None = None
    end: int = 1 << 64

    def address_of(self, offset: int) -> int | None:
        """Virtual address of a file offset; None where it is not loaded, or would be beyond 64 bits."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.size:
                found = segment.address + offset - segment.offset
                return found if found < _BEYOND else None
        return None

    def holds(self, address: int) -> bool:
        """Whether ``address`` is loaded from this file."""
        return any(segment.address <= address < segment.address + segment.size for segment in self.segments)

    def pieces(self, spans: tuple[Span, ...]) -> list[tuple[int, np.ndarray[tuple[int], np.dtype[np.uint8]]]]:
        """(address, bytes) of what the file holds of ``spans``."""
        found = []
        for low, high in spans:
            for segment in self.segments:
                start, end = max(low, segment.address), min(high, segment.address + segment.size)
                if start < end:
                    at = segment.offset + start - segment.address
                    found.append((start, np.frombuffer(self.data, np.uint8, end - start, at)))
        return found


def _entry(file: elf.Elf) -> int | None:
    """The entry point as a virtual address: x86-64 states the physical one. None where it lies in no kernel's half."""
    found = file.entry
    for segment in file.segments:
        if segment.physical <= file.entry < segment.physical + segment.memory and segment.address >= _KERNEL_HALF:
            found = segment.address + file.entry - segment.physical
            break
    return found if _KERNEL_HALF <= found < _BEYOND else None


def _from_elf(data: bytes) -> Image:
    try:
        file = elf.parse(data)
    except elf.ElfError as error:
        raise ImageError(f"unreadable vmlinux: {error}") from None
    if file.machine not in ("x86_64", "arm64"):
        raise ImageError(f"a vmlinux for {file.machine}")
    sections = [s for s in file.sections if s.executable and s.address >= _KERNEL_HALF and s.size]
    code = tuple((s.address, s.address + s.size) for s in sections)
    ends = [s.address + s.memory for s in file.segments if s.address >= _KERNEL_HALF]
    arch: Arch = "arm64" if file.machine == "arm64" else "x86_64"
    return Image(data, file.segments, arch, code, _entry(file), max(ends, default=1 << 64))


def raw_arm64(data: bytes) -> Image:
    """An uncompressed arm64 Image as linked: its base is the candidate into which most of its own pointers lead."""
    words = np.frombuffer(data, "<u8", len(data) // 8)
    counts = [int(np.count_nonzero((words >= base) & (words < base + len(data)))) for base in _ARM64_BASES]
    base = _ARM64_BASES[int(np.argmax(counts))]
    first = struct.unpack_from("<2I", data)
    (size,) = struct.unpack_from("<Q", data, 16)
    # The first word may be "MZ" for EFI, which is an instruction without effect.
    branch = next((i for i, word in enumerate(first) if word & _ARM64_BRANCH_MASK == _ARM64_BRANCH), None)
    entry = None if branch is None else base + 4 * (branch + (first[branch] & 0x3FFFFFF))
    return Image(data, (Segment(base, 0, len(data)),), "arm64", (), entry, base + max(size, len(data)))


def open_image(data: bytes) -> Image:
    """An Image from the bytes of a vmlinux ELF file or of an uncompressed arm64 Image.

    Raises:
        ImageError: neither.
    """
    if data[:4] == elf.MAGIC:
        return _from_elf(data)
    if data[56:60] == b"ARM\x64" and len(data) >= 64:
        return raw_arm64(data)
    raise ImageError("neither a vmlinux ELF file nor an arm64 Image")
