# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.kernel import deb, package
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from unit.kernel import synthetic

pytestmark = pytest.mark.skipif(not synthetic.dpkg_works(), reason="dpkg-deb is not installed")
CONFIG = b"#\n# Linux/x86 6.12.117 Kernel Configuration\n#\nCONFIG_PVH=y\n# CONFIG_ANON_VMA_NAME is not set\n"


def _link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    ("image", "config"),
    [
        ("./boot/vmlinuz-6.12", "./boot/config-6.12"),
        ("./usr/lib/modules/7.3/vmlinuz", "./usr/lib/modules/7.3/config"),
    ],
)
def test_image_and_config_are_found_where_releases_put_them(tmp_path: Path, image: str, config: str) -> None:
    path = synthetic.package(
        tmp_path / "a.deb", [(config, CONFIG), (image, b"kernel"), ("./lib/modules/6.12/x.ko", b"m")]
    )
    files = deb.read_kernel(path)
    assert (files.image, files.config, files.package, files.version) == (b"kernel", CONFIG, "linux-image-test", "1.0-1")


@pytest.mark.parametrize(
    "name", ["../boot/vmlinuz-1", "./../../boot/vmlinuz-1", "/boot/vmlinuz-1", "./boot/../boot/vmlinuz-1"]
)
def test_members_that_climb_out_are_left_alone(tmp_path: Path, name: str) -> None:
    assert deb.read_kernel(synthetic.package(tmp_path / "a.deb", [(name, b"evil")])).image == b""


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_are_not_followed(tmp_path: Path, kind: bytes) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    path = synthetic.package(tmp_path / "a.deb", [_link("./boot/vmlinuz-6.12", str(secret), kind)])
    assert deb.read_kernel(path).image == b""


def test_an_implausibly_large_member_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(package._LIMIT_BYTES, "image", 100)
    with pytest.raises(UserError, match="plausible"):
        deb.read_kernel(synthetic.package(tmp_path / "a.deb", [("./boot/vmlinuz-6.12", b"x" * 101)]))


def test_a_package_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "_TOTAL_LIMIT_BYTES", 1000)
    with pytest.raises(UserError, match="unpacks to more"):
        deb.read_kernel(
            synthetic.package(tmp_path / "a.deb", [("./usr/share/a", b"x" * 900), ("./usr/share/b", b"x" * 900)])
        )


@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_a_truncated_package_is_refused(tmp_path: Path, keep: float) -> None:
    import random

    noise = random.Random(1).randbytes(100_000)
    path = synthetic.package(tmp_path / "a.deb", [("./boot/vmlinuz-6.12", noise)])
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(UserError):
        deb.read_kernel(path)


def test_a_file_that_is_no_package_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.deb"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(UserError, match="not a readable Debian package"):
        deb.read_kernel(path)


def test_a_package_without_a_kernel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    path = synthetic.package(tmp_path / "a.deb", [("./usr/bin/hello", b"hello")], name="hello")
    with pytest.raises(UserError, match="hello holds no kernel"):
        resolve(parse_kernel(f"deb:{path}"))
    assert not (tmp_path / "cache").exists()


def test_a_package_becomes_a_kernel_with_its_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    image = synthetic.bzimage()
    path = synthetic.package(tmp_path / "a.deb", [("./boot/config-6.12", CONFIG), ("./boot/vmlinuz-6.12", image)])
    kernel = resolve(parse_kernel(f"deb:{path},cmdline=quiet"))
    assert (kernel.release, kernel.label, kernel.cmdline) == (synthetic.RELEASE, "6.12.117+test", "quiet")
    assert (kernel.config["PVH"], kernel.config["ANON_VMA_NAME"]) == ("y", "n")
    assert Path(kernel.image_path).read_bytes() == image
    assert kernel.vmlinux_path and Path(kernel.vmlinux_path).read_bytes() == synthetic.vmlinux()
    assert kernel.build_id == bytes(range(20)).hex()


def test_a_package_of_debug_symbols_names_the_one_with_the_image(tmp_path: Path) -> None:
    members: list[tarfile.TarInfo | tuple[str, bytes]] = [("./usr/lib/debug/boot/vmlinux-6.1", b"\x7fELF")]
    path = synthetic.package(tmp_path / "a.deb", members, "linux-image-6.1-dbg")
    with pytest.raises(UserError, match=r"no kernel image .*; the image is in the package linux-image-6\.1$"):
        resolve(parse_kernel(f"deb:{path}"))
