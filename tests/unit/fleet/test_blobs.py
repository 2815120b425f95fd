# SPDX-License-Identifier: GPL-2.0-or-later
"""What comes from another host is believed by its sum alone."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from kdelta.errors import HostError
from kdelta.fleet import ship
from kdelta.fleet.blobs import Blobs
from kdelta.kernel import cache
from kdelta.model import Kernel, Quiet
from unit.fleet.fleet_builders import asked

IMAGE = b"a kernel" * 1000


@pytest.fixture(params=["", "file://"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return Blobs(f"{request.param}{tmp_path / 'blobs'}")


def test_a_file_comes_back_by_its_content(blobs: Blobs, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(IMAGE)
    name = blobs.put(tmp_path / "f")
    assert name == hashlib.sha256(IMAGE).hexdigest() == blobs.put(tmp_path / "f")
    blobs.get(name, tmp_path / "there" / "g")
    assert (tmp_path / "there" / "g").read_bytes() == IMAGE


def test_a_damaged_blob_is_refused_and_leaves_nothing(blobs: Blobs, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(IMAGE)
    name = blobs.put(tmp_path / "f")
    (found,) = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    found.write_bytes(b"x" + IMAGE[1:])
    with pytest.raises(HostError, match="is damaged: remove"):
        blobs.get(name, tmp_path / "there" / "g")
    assert list((tmp_path / "there").iterdir()) == []


def test_a_blob_that_is_missing_or_a_place_that_is_none_is_one_line(blobs: Blobs, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="KDELTA_BLOBS"):
        blobs.get("0" * 64, tmp_path / "g")
    with pytest.raises(HostError, match="KDELTA_BLOBS"):
        Blobs("nosuch://x")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel in the cache of the host that asks."""
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "here"))
    sha256 = hashlib.sha256(IMAGE).hexdigest()
    entry = cache.Entry(sha256=sha256, release="6.12", arch="x86_64", form="bzImage")
    stored = cache.put(entry, IMAGE, None, "CONFIG_X=y\n", b"0 T start\n")
    return Kernel(label="a", spec="a", release="6.12", image_path=str(stored.image), image_sha256=sha256)


def test_a_kernel_travels_with_its_config_and_symbols(
    kernel: Kernel, blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parcel = ship.send(kernel, blobs, Quiet())
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "there"))
    (moved,) = ship.here(asked(kernels=(kernel,)), {kernel.image_sha256: parcel}, blobs, Quiet()).kernels
    folder = tmp_path / "there" / "kernels" / kernel.image_sha256
    assert moved == msgspec.structs.replace(kernel, image_path=str(folder / "image"))
    assert (folder / "System.map").read_bytes() == b"0 T start\n" and (folder / "config").exists()
    assert ship.receive(kernel, {}, blobs, Quiet()) == moved, "what is in the cache is not fetched again"


@pytest.mark.parametrize("file", ["image", "../../x"])
def test_another_kernel_in_its_place_is_refused(
    kernel: Kernel, blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    (tmp_path / "evil").write_bytes(b"evil")
    parcel = {**ship.send(kernel, blobs, Quiet()), file: blobs.put(tmp_path / "evil")}
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "there"))
    with pytest.raises(HostError, match=r"another image was sent|which no kernel has"):
        ship.receive(kernel, parcel, blobs, Quiet())
    with pytest.raises(HostError, match="cannot be read"):
        ship.receive(kernel, {}, blobs, Quiet())
