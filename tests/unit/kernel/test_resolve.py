# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import gzip
import platform
from pathlib import Path

import msgspec
import pytest

from kdelta.errors import UserError
from kdelta.kernel import debian, debver, kconfig, resolve
from kdelta.kernel.labels import unique
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.sources._source import short
from kdelta.kernel.sources.running import resolve_running
from kdelta.model import Kernel
from unit.kernel import synthetic

CONFIG = "#\n# Linux/x86 6.12.117 Kernel Configuration\n#\nCONFIG_PVH=y\nCONFIG_HZ=250\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))


def _kernel(label: str, cmdline: str = "", arch: str = "x86_64") -> Kernel:
    kernel = Kernel(label=label, spec=label, release=label, image_path="i", image_sha256="s", cmdline=cmdline)
    return msgspec.structs.replace(kernel, arch=arch)


@pytest.mark.parametrize(
    ("release", "label"),
    [
        ("6.12.117+deb13-amd64", "6.12.117"),
        ("6.12.117+deb13-cloud-amd64", "6.12.117-cloud"),
        ("6.12.74+deb13+1-rt-arm64", "6.12.74-rt"),
        ("6.1.0-56-amd64", "6.1.0-56"),
        ("6.12.117+deb13-arm64-16k", "6.12.117-16k"),
        ("6.9.0-rc3-00012-gabcdef", "6.9.0-rc3-00012-gabcdef"),
    ],
)
def test_labels_are_short(release: str, label: str) -> None:
    assert short(release) == label


def test_the_same_image_with_two_command_lines_is_told_apart_by_the_words_that_differ() -> None:
    kernels = [_kernel("6.12", "quiet"), _kernel("6.12", "quiet init_on_alloc=1")]
    assert [k.label for k in unique(kernels)] == ["6.12", "6.12 init_on_alloc=1"]


def test_labels_become_unique_by_architecture_or_number() -> None:
    assert [k.label for k in unique([_kernel("6.12"), _kernel("6.12"), _kernel("6.12")])] == [
        "6.12",
        "6.12#2",
        "6.12#3",
    ]
    assert [k.label for k in unique([_kernel("6.12"), _kernel("6.12", arch="arm64")])] == [
        "6.12-x86_64",
        "6.12-arm64",
    ]
    assert [k.label for k in unique([_kernel("a"), _kernel("a#2"), _kernel("a")])] == ["a", "a#2", "a#3"]


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["/a/new/bzImage", "/a/old/bzImage"], ["new/bzImage", "old/bzImage"]),
        (["/l/x/boot/bzImage", "/m/x/boot/bzImage"], ["l/…/bzImage", "m/…/bzImage"]),
        (["/a/bzImage", "/a/bzImage"], ["bzImage", "bzImage#2"]),
        (["/a/x", "/a/y"], ["x", "y"]),
    ],
)
def test_files_of_one_name_are_told_apart_by_their_folders(paths: list[str], labels: list[str]) -> None:
    kernels = [msgspec.structs.replace(_kernel(path.rpartition("/")[2]), origin=f"file {path}") for path in paths]
    assert [k.label for k in unique(kernels)] == labels


@pytest.mark.parametrize(
    ("specs", "labels"),
    [
        (["debian:7.3", "src:debian:7.3"], ["7.3.4", "7.3.4-src"]),
        (["src:debian:7.3", "7.3"], ["7.3.4-src", "7.3.4"]),
        (["src:debian:7.3", "src:debian:7.3,config=FOO=y"], ["7.3.4", "7.3.4 FOO=y"]),
        (["src:debian:7.3,config=a/one", "src:debian:7.3,config=a/two"], ["7.3.4 one", "7.3.4 two"]),
        (['src:debian:7.3,config="A=y B=n"', "src:debian:7.3,config=A=n"], ["7.3.4 A=y …", "7.3.4 A=n"]),
        (["src:debian:7.3", 'src:debian:7.3,config="a/my.config A=y B=n"'], ["7.3.4", "7.3.4 my.config A=y …"]),
        (["src:debian:7.3", "src:debian:7.3"], ["7.3.4", "7.3.4#2"]),
        (["src:debian:7.3#1", "src:debian:7.3"], ["7.3.4", "7.3.4#2"]),
    ],
)
def test_what_was_built_is_told_from_what_was_not_and_configs_apart(specs: list[str], labels: list[str]) -> None:
    kernels = [msgspec.structs.replace(_kernel("7.3.4"), spec=spec) for spec in specs]
    assert [k.label for k in unique(kernels)] == labels


