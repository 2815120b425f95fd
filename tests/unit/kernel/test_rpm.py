# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel import cache, package, rpm
from kdelta.kernel.resolve import check, resolve
from kdelta.kernel.sources import parse_kernel, written
from unit.kernel import rpms, synthetic

needs_rpm = pytest.mark.skipif(not rpms.works(), reason="rpm and rpmbuild are not installed")
CONFIG = b"#\n# Linux/x86 6.12.117 Kernel Configuration\n#\nCONFIG_PVH=y\n# CONFIG_ANON_VMA_NAME is not set\n"
V = "6.17.8-300.fc43.x86_64"
FEDORA = {
    f"lib/modules/{V}/.vmlinuz.hmac": b"hash",
    f"lib/modules/{V}/System.map": b"map",
    f"lib/modules/{V}/config": CONFIG,
    f"lib/modules/{V}/modules.order": b"",
    f"lib/modules/{V}/vmlinuz": b"kernel",
}
SUSE = {
    "boot/vmlinuz-6.4.0-1-default": "../usr/lib/modules/6.4.0-1-default/vmlinuz",
    "boot/.vmlinuz-6.4.0-1-default.hmac": "../usr/lib/modules/6.4.0-1-default/.vmlinuz.hmac",
    "usr/lib/modules/6.4.0-1-default/System.map": b"map",
    "usr/lib/modules/6.4.0-1-default/config": CONFIG,
    "usr/lib/modules/6.4.0-1-default/kernel/fs/fuse.ko.zst": b"module",
    "usr/lib/modules/6.4.0-1-default/vmlinuz": b"kernel",
}
BOOT = {"boot/System.map-5.14": b"map", "boot/config-5.14": CONFIG, "boot/vmlinuz-5.14": b"kernel"}
ARM64 = {"boot/Image-6.4": b"kernel", "boot/System.map-6.4": b"map", "boot/config-6.4": CONFIG}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))


@needs_rpm
@pytest.mark.parametrize("payload", ["w3.zstdio", "w2.xzdio", "w9.gzdio", "w9.bzdio", "w.ufdio"])
def test_every_compression_of_a_payload_is_read(tmp_path: Path, payload: str) -> None:
    files = rpm.read_kernel(rpms.package(tmp_path, FEDORA, payload=payload))
    assert (files.image, files.config, files.system_map) == (b"kernel", CONFIG, b"map")
    assert (files.package, files.version, files.architecture) == ("kernel-core", "6.17.8-300.fc43", "x86_64")


@needs_rpm
@pytest.mark.parametrize("files", [FEDORA, SUSE, BOOT, ARM64], ids=["fedora", "suse", "boot", "arm64"])
def test_a_kernel_is_found_where_distributions_put_it(tmp_path: Path, files: dict[str, bytes | str]) -> None:
    found = rpm.read_kernel(rpms.package(tmp_path, files))
    assert (found.image, found.config, found.system_map) == (b"kernel", CONFIG, b"map")


@needs_rpm
def test_a_package_becomes_a_kernel_with_its_facts(tmp_path: Path) -> None:
    image = synthetic.bzimage()
    path = rpms.package(tmp_path, FEDORA | {f"lib/modules/{V}/vmlinuz": image})
    spec = parse_kernel(f"fc=rpm:{path},cmdline=quiet")
    assert replace(parse_kernel(written(spec)), text=spec.text) == spec
    check([spec])
    kernel = resolve(spec)
    assert (kernel.label, kernel.release, kernel.cmdline) == ("fc", synthetic.RELEASE, "quiet")
    assert (kernel.config["PVH"], kernel.config["ANON_VMA_NAME"]) == ("y", "n")
    assert kernel.origin == "package kernel-core 6.17.8-300.fc43"
    assert Path(kernel.image_path).read_bytes() == image
    assert Path(kernel.image_path).with_name(cache.SYSTEM_MAP).read_bytes() == b"map"


@needs_rpm
def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    path = rpms.package(tmp_path, {"lib/modules/6.12/vmlinuz": str(tmp_path / "secret")})
    assert rpm.read_kernel(path).image == b""
    with pytest.raises(UserError, match="kernel-core holds no kernel image"):
        resolve(parse_kernel(f"rpm:{path}"))


@needs_rpm
def test_implausible_sizes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rpms.package(tmp_path, FEDORA | {f"lib/modules/{V}/vmlinuz": bytes(50_000_000)})
    assert path.stat().st_size < 1_000_000
    with monkeypatch.context() as patched, pytest.raises(UserError, match="plausible"):
        patched.setitem(package._LIMIT_BYTES, "image", 1_000_000)
        rpm.read_kernel(path)
    monkeypatch.setattr(package, "TOTAL_LIMIT_BYTES", 1_000_000)
    with pytest.raises(UserError, match="unpacks to more"):
        rpm.read_kernel(path)


@needs_rpm
@pytest.mark.parametrize("keep", [0.02, 0.5, 0.9, 0.999])
def test_a_truncated_package_is_refused(tmp_path: Path, keep: float) -> None:
    noise = random.Random(1).randbytes(100_000)
    path = rpms.package(tmp_path, FEDORA | {f"lib/modules/{V}/vmlinuz": noise})
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(UserError):
        rpm.read_kernel(path)


@needs_rpm
@pytest.mark.parametrize("seed", range(12))
def test_damaged_bytes_are_refused_or_change_nothing(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = rpms.package(tmp_path, FEDORA | {f"lib/modules/{V}/vmlinuz": rng.randbytes(4000)})
    good, data = rpm.read_kernel(path), bytearray(path.read_bytes())
    at = rng.randrange(len(data)) if seed % 2 else rng.randrange(4000)
    data[at] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(data))
    try:
        assert rpm.read_kernel(path).image == good.image
    except UserError as error:
        assert "\n" not in str(error) and str(path) in str(error)


@pytest.mark.parametrize(
    "content", [b"", b"\xed\xab", b"nothing of the kind\n", b"/etc/passwd\n", b"!<arch>\ndebian-binary"]
)
def test_a_file_that_is_no_package_is_refused_before_rpm_sees_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.rpm"
    path.write_bytes(content)
    with pytest.raises(UserError, match="not an RPM package"):
        check([parse_kernel(f"rpm:{path}")])


@pytest.mark.parametrize("name", ["missing.rpm", "", "a\x01b.rpm"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        check([parse_kernel(f"rpm:{tmp_path}/{name}")])


@needs_rpm
def test_a_list_of_packages_in_a_packages_clothes_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.rpm"
    path.write_bytes(rpm.MAGIC + b"\nhttp://127.0.0.1:9/kernel.rpm\n/etc/hosts\n" * 50)
    with pytest.raises(UserError, match="not a readable RPM package"):
        check([parse_kernel(f"rpm:{path}")])
