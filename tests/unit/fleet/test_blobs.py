# SPDX-License-Identifier: GPL-2.0-or-later
"""What comes from another host is believed by its sum alone."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.errors import HostError
from kdelta.fleet import ship
from kdelta.fleet.blobs import Blobs
from kdelta.guest import packing
from kdelta.kernel import cache
from kdelta.model import Case, Kernel, Quiet
from kdelta.spec.program import Program
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


def test_a_directory_of_a_group_stays_the_groups_below(blobs: Blobs, tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs").chmod(0o2775)
    (tmp_path / "f").write_bytes(IMAGE)
    before = os.umask(0o077)
    try:
        name = blobs.put(tmp_path / "f")
    finally:
        os.umask(before)
    folder = tmp_path / "blobs" / name[:2]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o2775
    assert stat.S_IMODE((folder / name).stat().st_mode) == 0o664


def test_two_hosts_of_one_process_number_send_one_blob_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers count their processes from 1."""
    (tmp_path / "f").write_bytes(IMAGE)
    one, other = Blobs(str(tmp_path / "blobs")), Blobs(str(tmp_path / "blobs"))
    files = type(one._connected())
    sent = files.put_file

    def slowly(self: Any, path: str, part: str) -> None:
        monkeypatch.setattr(files, "put_file", sent)
        sent(self, path, part)
        other.put(tmp_path / "f")

    monkeypatch.setattr(files, "put_file", slowly)
    name = one.put(tmp_path / "f")
    assert [p.name for p in (tmp_path / "blobs" / name[:2]).iterdir()] == [name]


def test_a_damaged_blob_is_refused_and_leaves_nothing(blobs: Blobs, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(IMAGE)
    name = blobs.put(tmp_path / "f")
    (found,) = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    found.write_bytes(b"x" + IMAGE[1:])
    with pytest.raises(HostError, match="is damaged: remove"):
        blobs.get(name, tmp_path / "there" / "g")
    assert list((tmp_path / "there").iterdir()) == []


def test_what_is_damaged_on_the_way_is_fetched_again(
    blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(IMAGE)
    name = blobs.put(tmp_path / "f")
    files, came = blobs._connected(), [b"x" * 2 * len(IMAGE), IMAGE]
    monkeypatch.setattr(files, "open", lambda *_: io.BytesIO(came.pop(0)))
    blobs.get(name, tmp_path / "g")
    assert (tmp_path / "g").read_bytes() == IMAGE


def test_a_full_disk_is_this_hosts_and_not_the_blobs_fault(blobs: Blobs, tmp_path: Path) -> None:
    class Full(io.BytesIO):
        name = "/cache/x"

        def write(self, _data: object) -> int:
            raise OSError(28, "No space left on device")

    (tmp_path / "f").write_bytes(IMAGE)
    name = blobs.put(tmp_path / "f")
    with pytest.raises(HostError, match=r"^/cache: No space left on device; free space or set KDELTA_CACHE$"):
        blobs._copied(name, Full())


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
    stored = cache.put(entry, IMAGE, None, "CONFIG_X=y\n", {cache.SYSTEM_MAP: b"0 T start\n", cache.TYPES: b"types"})
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


def test_a_program_travels_with_its_files(blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a suite's program both runs do, and what was sent in its place is refused."""
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "here"))
    (tmp_path / "say.txt").write_text("hello\n")
    once, twice = (
        packing.pack(Program(argv=("cat", *words)), tmp_path).params["pack"]
        for words in (["say.txt"], ["-u", "say.txt"])
    )
    (case,) = [Case(workload="program", params={"pack": twice, "start": once})]
    parcels = ship.send_programs([case, case], blobs, Quiet())
    assert set(parcels) == {once, twice}
    here = {digest: (known.spec.read_bytes(), known.tree.read_bytes()) for digest in parcels
            if (known := packing.known(digest)) and known.tree}  # fmt: skip
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "there"))
    assert packing.known(once) is None
    with pytest.raises(HostError, match="the files that were sent are those of"):
        ship.receive_programs({once: parcels[twice]}, blobs, Quiet())
    with pytest.raises(HostError, match="without what to run"):
        ship.receive_programs({once: {}}, blobs, Quiet())
    ship.receive_programs(parcels, blobs, Quiet())
    for digest in parcels:
        known = packing.known(digest)
        assert known and known.tree and (known.spec.read_bytes(), known.tree.read_bytes()) == here[digest]


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
