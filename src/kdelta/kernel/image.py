# SPDX-License-Identifier: GPL-2.0-or-later
"""Recognise a kernel image and unpack it: what QEMU boots, and the ELF file or Image that holds the symbols.

Pure: bytes in, value out. Formats: x86 bzImage (Documentation/arch/x86/boot.rst), arm64 Image
(Documentation/arch/arm64/booting.rst), EFI zboot (drivers/firmware/efi/libstub/zboot-header.S), vmlinux. A unified
kernel image holds one of these.
"""

from __future__ import annotations

import bz2
import lzma
import re
import struct
import zlib
from collections.abc import Callable
from typing import Literal

import lz4.block
import zstandard
from msgspec import Struct

from kdelta.errors import UserError
from kdelta.kernel import elf
from kdelta.model import Arch

Form = Literal["bzImage", "vmlinux", "Image", "zboot"]
LIMIT_BYTES = 512 << 20
_MOST_LAYERS = 3
_BANNER = re.compile(rb"Linux version ([0-9]+\.[0-9]+[^ \0]{0,80}) \(")
_IKCONFIG = b"IKCFG_ST"
_LZ4_BLOCK_BYTES = 8 << 20
# Zstandard's window at the kernel's level 22 is 128 MiB; the library refuses more than that by default.
_ZSTD_WINDOW_BYTES = 1 << 31
_FOREIGN = {
    "3": "32-bit x86", "8": "MIPS", "20": "PowerPC", "21": "64-bit PowerPC", "22": "S/390", "40": "32-bit ARM",
    "43": "64-bit SPARC", "243": "RISC-V", "258": "LoongArch",
}  # by the number of elf(5), e_machine  # fmt: skip


class Unpacked(Struct, frozen=True, kw_only=True):
    """``boot`` is what QEMU gets; ``plain`` is uncompressed (vmlinux, arm64 Image), None where that cannot be had."""

    arch: Arch
    form: Form
    release: str
    boot: bytes
    plain: bytes | None
    why_packed: str = ""  # why ``plain`` is None

    @property
    def config(self) -> str | None:
        """The config that the image carries for itself (CONFIG_IKCONFIG), or None."""
        return embedded_config(self.plain) if self.plain else None


class _Packed(Exception):
    """A payload that cannot be unpacked; the message says why."""


def _within(data: bytes, done: bool) -> bytes:
    if len(data) >= LIMIT_BYTES:
        raise _Packed(f"it unpacks to more than {LIMIT_BYTES >> 20} MiB")
    if not done:
        raise _Packed("its payload is truncated")
    return data


def _gzip(data: bytes) -> bytes:
    unpack = zlib.decompressobj(31)
    return _within(unpack.decompress(data, LIMIT_BYTES), unpack.eof)


def _lzma(data: bytes) -> bytes:
    unpack = lzma.LZMADecompressor(memlimit=1 << 30)
    plain = unpack.decompress(data, LIMIT_BYTES)
    # .lzma as the kernel writes it has no end mark: the length is in its header.
    alone = data[:1] == b"\x5d" and len(plain) > 0
    return _within(plain, unpack.eof or alone)


def _bzip2(data: bytes) -> bytes:
    unpack = bz2.BZ2Decompressor()
    return _within(unpack.decompress(data, LIMIT_BYTES), unpack.eof)


def _zstd(data: bytes) -> bytes:
    with zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES).stream_reader(data) as reader:
        return _within(reader.read(LIMIT_BYTES), True)


def _lz4(data: bytes) -> bytes:
    """The legacy frame: blocks of up to 8 MiB, each after its packed size; the kernel appends the whole size."""
    at, plain = 4, bytearray()
    while at + 4 < len(data) and len(plain) < LIMIT_BYTES:
        (size,) = struct.unpack_from("<I", data, at)
        if at + 4 + size > len(data):
            raise _Packed("its payload is truncated")
        plain += lz4.block.decompress(data[at + 4 : at + 4 + size], uncompressed_size=_LZ4_BLOCK_BYTES)
        at += 4 + size
    return _within(bytes(plain), True)


def _lzo(_: bytes) -> bytes:
    raise _Packed("it is compressed with LZO, which kdelta does not support")


