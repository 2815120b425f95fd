# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import hashlib
import random
import subprocess
from pathlib import Path

import pytest
import zstandard
from msgspec.structs import replace

import made_packages
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
@pytest.mark.parametrize("payload", ["w3.zstdio", "w2.xzdio", "w9.gzdio", "w9.bzdio", "w7.lzdio", "w.ufdio"])
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


def test_a_list_of_packages_in_a_packages_clothes_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.rpm"
    path.write_bytes(rpm.MAGIC + b"\nhttp://127.0.0.1:9/kernel.rpm\n/etc/hosts\n" * 50)
    with pytest.raises(UserError, match="not a readable RPM package"):
        check([parse_kernel(f"rpm:{path}")])


@needs_rpm
@pytest.mark.parametrize("other", ["boot/vmlinuz-6.12", "lib/modules/6.12/a", "lib/modules/6.12/z"])
def test_a_kernel_with_several_names_is_taken_by_any_of_them(tmp_path: Path, other: str) -> None:
    kernel = tmp_path / "root" / "lib" / "modules" / "6.12" / "vmlinuz"
    for path in (kernel, tmp_path / "root" / other):
        path.parent.mkdir(parents=True, exist_ok=True)
    kernel.write_bytes(b"kernel")
    (tmp_path / "root" / other).hardlink_to(kernel)
    listed = "/lib/modules" if other.startswith("lib") else "/boot\n/lib/modules"
    assert rpm.read_kernel(rpms.package(tmp_path, {}, listed=listed)).image == b"kernel"


@needs_rpm
@pytest.mark.parametrize("epoch", ["", "Epoch: 3"])
@pytest.mark.parametrize("source", [False, True])
def test_what_a_package_is_called_is_what_rpm_says(tmp_path: Path, epoch: str, source: bool) -> None:
    path = rpms.package(tmp_path, BOOT, more=epoch, source=source)
    asked = ["rpm", "--query", "--nosignature", "--queryformat", "%{NAME}\n%{VERSION}-%{RELEASE}\n%{ARCH}", "-p"]
    told = subprocess.run([*asked, str(path)], capture_output=True, text=True, check=True).stdout
    assert rpm.fields(path) == tuple(told.split("\n"))
    assert rpm.read_kernel(path).image == (b"" if source else b"kernel")


FILES = {"/boot/config-6.12": CONFIG, "/boot/vmlinuz-6.12": b"kernel", "/lib/modules/6.12/System.map": b"map"}
BY_PATH = {f".{name}": content for name, content in FILES.items()}
PAYLOAD = made_packages.cpio(BY_PATH)


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _built(values: dict[int, made_packages.Values], payload: bytes = PAYLOAD) -> bytes:
    return made_packages.header(63, {**made_packages.BUILD, **values}) + payload


def _digests(header: bytes) -> dict[int, made_packages.Values]:
    return {
        269: hashlib.sha1(header).hexdigest(), 273: hashlib.sha256(header).hexdigest(),
        279: hashlib.sha3_256(header).hexdigest(), 999: bytes(32),
    }  # fmt: skip


def _of_payload(payload: bytes) -> dict[int, made_packages.Values]:
    return {
        5092: [hashlib.sha256(payload).hexdigest()], 5097: ["0" * 64],
        5121: hashlib.sha512(payload).hexdigest(), 5123: hashlib.sha3_256(payload).hexdigest(),
    }  # fmt: skip


def _of_version_6(payload: bytes, digests: bytes, **changed: made_packages.Values) -> bytes:
    """A package as rpm 6 makes it, whose payload has no names and no sizes, with right digests but for some."""
    lists = made_packages.listed(FILES, "Q")
    found = {**lists, 1125: "zstd", 5114: ("I", [6]), **_of_payload(digests)}
    header = made_packages.header(
        63, {**made_packages.BUILD, **found, **{int(tag): one for tag, one in changed.items()}}
    )
    return made_packages.sealed_rpm(header + payload, _digests(header))


