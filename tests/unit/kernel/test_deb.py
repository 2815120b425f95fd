# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import random
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

import made_packages
from kdelta.errors import UserError
from kdelta.kernel import deb, package
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from unit.kernel import synthetic

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
    monkeypatch.setattr(package, "TOTAL_LIMIT_BYTES", 1000)
    with pytest.raises(UserError, match="unpacks to more"):
        deb.read_kernel(
            synthetic.package(tmp_path / "a.deb", [("./usr/share/a", b"x" * 900), ("./usr/share/b", b"x" * 900)])
        )


IMAGE: synthetic.Members = [("./boot/vmlinuz-6.12", b"kernel")]


@pytest.mark.parametrize("keep", [1, 100, -1, 0.5, 0.9])
def test_a_truncated_package_is_refused_before_anything_of_it_is_read(tmp_path: Path, keep: float) -> None:
    noise = random.Random(1).randbytes(100_000)
    path = synthetic.package(tmp_path / "a.deb", [("./boot/config-6.12", CONFIG), ("./boot/vmlinuz-6.12", noise)])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep) if isinstance(keep, float) else keep])
    with pytest.raises(UserError, match="not a readable Debian package"):
        deb.fields(path)


@pytest.mark.parametrize("kind", ["", "gz", "bz2", "lzma", "xz", "zst"])
def test_every_compression_that_dpkg_knows_is_read(tmp_path: Path, kind: str) -> None:
    path = synthetic.package(tmp_path / "a.deb", IMAGE, control=kind, data=kind)
    assert (deb.read_kernel(path).image, deb.fields(path)["Package"]) == (b"kernel", "linux-image-test")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
@pytest.mark.parametrize("compression", ["none", "gzip", "xz"])
def test_what_dpkg_deb_builds_is_read(tmp_path: Path, compression: str) -> None:
    root = tmp_path / "root"
    (root / "boot").mkdir(parents=True)
    (root / "boot" / "vmlinuz-6.12").write_bytes(b"kernel")
    (root / "DEBIAN").mkdir(mode=0o755)
    control = "Package: linux-image-6.12\nVersion: 1:6.12.1~rc1-1\nArchitecture: amd64\nMaintainer: a <a@b>\n"
    (root / "DEBIAN" / "control").write_text(f"{control}Description: x\n Version: 9\n")
    argv = ["dpkg-deb", f"-Z{compression}", "--uniform-compression", "--build", str(root), str(tmp_path / "a.deb")]
    subprocess.run(argv, check=True, capture_output=True)
    found = deb.read_kernel(tmp_path / "a.deb")
    assert (found.package, found.version, found.image) == ("linux-image-6.12", "1:6.12.1~rc1-1", b"kernel")


CONTROL = b"Package: linux\nVersion: 1\nArchitecture: all\n"


def _made(path: Path, control: bytes = CONTROL, *members: tuple[str, bytes], version: bytes = b"2.0\n") -> Path:
    packed = [("control.tar", synthetic.tarred([("control", control)])), ("data.tar", synthetic.tarred(IMAGE))]
    path.write_bytes(synthetic.archived([("debian-binary", version), *(members or packed)]))
    return path


@pytest.mark.parametrize(
    ("control", "version"),
    [
        (CONTROL, "1"),
        (b"\n\npackage:linux\nVERSION:   2.5-1 \nArchitecture: all\n\nPackage: other\nVersion: 3\n", "2.5-1"),
        (b"Description: a\n Version: 7\n\tVersion: 8\nVersion: 1\nPackage: linux\nArchitecture: all", "1"),
    ],
)
def test_a_control_file_is_read_as_dpkg_does(tmp_path: Path, control: bytes, version: str) -> None:
    assert deb.fields(_made(tmp_path / "a.deb", control)) == {
        "Package": "linux", "Version": version, "Architecture": "all",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("control", "field"),
    [
        (b"", "Package"),
        (b"Version: 1\nArchitecture: all\n", "Package"),
        (b"Package: a\x1b[2Jb\nVersion: 1\nArchitecture: all\n", "Package"),
        (b"Package: linux\nVersion: 1 2\nArchitecture: all\n", "Version"),
        (b"Package: linux\nVersion: \xff\nArchitecture: all\n", "Version"),
        (b"Package: linux\nVersion: 1\n", "Architecture"),
    ],
)
def test_a_control_file_without_a_name_and_version_is_refused(tmp_path: Path, control: bytes, field: str) -> None:
    with pytest.raises(UserError, match=f"gives no valid {field}"):
        deb.fields(_made(tmp_path / "a.deb", control))