def test_patches_of_one_name_are_told_apart_by_their_folders() -> None:
    specs = ["src:debian:7.3+v1/my.patch", "src:debian:7.3+v2/my.patch", "src:debian:7.3+v2/my.patch+v1/my.patch"]
    labels = ["7.3.4+my", "7.3.4+my", "7.3.4+my+my"]
    kernels = [msgspec.structs.replace(_kernel(a), spec=b) for a, b in zip(labels, specs, strict=True)]
    assert [k.label for k in unique(kernels)] == ["7.3.4+v1/my", "7.3.4+v2/my", "7.3.4+my+my"]


def test_a_users_label_stays() -> None:
    found = unique([_kernel("6.12"), _kernel("6.12")], frozenset({1}))
    assert [k.label for k in found] == ["6.12#2", "6.12"]


def test_a_label_given_twice_is_refused() -> None:
    with pytest.raises(UserError, match="label a= is given to 2"):
        resolve.resolve_all([parse_kernel("a=./x"), parse_kernel("a=./y")])


def test_a_package_that_holds_no_kernel_is_told_before_others_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = synthetic.package(tmp_path / "doc.deb", [("usr/share/doc/a", b"nothing")])
    monkeypatch.setattr(debian, "find", lambda *_: pytest.fail("Debian's archive was asked"))
    specs = [parse_kernel("debian:6.12-1"), parse_kernel(f"deb:{package}")]
    monkeypatch.setattr(resolve, "expand", lambda spec, _: [spec])
    with pytest.raises(UserError, match="holds no kernel image"):
        resolve.resolve_all(specs)


def test_kernels_come_in_the_order_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vmlinuz").write_bytes(synthetic.bzimage())
    near = parse_kernel(f"near={tmp_path / 'vmlinuz'}")
    had: list[str] = []
    monkeypatch.setattr(resolve, "resolve", lambda spec, _: _kernel(spec.label))
    monkeypatch.setattr(resolve, "expand", lambda spec, _: [spec])
    found = resolve.resolve_all([parse_kernel("far=debian:6.12-1"), near], had=lambda kernel: had.append(kernel.label))
    assert [kernel.label for kernel in found] == ["far", "near"]
    assert had == ["near", "far"]


def test_the_architecture_of_a_file_is_known_before_others_are_fetched(tmp_path: Path) -> None:
    (tmp_path / "vmlinuz").write_bytes(synthetic.bzimage())
    near, arm64 = parse_kernel(str(tmp_path / "vmlinuz")), "debian:6.12,arch=arm64"
    resolve.one_architecture([near, parse_kernel("debian:6.12")])
    with pytest.raises(UserError, match=f"{arm64} is arm64, .*vmlinuz x86_64"):
        resolve.one_architecture([parse_kernel(arm64), near])
    with pytest.raises(UserError, match=r"6.1 is arm64, .*vmlinuz x86_64"):
        resolve.one_architecture([near], [_kernel("6.1", arch="arm64")])


def test_an_image_takes_the_config_beside_it_only_when_it_is_its_own(tmp_path: Path) -> None:
    image = tmp_path / "vmlinuz-6.12"
    image.write_bytes(synthetic.bzimage())
    (tmp_path / "config-6.12").write_text(CONFIG.replace("6.12.117", "6.1.9"))
    assert "HZ" not in resolve.resolve(parse_kernel(str(image))).config
    (tmp_path / "config-6.12").write_text(CONFIG)
    assert resolve.resolve(parse_kernel(str(image))).config["HZ"] == "250"


def test_an_image_takes_no_config_of_another_one_that_lies_beside_it(tmp_path: Path) -> None:
    """Two builds of one release in one folder had the .config of the last: nothing said that theirs differ."""
    own = b"IKCFG_ST" + gzip.compress(CONFIG.encode()) + b"IKCFG_ED"
    rows = synthetic.symbols()
    rows[5] = (rows[5][0], "t", "mem_cgroup_css_alloc")
    (tmp_path / ".config").write_text(CONFIG.replace("CONFIG_HZ=250", "CONFIG_HZ=1000"))
    images = {"first": synthetic.vmlinux(extra=own), "with": synthetic.vmlinux(rows=rows), "last": synthetic.vmlinux()}
    found = {}
    for name, plain in images.items():
        (tmp_path / f"bzImage-{name}").write_bytes(synthetic.bzimage(plain))
        found[name] = resolve.resolve(parse_kernel(str(tmp_path / f"bzImage-{name}"))).config
    assert (found["first"]["HZ"], found["last"]["HZ"]) == ("250", "1000")
    assert found["with"] == {"MEMCG": "y", "PVH": "y"}  # the .config has no MEMCG


