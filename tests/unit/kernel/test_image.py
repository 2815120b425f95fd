# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import bz2
import gzip
import lzma
import random
import struct
import zlib

import lz4.block
import pytest
import zstandard

from kdelta.errors import UserError
from kdelta.kernel import image
from unit.kernel import synthetic


def _repacked(payload: bytes, plain: bytes) -> bytes:
    """The synthetic bzImage with another payload."""
    whole = bytearray(synthetic.bzimage(plain)[:1024])
    body = payload + b"\0" * (-len(payload) % 16)
    struct.pack_into("<I", whole, 0x1F4, len(body) // 16)
    struct.pack_into("<II", whole, 0x248, 0, len(payload))
    return bytes(whole) + body


def test_a_bzimage_unpacks_to_its_vmlinux() -> None:
    plain = synthetic.vmlinux()
    found = image.unpack("x", synthetic.bzimage(plain))
    assert (found.arch, found.form, found.release, found.plain) == ("x86_64", "bzImage", synthetic.RELEASE, plain)


@pytest.mark.parametrize("packer", ["gzip", "xz", "lzma", "bzip2", "zstd", "lz4"])
def test_every_packing_of_the_kernel_is_unpacked(packer: str) -> None:
    plain = synthetic.vmlinux()
    size = struct.pack("<I", len(plain))
    block = lz4.block.compress(plain, store_size=False)
    payloads = {
        "gzip": gzip.compress(plain),
        "xz": lzma.compress(plain) + size,
        "lzma": lzma.compress(plain, lzma.FORMAT_ALONE) + size,
        "bzip2": bz2.compress(plain) + size,
        "zstd": zstandard.ZstdCompressor(level=3).compress(plain) + size,
        "lz4": b"\x02\x21\x4c\x18" + struct.pack("<I", len(block)) + block + size,
    }
    assert image.unpack("x", _repacked(payloads[packer], plain)).plain == plain


def test_lzo_boots_without_a_vmlinux_and_says_why() -> None:
    found = image.unpack("x", _repacked(b"\x89LZO" + b"\0" * 60, b""))
    assert found.plain is None
    assert "LZO" in found.why_packed


@pytest.mark.parametrize("seed", range(5))
def test_random_bytes_are_refused_in_one_line(seed: int) -> None:
    with pytest.raises(UserError, match="not a kernel image") as error:
        image.unpack("noise", random.Random(seed).randbytes(70_000))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_a_truncated_bzimage_is_refused(keep: float) -> None:
    whole = synthetic.bzimage()
    with pytest.raises(UserError, match="truncated"):
        image.unpack("cut", whole[: int(len(whole) * keep)])


def test_a_damaged_payload_is_refused() -> None:
    whole = bytearray(synthetic.bzimage())
    middle = 1024 + (len(whole) - 1024) // 2
    whole[middle : middle + 8] = b"\xff" * 8
    with pytest.raises(UserError, match=r"damaged|truncated"):
        image.unpack("bent", bytes(whole))


def test_a_size_that_does_not_fit_the_payload_is_refused() -> None:
    plain = synthetic.vmlinux()
    with pytest.raises(UserError, match="damaged"):
        image.unpack("bent", _repacked(lzma.compress(plain) + struct.pack("<I", len(plain) + 1), plain))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress])
def test_a_bomb_is_refused_before_it_fills_memory(pack: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "LIMIT_BYTES", 1 << 20)
    assert callable(pack)
    with pytest.raises(UserError, match="more than 1 MiB"):
        image.unpack("bomb", pack(b"\0" * (4 << 20)))


def test_a_package_is_told_to_be_named_as_one() -> None:
    with pytest.raises(UserError, match=r"deb:x\.deb"):
        image.unpack("x.deb", b"!<arch>\ndebian-binary")


def test_a_vmlinux_without_pvh_cannot_be_booted() -> None:
    with pytest.raises(UserError, match="PVH"):
        image.unpack("vmlinux", synthetic.vmlinux().replace(b"Xen\0", b"Xin\0"))


def test_an_elf_program_is_no_kernel() -> None:
    with pytest.raises(UserError, match="no kernel"):
        image.unpack("ls", synthetic.vmlinux().replace(b"Linux version", b"Minix version"))