def test_a_package_of_version_6_is_read(tmp_path: Path) -> None:
    payload = zstandard.compress(made_packages.own_cpio(list(FILES.values())))
    path = _written(tmp_path / "a.rpm", _of_version_6(payload, payload))
    files = rpm.read_kernel(path)
    assert (files.image, files.config, files.system_map) == (b"kernel", CONFIG, b"map")
    path.write_bytes(_of_version_6(payload, payload + b"x"))
    with pytest.raises(UserError, match="its digests do not match"):
        rpm.read_kernel(path)


@pytest.mark.parametrize("tag", [269, 273, 279])
def test_each_digest_of_the_header_must_be_right(tmp_path: Path, tag: int) -> None:
    data = _built(_of_payload(PAYLOAD))
    right = _digests(data[: -len(PAYLOAD)])
    path = _written(tmp_path / "a.rpm", made_packages.sealed_rpm(data, right))
    assert rpm.read_kernel(path).image == b"kernel"
    for wrong in (str(right[tag])[:-1], "0" * len(right[tag]), [str(right[tag])], b"x" * 32):
        path.write_bytes(made_packages.sealed_rpm(data, {**right, tag: wrong}))
        with pytest.raises(UserError, match="its header is not what its digest says"):
            rpm.fields(path)


@pytest.mark.parametrize("tag", [5092, 5121, 5123])
def test_each_digest_of_the_payload_must_be_right_or_its_other_one(tmp_path: Path, tag: int) -> None:
    right = _of_payload(PAYLOAD)
    wrong = _of_payload(b"something else")

    def taken(**values: made_packages.Values) -> bool:
        path = _written(
            tmp_path / "a.rpm", made_packages.sealed_rpm(_built({int(one[1:]): values[one] for one in values}))
        )
        try:
            return rpm.read_kernel(path).image == b"kernel"
        except UserError as error:
            assert "its digests do not match" in str(error)
            return False

    other = {5092: 5097, 5121: 5122, 5123: 5124}[tag]
    assert taken(**{f"_{tag}": right[tag]}) and not taken(**{f"_{tag}": wrong[tag]})
    assert taken(**{f"_{tag}": wrong[tag], f"_{other}": right[tag]})
    assert not taken(**{f"_{tag}": wrong[tag], f"_{other}": wrong[tag]}) and not taken(**{f"_{other}": wrong[tag]})
    assert not taken(**{f"_{tag}": ("I", [1])})


@pytest.mark.parametrize(
    "digests", [{1000: ("I", [9])}, {269: "both", 273: "both"}, {1004: b"short"}, {1004: "x" * 16}]
)
def test_a_package_without_digests_of_all_of_it_is_refused(
    tmp_path: Path, digests: dict[int, made_packages.Values]
) -> None:
    data = _built({})
    right = _digests(data[: -len(PAYLOAD)])
    found = {tag: right[tag] if value == "both" else value for tag, value in digests.items()}
    with pytest.raises(UserError, match=r"damaged, its digests (are missing|do not match); is the download complete"):
        rpm.read_kernel(_written(tmp_path / "a.rpm", made_packages.sealed_rpm(data, found)))


TINY = Path(__file__).parents[2] / "data" / "packages" / "tiny.rpm"


def test_no_byte_of_a_package_changes_what_is_read_of_it(tmp_path: Path) -> None:
    whole, good, path = TINY.read_bytes(), rpm.read_kernel(TINY), tmp_path / "a.rpm"
    dice, taken = random.Random(3), 0
    for at in dice.sample(range(len(whole)), 700):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << dice.randrange(8)]) + whole[at + 1 :])
        try:
            assert rpm.read_kernel(path) == good
            taken += 1
        except UserError:
            pass
    assert 0 < taken < 550  # the lead's name, and space for signatures, which is most of this package


def test_a_package_that_ends_anywhere_is_refused(tmp_path: Path) -> None:
    whole, path = TINY.read_bytes(), tmp_path / "a.rpm"
    for keep in (*range(0, len(whole), 23), len(whole) - 1):
        path.write_bytes(whole[:keep])
        with pytest.raises(UserError):
            rpm.read_kernel(path)


