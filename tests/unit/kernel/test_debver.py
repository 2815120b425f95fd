# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.kernel import debver

INDEX = """\
Package: linux-image-6.1.0-56-amd64
Version: 6.1.192-2
Size: 70550672

Package: linux-image-6.1.0-56-cloud-amd64
Version: 6.1.192-2
Size: 26713492

Package: linux-image-6.12-amd64
Version: 6.12.117-1~deb12u1
Depends: linux-image-6.12.117+deb12-amd64
Size: 1476

Package: linux-image-6.12.117+deb12-amd64
Version: 6.12.117-1~deb12u1
Size: 107179464

Package: linux-image-6.12.117+deb13-amd64-unsigned
Version: 6.12.117-1
Size: 108490000

Package: linux-image-6.12.117+deb13-amd64
Version: 6.12.117-1
Size: 108488460

Package: linux-image-6.12.117+deb13-amd64-dbg
Version: 6.12.117-1
Size: 900000000

Package: linux-image-6.12.74+deb13+1-amd64
Version: 6.12.74-2
Size: 108488460

Package: linux-image-7.3.4+deb13-amd64
Version: 7.3.4-1~bpo13+1
Size: 1900

Package: linux-binary-7.3.4+deb13-amd64
Version: 7.3.4-1~bpo13+1
Size: 14138336

Package: linux-base-7.3.4+deb13-amd64
Version: 7.3.4-1~bpo13+1
Size: 1077476

Package: linux-binary-7.3-amd64
Version: 7.3~rc7-1~exp1
Size: 14425180

Package: linux-binary-7.0.13+deb13-amd64
Version: 7.0.13-1~bpo13+1
Size: 13647872

Package: linux-source-6.12
Version: 6.12.117-1
Size: 153474904

Package: linux-source-6.12
Version: 6.12.94-1
Size: 152600404
"""
KERNELS = debver.kernels(INDEX, "x86_64")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("7.3~rc7-1~exp1", "7.3.4-1~bpo13+1"),
        ("6.12.117-1~deb12u1", "6.12.117-1"),
        ("6.12.117-1~bpo13+1", "6.12.117-1"),
        ("6.9.1", "6.12"),
        ("6.12", "6.12.1"),
        ("1.0-1", "1:0.5-1"),
        ("1.0a", "1.0+"),
        ("1.0", "1.0a"),
        ("1.0~", "1.0"),
        ("1.0-1", "1.0-1.1"),
        ("1.0~~", "1.0~"),
    ],
)
def test_versions_order_as_dpkg_orders_them(older: str, newer: str) -> None:
    assert debver.compare(older, newer) == -1
    assert debver.compare(newer, older) == 1


@given(st.lists(st.from_regex(r"\A[0-9][0-9a-z.+~]{0,6}(-[0-9a-z.+~]{1,4})?\Z"), min_size=3, max_size=3))
def test_the_order_is_total(versions: list[str]) -> None:
    for version in versions:
        assert debver.compare(version, version) == 0
    for a, b in itertools.combinations(versions, 2):
        assert debver.compare(a, b) == -debver.compare(b, a)
    a, b, c = sorted(versions, key=debver.version_key)
    assert debver.compare(a, b) <= 0 and debver.compare(b, c) <= 0 and debver.compare(a, c) <= 0


def test_only_packages_with_an_image_are_kernels() -> None:
    assert [(kernel.release, kernel.package.split("-")[1]) for kernel in KERNELS] == [
        ("6.1.0-56-amd64", "image"),
        ("6.1.0-56-cloud-amd64", "image"),
        ("6.12.74+deb13+1-amd64", "image"),
        ("6.12.117+deb12-amd64", "image"),
        ("6.12.117+deb13-amd64", "image"),
        ("7.0.13+deb13-amd64", "binary"),
        ("7.3-amd64", "binary"),
        ("7.3.4+deb13-amd64", "binary"),
    ]


def test_the_signed_package_wins_and_the_config_package_is_known() -> None:
    by_release = {kernel.release: kernel for kernel in KERNELS}
    assert by_release["6.12.117+deb13-amd64"].package == "linux-image-6.12.117+deb13-amd64"
    assert by_release["7.3.4+deb13-amd64"].config_package == "linux-base-7.3.4+deb13-amd64"
    assert by_release["7.0.13+deb13-amd64"].config_package == ""


