# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists of kernels of which some cannot be had: what is left out, why, and what is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.errors import HostError, UserError
from kdelta.kernel import debian, partial
from kdelta.kernel.build import BuildError
from kdelta.kernel.debver import DebianKernel
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Gap, Kernel
from kdelta.model.progress import Quiet
from kdelta.spec.kernels import KernelSpec


def one(upstream: str) -> DebianKernel:
    return DebianKernel(
        release=upstream, upstream=upstream, flavour="", arch="x86_64", package="p",
        package_version=f"{upstream}-1", size_bytes=1,
    )  # fmt: skip


class Archive:
    """A simulated archive of ``versions``, of which those ``unreachable`` cannot be fetched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.versions = ["6.1.9", "6.6.7", "6.12.5"]
        self.unreachable: set[str] = set()
        self.offline = False
        self.fetched: list[str] = []
        monkeypatch.setattr(debian, "find", self.find)
        monkeypatch.setattr(debian, "find_range", self.find_range)
        monkeypatch.setattr(partial, "resolve", self.resolve)

    def find(self, version: str, *_: Any) -> DebianKernel:
        if self.offline:
            raise HostError("apt could not update its index: no route")
        for known in self.versions:
            if known.startswith(version.removesuffix("-1")):
                return one(known)
        raise UserError(f"debian:{version}: not in Debian's archive")

    def find_range(self, *_: Any) -> list[DebianKernel]:
        if self.offline:
            raise HostError("apt could not update its index: no route")
        return [one(version) for version in self.versions]

    def resolve(self, spec: KernelSpec, _progress: Any) -> Kernel:
        upstream = self.find(spec.target).upstream
        self.fetched.append(upstream)
        if upstream in self.unreachable:
            raise HostError(f"apt could not download linux-{upstream}: 404")
        label = spec.label or upstream
        return Kernel(label=label, spec=spec.text, release=upstream, image_path="/i", image_sha256=upstream)


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> Archive:
    return Archive(monkeypatch)


def resolved(*texts: str) -> tuple[Kernel | Gap, ...]:
    return partial.resolve_each([parse_kernel(text) for text in texts], Quiet())


def test_what_cannot_be_fetched_is_absent_and_the_others_are_there(archive: Archive) -> None:
    archive.unreachable = {"6.6.7"}
    found = resolved("debian:6.1..6.12")
    assert [item.label for item in found] == ["6.1.9", "6.6.7", "6.12.5"]
    missing = found[1]
    assert isinstance(missing, Gap) and missing.by_host and "404" in missing.why
    assert all(isinstance(item, Kernel) for item in (found[0], found[2]))


def test_an_absent_kernel_can_be_tried_again_by_what_is_remembered_of_it(archive: Archive) -> None:
    archive.unreachable = {"6.6.7"}
    missing = resolved("debian:6.1..6.12")[1]
    archive.unreachable = set()
    assert isinstance(missing, Gap)
    (again,) = partial.resolve_each([parse_kernel(missing.spec)], Quiet())
    assert isinstance(again, Kernel) and again.release == "6.6.7"


def test_a_range_whose_index_cannot_be_had_is_one_absent_kernel(archive: Archive) -> None:
    archive.offline = True
    (missing,) = resolved("debian:6.1..6.12")
    assert isinstance(missing, Gap) and (missing.label, missing.by_host) == ("6.1..6.12", True)
    (still_open,) = resolved("debian:6.1..,cmdline=quiet")
    assert still_open.label == "6.1..", "it was told as 6.1..9999.0"


@pytest.mark.parametrize(
    "typo", ["debian:9.9", "./no-such-image", "deb:none.deb", "src:./no-such-tree@v1", "src:debian:6.12+no.patch"]
)
def test_a_typo_is_refused_before_anything_is_fetched(archive: Archive, typo: str) -> None:
    with pytest.raises(UserError):
        resolved("debian:6.1", typo)
    assert not archive.fetched


def test_absent_kernels_have_labels_of_their_own(archive: Archive) -> None:
    archive.unreachable = {"6.6.7"}
    found = resolved("6.6.7=debian:6.1", "debian:6.6", "debian:6.6,cmdline=quiet", "x=debian:6.6")
    assert [item.label for item in found] == ["6.6.7", "6.6", "6.6#2", "x"]
    with pytest.raises(UserError, match="label a="):
        resolved("a=debian:6.1", "a=debian:6.6")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("debian:6.12.3-1/cloud", "6.12.3-cloud"),
        ("src:./linux@v6.9+fix.patch", "v6.9+fix"),
        (f"src:./linux@{'0123456789' * 4}+fix.patch", "012345678901+fix"),
        ("src:./linux", "linux"),
        ("src:debian:6.12+-old.patch", "6.12-old"),
        ("./boot/bzImage-1", "bzImage-1"),
        ("mine=./bzImage", "mine"),
    ],
)
def test_an_absent_kernel_is_called_by_what_names_it(text: str, name: str) -> None:
    assert partial.name_of(parse_kernel(text)) == name


def test_a_build_that_fails_is_the_versions_fault_and_a_full_disk_is_not() -> None:
    def failure(line: str) -> HostError:
        error = HostError(f"v6.9 does not build: {line}")
        error.__context__ = BuildError(line, Path("/log"))
        return error

    spec = replace(parse_kernel("src:./linux@v6.9"), label="")
    broken = partial.absent(spec, failure("fs/pipe.c:1: error: x"))
    assert (broken.why, broken.by_host) == ("does not build: fs/pipe.c:1: error: x", False)
    assert partial.absent(spec, failure("cc1: No space left on device")).by_host