@pytest.mark.parametrize(
    ("ident", "order", "machine", "said"),
    [(b"\1\1", "<", 3, "32-bit x86"), (b"\2\2", ">", 21, "64-bit PowerPC"), (b"\1\1", "<", 243, "RISC-V")],
)
def test_a_kernel_of_32_bits_or_the_other_byte_order_is_told_by_its_machine(
    ident: bytes, order: str, machine: int, said: str
) -> None:
    """Their headers are of other sizes: they were told to be no ELF files of 64 bits, and no more."""
    head = b"\x7fELF" + ident + b"\1" + bytes(9) + struct.pack(f"{order}HH", 2, machine) + bytes(44)
    plain = head + synthetic.BANNER
    for data in (plain, _repacked(gzip.compress(plain), plain)):
        with pytest.raises(UserError, match=f"a kernel for {said}; kdelta boots x86_64 and arm64"):
            image.unpack("vmlinux", data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (synthetic.vmlinux()[:16] + b"\1\0" + synthetic.vmlinux()[18:], "a module or another object file"),
        (gzip.compress(b"070701000002D1" + b"0" * 96), "it is an initramfs"),
        (b"#\n# Linux/x86 6.1 Kernel Configuration\n#\nCONFIG_X=y\n", "it is a text file"),
        (b"", "it starts with nothing"),
        (synthetic.vmlinux()[:18] + b"\xf3\0" + synthetic.vmlinux()[20:], "a kernel for RISC-V; kdelta boots x86_64"),
        (synthetic.vmlinux()[:18] + b"\xee\0" + synthetic.vmlinux()[20:], "a kernel for machine 238; kdelta boots"),
        (synthetic.vmlinux()[:18] + b"\xb7\0" + synthetic.vmlinux()[20:], "vmlinux for arm64; give its bootable Image"),
        (b"MZ".ljust(56, b"\0") + b"RSC\x05" + bytes(600), "a kernel for RISC-V; kdelta boots x86_64 and arm64"),
        (b"\0\1\2\3\4\5\6\7", "it starts with 0001020304050607"),
    ],
    ids=[
        "module",
        "initramfs",
        "text",
        "nothing",
        "riscv",
        "machine 238",
        "arm64",
        "riscv Image",
        "bytes",
    ],  # gzip has the time in its bytes: workers' ids would differ
)
def test_what_lies_beside_kernels_is_called_by_its_name(data: bytes, said: str) -> None:
    with pytest.raises(UserError, match=said):
        image.unpack("x", data)


def _arm64() -> bytes:
    return b"MZ\0\0" + b"\0" * 52 + b"ARM\x64" + b"\0" * 4 + synthetic.BANNER + b"\0" * 4096


def test_an_arm64_image_is_recognised_plain_packed_and_in_zboot() -> None:
    plain = _arm64()
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    payload = packed.compress(plain) + packed.flush()
    zboot = b"MZ\0\0zimg" + struct.pack("<II", 64, len(payload)) + b"\0" * 8 + b"gzip".ljust(40, b"\0") + payload
    for data, form in ((plain, "Image"), (gzip.compress(plain), "Image"), (zboot, "zboot")):
        found = image.unpack("Image", data)
        assert (found.arch, found.form, found.release, found.boot) == ("arm64", form, synthetic.RELEASE, plain)


def _efi(name: bytes, content: bytes) -> bytes:
    """An EFI program with one section, which is padded in the file."""
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    head += b"PE\0\0" + struct.pack("<HH12xHH", 0x8664, 1, 0, 0)
    head += struct.pack("<8sIIII16x", name, len(content), 0x1000, len(content) + 300, 512)
    return head.ljust(512, b"\0") + content + bytes(300)


def test_a_unified_kernel_image_is_the_kernel_in_it() -> None:
    """It was "not a kernel image; it starts with 4d5a900003000000"."""
    inner = synthetic.bzimage()
    assert image.unpack("uki", _efi(b".linux", inner)) == image.unpack("x", inner)
    assert image.unpack("uki", _efi(b".linux", _arm64())).arch == "arm64"
    with pytest.raises(UserError, match=r"uki: truncated: its kernel ends at \d+, the file at 4000"):
        image.unpack("uki", _efi(b".linux", inner)[:4000])
    with pytest.raises(UserError, match=r"a program for EFI or Windows, and no unified kernel image"):
        image.unpack("grub.efi", _efi(b".text", inner))
    within = inner
    for _ in range(4):
        within = _efi(b".linux", within)
    with pytest.raises(UserError, match="packed more than 3 times over"):
        image.unpack("uki", within)


def test_an_arm64_header_alone_is_no_kernel() -> None:
    with pytest.raises(UserError, match="no version banner"):
        image.unpack("Image", _arm64().replace(b"Linux version", b"Minix version"))


def test_a_config_inside_an_image_is_found() -> None:
    text = "CONFIG_IKCONFIG=y\nCONFIG_HZ=250\n"
    plain = synthetic.vmlinux(extra=b"IKCFG_ST" + gzip.compress(text.encode()) + b"IKCFG_ED")
    assert image.unpack("x", synthetic.bzimage(plain)).config == text
    assert image.unpack("x", synthetic.bzimage()).config is None


def test_what_is_packed_without_end_is_refused() -> None:
    data = _arm64()
    for _ in range(2):
        data = gzip.compress(data)
    assert image.unpack("twice", data).form == "Image"
    for _ in range(600):
        data = zlib.compress(data, 0, 31)
    with pytest.raises(UserError, match="packed more than 3 times"):
        image.unpack("often", data)