def test_flavours_stand_before_or_behind_the_architecture() -> None:
    index = "\n\n".join(
        f"Package: linux-image-6.12.117+deb13-{name}\nVersion: 6.12.117-1\nSize: 99999999"
        for name in ("arm64", "arm64-16k", "cloud-arm64", "rt-arm64", "rt-arm64-unsigned")
    )
    assert sorted(kernel.flavour for kernel in debver.kernels(index, "arm64")) == ["", "16k", "cloud", "rt"]


@pytest.mark.parametrize(
    ("version", "flavour", "release"),
    [
        ("6.12", "", "6.12.117+deb13-amd64"),
        ("6.12.117", "", "6.12.117+deb13-amd64"),
        ("6.12.117-1~deb12u1", "", "6.12.117+deb12-amd64"),
        ("6.12.117+deb12", "", "6.12.117+deb12-amd64"),
        ("7.3", "", "7.3.4+deb13-amd64"),
        ("7.3-rc7", "", "7.3-amd64"),
        ("7.3~rc7", "", "7.3-amd64"),
        ("6.1", "cloud", "6.1.0-56-cloud-amd64"),
        ("6.1.192", "", "6.1.0-56-amd64"),
        ("6.1.0-56", "", "6.1.0-56-amd64"),
        ("6.1.0-56-cloud-amd64", "", "6.1.0-56-cloud-amd64"),
    ],
)
def test_a_version_names_the_newest_package_that_fits(version: str, flavour: str, release: str) -> None:
    found = debver.newest(KERNELS, version, flavour)
    assert found is not None and found.release == release


@pytest.mark.parametrize(("version", "flavour"), [("6.13", ""), ("6.12.1", ""), ("7.3", "cloud"), ("6.1", "rt")])
def test_what_is_not_there_is_not_found(version: str, flavour: str) -> None:
    assert debver.newest(KERNELS, version, flavour) is None


def test_a_range_is_the_newest_of_each_series() -> None:
    found = debver.expand(KERNELS, "6.1", "7.3", "")
    assert [kernel.upstream for kernel in found] == ["6.1.192", "6.12.117", "7.0.13", "7.3.4"]
    assert [kernel.upstream for kernel in debver.expand(KERNELS, "6.12", "7.2", "")] == ["6.12.117", "7.0.13"]


def test_a_range_inside_one_series_is_every_version() -> None:
    found = debver.expand(KERNELS, "6.12", "6.12", "")
    assert [kernel.release for kernel in found] == ["6.12.74+deb13+1-amd64", "6.12.117+deb13-amd64"]
    assert [kernel.upstream for kernel in debver.expand(KERNELS, "6.12.80", "6.12.117", "")] == ["6.12.117"]


def test_a_patch_level_cuts_the_end_of_a_range() -> None:
    assert [k.upstream for k in debver.expand(KERNELS, "6.1", "6.12.100", "")] == ["6.1.192", "6.12.74"]


def test_the_nearest_versions_are_named() -> None:
    found = [kernel.upstream for kernel in KERNELS]
    assert debver.nearest(found, "6.12.100", 2) == ["6.12.74", "6.12.117"]
    assert debver.nearest(found, "6.13", 1) == ["6.12.117"]


def test_before_the_first_major_version_the_oldest_are_the_nearest() -> None:
    """The second number says nothing across major versions: of 6.1 to 7.3 the four nearest to 5.10 began with 6.12."""
    found = ["6.1.170", "6.12.117", "6.16.12", "7.0.13", "7.2.4"]
    assert debver.nearest(found, "5.10", 2) == ["6.1.170", "6.12.117"]
    assert debver.nearest(found, "8.1", 2) == ["7.0.13", "7.2.4"]
    assert debver.nearest(found, "6.99", 2) == ["6.12.117", "6.16.12"]


def test_sources_keep_every_version() -> None:
    assert [source.upstream for source in debver.sources(INDEX)] == ["6.12.94", "6.12.117"]