_PACKERS: tuple[tuple[bytes, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b\x08", _gzip),
    (b"\xfd7zXZ\0", _lzma),
    (b"\x5d\0\0", _lzma),
    (b"BZh", _bzip2),
    (b"\x28\xb5\x2f\xfd", _zstd),
    (b"\x02\x21\x4c\x18", _lz4),
    (b"\x89LZO", _lzo),
)


def _unpack(payload: bytes) -> bytes:
    for magic, unpack in _PACKERS:
        if payload.startswith(magic):
            try:
                return unpack(payload)
            except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
                raise _Packed(f"its payload is damaged ({error})") from None
            except (zstandard.ZstdError, lz4.block.LZ4BlockError) as error:
                raise _Packed(f"its payload is damaged ({error})") from None
    if payload.startswith(elf.MAGIC):
        return payload
    raise _Packed(f"its payload starts with {payload[:4].hex() or 'nothing'}, which is not a known compression format")


def embedded_config(plain: bytes) -> str | None:
    """The text of CONFIG_IKCONFIG in an uncompressed kernel, or None."""
    at = plain.find(_IKCONFIG + b"\x1f\x8b\x08")
    if at < 0:
        return None
    try:
        return zlib.decompressobj(31).decompress(plain[at + len(_IKCONFIG) :], 8 << 20).decode("utf-8", "replace")
    except zlib.error:
        return None


def _banner(plain: bytes) -> str:
    found = _BANNER.search(plain)
    return found.group(1).decode("ascii", "replace") if found else ""


def _sized(payload: bytes) -> bytes:
    """Unpack a payload of the kernel's own loaders, whose last four bytes are the unpacked size."""
    plain = _unpack(payload)
    (size,) = struct.unpack_from("<I", payload, len(payload) - 4)
    if plain is not payload and len(plain) != size:
        raise _Packed(f"its payload is damaged ({len(plain)} bytes unpacked, {size} promised)")
    return plain


def _bzimage(name: str, data: bytes) -> Unpacked:
    setup = (data[0x1F1] or 4) + 1
    version, string_at = struct.unpack_from("<H6xH", data, 0x206)
    text = data[string_at + 0x200 : string_at + 0x300].split(b"\0")[0].decode("ascii", "replace")
    release = text.split(" ")[0] if string_at else ""
    (code,) = struct.unpack_from("<I", data, 0x1F4)
    if setup * 512 + code * 16 > len(data):
        raise UserError(
            f"{name}: truncated: its header promises {setup * 512 + code * 16} bytes, there are {len(data)}"
        )
    if version < 0x208:
        return Unpacked(
            arch="x86_64", form="bzImage", release=release, boot=data, plain=None, why_packed="boot protocol too old"
        )
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = setup * 512 + offset
    if not length or start + length > len(data):
        raise UserError(f"{name}: truncated: its payload ends at {start + length}, the file at {len(data)}")
    try:
        plain = _sized(data[start : start + length])
        file = _elf(name, plain)
    except _Packed as error:
        if "damaged" in str(error) or "truncated" in str(error):
            raise UserError(f"{name}: {error}") from None
        return Unpacked(arch="x86_64", form="bzImage", release=release, boot=data, plain=None, why_packed=str(error))
    except elf.ElfError as error:
        raise UserError(f"{name}: its payload is not a usable kernel: {error}") from None
    if file.machine != "x86_64":
        raise UserError(_foreign(name, file.machine))
    return Unpacked(arch="x86_64", form="bzImage", release=release or _banner(plain), boot=data, plain=plain)


def _foreign(name: str, machine: str) -> str:
    number = machine.removeprefix("machine ")
    return f"{name}: a kernel for {_FOREIGN.get(number, machine)}; kdelta boots x86_64 and arm64"


def _elf(name: str, data: bytes) -> elf.Elf:
    """Parse the ELF file that may be a kernel; one of 32 bits or of the other byte order is told by its machine.

    Raises:
        UserError: a kernel for other machines. ElfError: no usable file.
    """
    unlike = data.startswith(elf.MAGIC) and len(data) >= 20 and data[4:6] != b"\2\1"
    if unlike and _banner(data):
        (machine,) = struct.unpack_from(">H" if data[5] == _BIG_ENDIAN else "<H", data, 18)
        raise UserError(_foreign(name, f"machine {machine}"))
    return elf.parse(data)


def _pe_sections(data: bytes) -> list[tuple[str, int, int, int]]:
    """(name, offset, size in the file, size in memory) of the PE sections of an EFI image, [] where it is none."""
    if data[:2] != b"MZ" or len(data) < 0x40:
        return []
    (at,) = struct.unpack_from("<I", data, 0x3C)
    if at + 24 > len(data) or data[at : at + 4] != b"PE\0\0":
        return []
    (count,) = struct.unpack_from("<H", data, at + 6)
    (optional,) = struct.unpack_from("<H", data, at + 20)
    table = at + 24 + optional
    if count > 96 or table + 40 * count > len(data):
        return []
    rows = (struct.unpack_from("<8sI4xII", data, table + 40 * index) for index in range(count))
    return [(name.rstrip(b"\0").decode("ascii", "replace"), start, raw, memory) for name, memory, raw, start in rows]


def _pe_end(data: bytes) -> int:
    """Where the PE sections end that an image with an EFI stub lists, 0 without one."""
    return max((start + raw for _, start, raw, _ in _pe_sections(data)), default=0)


def _unified(name: str, data: bytes) -> bytes:
    """The kernel in a unified kernel image: section .linux (uapi-group.org, UKI), b"" where there is none.

    Its command line, its initramfs and the rest are not what kdelta boots with.
    """
    for section, start, raw, memory in _pe_sections(data):
        if section == ".linux":
            end = start + (min(raw, memory) or raw)  # padded in the file
            if end > len(data):
                raise UserError(f"{name}: truncated: its kernel ends at {end}, the file at {len(data)}")
            return data[start:end]
    return b""


def _arm64(name: str, data: bytes, form: Form) -> Unpacked:
    end = _pe_end(data)
    release = _banner(data)
    if end > len(data):
        raise UserError(f"{name}: truncated: its header promises {end} bytes, there are {len(data)}")
    if not release:
        raise UserError(f"{name}: an arm64 Image header without a kernel behind it (no version banner)")
    return Unpacked(arch="arm64", form=form, release=release, boot=data, plain=data)


def _zboot(name: str, data: bytes) -> Unpacked:
    offset, size = struct.unpack_from("<II", data, 8)
    if offset + size > len(data):
        raise UserError(f"{name}: truncated: its payload ends at {offset + size}, the file at {len(data)}")
    try:
        plain = _sized(data[offset : offset + size])
    except _Packed as error:
        raise UserError(f"{name}: {error}") from None
    if plain[56:60] != b"ARM\x64":
        raise UserError(f"{name}: an EFI image whose payload is not an arm64 kernel")
    return _arm64(name, plain, "zboot")


_BIG_ENDIAN = 2  # elf(5): EI_DATA
_ET_REL = b"\1\0"  # elf(5): e_type
_CPIO = (b"070701", b"070702")  # Documentation/driver-api/early-userspace/buffer-format.rst
_AS_PROGRAM = "a program is measured behind --, as in -- {}"
_NO_TEXT = set(range(32)) - set(b"\t\n\r\f")


def _vmlinux(name: str, data: bytes) -> Unpacked:
    try:
        file = _elf(name, data)
    except elf.ElfError as error:
        raise UserError(f"{name}: {error}") from None
    if data[16:18] == _ET_REL:
        raise UserError(f"{name}: a module or another object file, not a kernel; give a bzImage or a vmlinux")
    release = _banner(data)
    if not release:
        raise UserError(f"{name}: an ELF file, but no kernel (no version banner); {_AS_PROGRAM.format(name)}")
    if file.machine == "arm64":
        raise UserError(f"{name}: a vmlinux for {file.machine}; give its bootable Image instead")
    if file.machine != "x86_64":
        raise UserError(_foreign(name, file.machine))
    if not elf.has_pvh(file):
        raise UserError(
            f"{name}: a vmlinux without a PVH entry cannot be booted; give its bzImage, or set CONFIG_PVH=y"
        )
    return Unpacked(arch="x86_64", form="vmlinux", release=release, boot=data, plain=data)


def unpack(name: str, data: bytes) -> Unpacked:
    """Recognise ``data`` and unpack it; ``name`` is for messages.

    Raises:
        UserError: not a kernel for x86_64 or arm64, damaged, or truncated.
    """
    return _unpacked(name, data, _MOST_LAYERS)


def _unpacked(name: str, data: bytes, layers: int) -> Unpacked:
    """``layers``: how often it may be packed, one around the other."""
    if data.startswith(b"!<arch>\n"):
        raise UserError(f"{name}: a Debian package, not an image; name it deb:{name}")
    if len(data) >= 0x268 and data[0x202:0x206] == b"HdrS":
        return _bzimage(name, data)
    if data[:8] == b"MZ\0\0zimg" and len(data) >= 64:
        return _zboot(name, data)
    if data[56:60] == b"ARM\x64" and len(data) >= 64:
        return _arm64(name, data, "Image")
    if data.startswith(elf.MAGIC):
        return _vmlinux(name, data)
    if data[56:60] == b"RSC\x05":  # Documentation/arch/riscv/boot-image-header.rst
        raise UserError(_foreign(name, "machine 243"))
    inner = _unified(name, data)
    if inner or data.startswith((b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh", b"\x02\x21\x4c\x18")):
        try:
            if not layers:
                raise UserError(f"{name}: it is packed more than {_MOST_LAYERS} times over")
            return _unpacked(name, inner or _unpack(data), layers - 1)
        except _Packed as error:
            raise UserError(f"{name}: {error}") from None
    raise UserError(
        f"{name}: not a kernel image: want a bzImage, a vmlinux or an arm64 Image; {_looks_like(name, data)}"
    )


def _looks_like(name: str, data: bytes) -> str:
    """What a file that is no kernel is, for a message."""
    if data.startswith(_CPIO):
        return "it is an initramfs (cpio)"
    if data.startswith(b"#!"):
        return f"it is a script; {_AS_PROGRAM.format(name)}"
    if data[:2] == b"MZ":
        return "it is a program for EFI or Windows, and no unified kernel image (it has no section .linux)"
    if data and data[:512].isascii() and not set(data[:512]) & _NO_TEXT:
        return "it is a text file"
    return f"it starts with {data[:8].hex() or 'nothing'}"