@needs_rpm
def test_what_rpm_refuses_is_refused(tmp_path: Path) -> None:
    whole, path, dice = TINY.read_bytes(), tmp_path / "a.rpm", random.Random(4)
    for at in dice.sample(range(4500), 60):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        asked = ["rpmkeys", "--checksig", "--nosignature", str(path)]
        if subprocess.run(asked, capture_output=True, check=False).returncode:
            with pytest.raises(UserError):
                rpm.read_kernel(path)


@pytest.mark.parametrize("tag", [1000, 1001, 1002])
@pytest.mark.parametrize("text", ["", "a\x1b[2J", "a b", "\u202e"])
def test_a_package_without_a_plain_name_is_refused(tmp_path: Path, tag: int, text: str) -> None:
    with pytest.raises(UserError, match="its header gives no valid"):
        rpm.fields(_written(tmp_path / "a.rpm", made_packages.sealed_rpm(_built({tag: text}))))


@pytest.mark.parametrize("lead", [b"\2", b"\5", b""])
def test_a_package_of_another_version_is_refused(tmp_path: Path, lead: bytes) -> None:
    data = made_packages.sealed_rpm(_built({}))
    with pytest.raises(UserError, match="its first 96 bytes are damaged"):
        rpm.fields(_written(tmp_path / "a.rpm", data[:4] + lead + data[5:] if lead else data[:50]))


@pytest.mark.parametrize(
    ("values", "payload"),
    [
        ({1125: "lz4"}, PAYLOAD),
        ({1125: "xz"}, PAYLOAD),
        ({}, b"drpm"),
        ({}, PAYLOAD[:-200]),
        ({}, made_packages.own_cpio([b"x"])),
        ({**made_packages.listed(FILES), 1028: ("I", [1, 2])}, made_packages.own_cpio([b"x"])),
        ({**made_packages.listed(FILES), 1030: ("H", [1])}, made_packages.own_cpio([b"x"])),
        ({**made_packages.listed(FILES), 1116: ("I", [0, 1, 2])}, made_packages.own_cpio([b"x"])),
        ({**made_packages.listed(FILES), 1028: ("I", [1 << 20] * 3)}, made_packages.own_cpio([b"x"])),
        (made_packages.listed({"/boot/x": b"x"}), made_packages.own_cpio([b"x", b"y"])),
    ],
)
def test_a_payload_that_is_not_what_the_header_says_is_refused(
    tmp_path: Path, values: dict[int, made_packages.Values], payload: bytes
) -> None:
    path = _written(tmp_path / "a.rpm", made_packages.sealed_rpm(_built(values, payload)))
    with pytest.raises(UserError, match="its data cannot be read"):
        rpm.read_kernel(path)


def test_files_that_are_listed_and_not_there_have_no_content(tmp_path: Path) -> None:
    files = {
        "/boot/vmlinuz-1": b"ghost",
        "/boot/vmlinuz-2": b"",
        "/boot/vmlinuz-3": b"link",
        "/boot/vmlinuz-4": b"kernel",
    }
    lists = made_packages.listed(files)
    lists |= {1037: ("I", [64, 0, 0, 0]), 1028: ("I", [5, 6, 4, 6]), 1030: ("H", [0o100644] * 2 + [0o120777, 0o100644])}
    lists |= {1095: ("I", [1] * 4), 1096: ("I", [7, 7, 8, 7])}  # the second and the fourth are one file
    data = _built(lists, made_packages.own_cpio([b"", b"", b"link", b"kernel"]))
    path = _written(tmp_path / "a.rpm", made_packages.sealed_rpm(data))
    assert rpm.read_kernel(path).image == b"kernel"
    lists[1117] = ["vmlinuz-1", "vmlinuz-2", "vmlinuz-3", "other"]  # the content comes by a name that says nothing
    data = _built(lists, made_packages.own_cpio([b"", b"", b"link", b"kernel"]))
    assert rpm.read_kernel(_written(path, made_packages.sealed_rpm(data))).image == b"kernel"