TARRED = synthetic.tarred(IMAGE)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([("data.tar", TARRED), ("control.tar", TARRED)], "no control.tar where it should be"),
        ([("control.tar", TARRED)], "no data.tar where it should be"),
        ([("control.tar", TARRED), ("control.tar", TARRED)], "no data.tar where it should be"),
        ([("control.tar", TARRED), ("other", b""), ("data.tar", TARRED)], "no data.tar where it should be"),
        ([("control.tarxz", b""), ("data.tar", TARRED)], "a way that is not known"),
        ([("control.tar.Z", b""), ("data.tar", TARRED)], "a way that is not known"),
        ([("control.tar", TARRED), ("data.tar.lz4", b"")], "a way that is not known"),
        ([("control.tar", TARRED), ("data.tar", TARRED)], "gives no valid Package"),
    ],
)
def test_members_that_are_not_in_order_are_refused(tmp_path: Path, members: list[tuple[str, bytes]], why: str) -> None:
    with pytest.raises(UserError, match=why):
        deb.fields(_made(tmp_path / "a.deb", CONTROL, *members))


def test_members_that_dpkg_may_leave_out_are_left_out(tmp_path: Path) -> None:
    members = [
        ("control.tar", synthetic.tarred([("./control", CONTROL)])),
        ("_gpgorigin", b"odd"),
        ("data.tar", TARRED),
    ]
    assert deb.read_kernel(_made(tmp_path / "a.deb", CONTROL, ("_first", b""), *members)).image == b"kernel"


def test_a_package_of_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not of version 2"):
        deb.fields(_made(tmp_path / "a.deb", version=b"3.0\n"))
    (tmp_path / "a.deb").write_bytes(synthetic.archived([("debian-split", b"2.1\n")]))
    with pytest.raises(UserError, match="first member is not debian-binary"):
        deb.fields(tmp_path / "a.deb")


@pytest.mark.parametrize("size", [b"-1", b"1_0", b"0x10", b"9" * 10, b" 1", b""])
def test_a_member_of_no_plausible_size_is_refused(tmp_path: Path, size: bytes) -> None:
    path = _made(tmp_path / "a.deb")
    data = bytearray(path.read_bytes())
    data[8 + 48 : 8 + 58] = size.ljust(10)
    path.write_bytes(bytes(data))
    with pytest.raises(UserError, match="not a readable Debian package"):
        deb.fields(path)


def test_data_that_is_not_what_its_name_says_is_refused(tmp_path: Path) -> None:
    members = [("control.tar", synthetic.tarred([("./control", CONTROL)])), ("data.tar.xz", TARRED)]
    with pytest.raises(UserError, match=r"a\.deb: its data cannot be read .*; is the download complete\?$"):
        deb.read_kernel(_made(tmp_path / "a.deb", CONTROL, *members))


def _header(kind: bytes, content: bytes) -> bytes:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, len(content)
    return info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


def _negative(kind: bytes, size: int) -> bytes:
    data = bytearray(_header(kind, b""))
    data[124:136] = b"\xff" + size.to_bytes(11, "big", signed=True)
    return made_packages.sealed_tar(bytes(data)) + bytes(4096)


SPARSE = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"


@pytest.mark.parametrize(
    "data",
    [
        _header(tarfile.GNUTYPE_LONGNAME, b"a") * 2000,
        _header(tarfile.XHDTYPE, b"24 GNU.sparse.map=a,b,c\n") + _header(tarfile.REGTYPE, b""),
        _header(tarfile.XHDTYPE, SPARSE) + _header(tarfile.REGTYPE, b"99999999\n" + b"1\n" * 4_000_000),
        _negative(tarfile.XHDTYPE, -1024),
        _negative(tarfile.XHDTYPE, -(1 << 70)),
        _negative(tarfile.REGTYPE, -512),
    ],
    ids=["without end", "no number", "too many numbers", "less than nothing", "far less", "less than no content"],
)
def test_headers_that_tarfile_cannot_bear_are_refused(tmp_path: Path, data: bytes) -> None:
    control = ("control.tar", synthetic.tarred([("./control", CONTROL)]))
    with pytest.raises(UserError, match="its data cannot be read"):
        deb.read_kernel(_made(tmp_path / "a.deb", CONTROL, control, ("data.tar", data)))


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


@pytest.mark.parametrize(
    ("depends", "told"),
    [
        ("linux-image-6.1.0-56-amd64 (= 6.1.192-2)", r"; the image is in the package linux-image-6\.1\.0-56-amd64$"),
        ("libc6 (>= 2), linux-binary-7.0-amd64 | linux-image-7.0-amd64", "linux-binary-7.0-amd64 or linux-image-7.0"),
        ("linux-headers-6.1.0-56-amd64", r"linux-binary-\*\)$"),
    ],
)
def test_a_package_that_only_depends_on_a_kernel_says_on_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depends: str, told: str
) -> None:
    """linux-image-amd64, which is what ``apt-get download`` is first asked for, is empty."""
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    control = ("control.tar", synthetic.tarred([("./control", CONTROL + f"Depends: {depends}\n".encode())]))
    path = _made(tmp_path / "a.deb", CONTROL, control, ("data.tar", synthetic.tarred([])))
    with pytest.raises(UserError, match=told):
        resolve(parse_kernel(f"deb:{path}"))


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