def test_an_image_with_an_embedded_config_brings_its_facts(tmp_path: Path) -> None:
    packed = b"IKCFG_ST" + gzip.compress(CONFIG.encode()) + b"IKCFG_ED"
    (tmp_path / "vmlinux").write_bytes(synthetic.vmlinux(extra=packed))
    kernel = resolve.resolve(parse_kernel(str(tmp_path / "vmlinux")))
    assert (kernel.config["HZ"], kernel.config["MEMCG"]) == ("250", "n")
    assert kernel.vmlinux_path == kernel.image_path


def test_without_a_config_only_what_functions_prove_is_known(tmp_path: Path) -> None:
    rows = synthetic.symbols()
    rows[5] = (rows[5][0], "t", "mem_cgroup_css_alloc")
    (tmp_path / "bzImage").write_bytes(synthetic.bzimage(synthetic.vmlinux(rows=rows)))
    assert resolve.resolve(parse_kernel(str(tmp_path / "bzImage"))).config == {"MEMCG": "y", "PVH": "y"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/nonexistent/bzImage", "No such file"),
        ("{tmp}", "is a directory"),
        ("deb:/nonexistent.deb", "no such file"),
        ("debian:6.12,config=x", "config= needs"),
        ("running,cmdline=quiet", "started with"),
        ("debian:6.1..6.12", "range is several"),
        ("{tmp}/bzImage,arch=arm64", "image is for x86_64"),
    ],
)
def test_what_cannot_be_resolved_is_one_line(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "bzImage").write_bytes(synthetic.bzimage())
    with pytest.raises(UserError, match=why) as error:
        resolve.resolve(parse_kernel(text.format(tmp=tmp_path)))
    assert "\n" not in str(error.value)


def test_a_backwards_range_says_how_to_write_it() -> None:
    with pytest.raises(UserError, match=r"debian:6\.1\.\.7\.3"):
        debian.find_range("7.3", "6.1", "", "x86_64")


def test_a_range_expands_to_labelled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(upstream: str) -> debver.DebianKernel:
        return debver.DebianKernel(
            release=f"{upstream}+deb13-amd64", upstream=upstream, flavour="", arch="x86_64",
            package=f"linux-binary-{upstream}", package_version=f"{upstream}-1", size_bytes=1,
        )  # fmt: skip

    def fetch(kernel: debver.DebianKernel, progress: object) -> object:
        from kdelta.kernel import ingest

        image = synthetic.bzimage(synthetic.vmlinux(extra=kernel.upstream.encode()))
        return ingest.store("x", image, "", origin="Debian", package=kernel.package, version=kernel.package_version)

    monkeypatch.setattr(debian, "find_range", lambda *_: [one("6.1.192"), one("6.12.117")])
    monkeypatch.setattr(debian, "find", lambda version, *_: one(version.removesuffix("-1")))
    monkeypatch.setattr(debian, "fetch", fetch)
    had: list[str] = []
    specs = [parse_kernel("debian:6.1..6.12"), parse_kernel("s=debian:6.1..6.12,cmdline=quiet")]
    found = resolve.resolve_all(specs, had=lambda kernel: had.append(kernel.release))
    assert had == [kernel.release for kernel in found]
    assert [k.label for k in found] == ["6.1.192", "6.12.117", "s-6.1.192", "s-6.12.117"]
    assert [k.cmdline for k in found] == ["", "", "quiet", "quiet"]


def test_the_running_kernel_needs_no_image(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/version").write_text("Linux version 1.2.3 (here)\n")
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(CONFIG.encode()))
    kernel = resolve_running(parse_kernel("now=running"), tmp_path)
    assert (kernel.label, kernel.release, kernel.image_path) == ("now", platform.release(), "")
    assert kernel.config["PVH"] == "y"
    assert "Linux version 1.2.3" in kernel.origin


def test_the_running_kernels_own_files_come_first(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / f"boot/config-{platform.release()}").write_text(CONFIG.replace("250", "1000"))
    (tmp_path / f"boot/vmlinuz-{platform.release()}").write_bytes(b"image")
    kernel = resolve_running(parse_kernel("running"), tmp_path)
    assert kernel.config["HZ"] == "1000"
    assert kernel.image_path.endswith(platform.release()) and len(kernel.image_sha256) == 64


def test_a_config_is_read_with_strings_numbers_and_unset_options() -> None:
    options = kconfig.parse('CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C="x y"\nCONFIG_D=0x10\n# comment\nrubbish\n')
    assert options == {"A": "y", "B": "n", "C": "x y", "D": "0x10"}
    assert kconfig.facts("") == {}
    assert kconfig.facts("CONFIG_PVH=m\n")["PVH"] == "m"
    assert kconfig.facts("CONFIG_PVH=m\n")["MEMCG"] == "n"
