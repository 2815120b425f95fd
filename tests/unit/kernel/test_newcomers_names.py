# SPDX-License-Identifier: GPL-2.0-or-later
"""What somebody types as a kernel who has not read the grammar: taken, or answered with the name that was meant."""

from __future__ import annotations

import pytest

from kdelta.errors import UserError
from kdelta.kernel.sources import image, parse_kernel


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("6.12", "debian:6.12"),
        ("v6.12", "debian:6.12"),
        ("6.12.43", "debian:6.12.43"),
        ("old=v6.12", "old=debian:6.12"),
        ("v6.1..v7.3", "debian:6.1..7.3"),
        ('6.12,cmdline="init_on_alloc=0"', 'debian:6.12,cmdline="init_on_alloc=0"'),
        ("debian:v6.12", "debian:6.12"),
        ("src:debian:v6.12+a.patch", "src:debian:6.12+a.patch"),
    ],
)
def test_a_version_alone_is_debians(typed: str, meant: str) -> None:
    got, wanted = parse_kernel(typed), parse_kernel(meant)
    fields = ("kind", "target", "last", "label", "cmdline", "patches")
    assert [getattr(got, name) for name in fields] == [getattr(wanted, name) for name in fields]
    assert "debian:" in got.text  # the report shows a name that says what it is


@pytest.mark.parametrize("typed", ["./6.12", "6.12/bzImage", "linux-6.12", "6", "6.12-generic", "v6", "bzImage"])
def test_what_may_be_a_file_stays_one(typed: str) -> None:
    assert parse_kernel(typed).kind == "image"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("debian:6.12+my.patch", "src:debian:6.12+my.patch"),
        ("a=debian:6.12+../x/my.patch", "a=src:debian:6.12+../x/my.patch"),
        ("debian:6.12-./my.mbox", "src:debian:6.12-./my.mbox"),
        ("Debian:6.12", "did you mean debian:6.12?"),
        ("debain:6.12", "did you mean debian:6.12?"),
        ("ubuntu:6.8", "deb:FILE or rpm:FILE"),
        ("https://kernel.org/x.xz", "download an image or a package and name the file"),
        ("git@kernel.org:linux.git", "clone a repository and name it as in src:./linux@v6.12"),
        ("debian:stable", "not a version such as 6.12"),
        ("my kernel=debian:6.12", "'my kernel' is no label: one begins with a letter or digit"),
        ("=debian:6.12", "'' is no label"),
        ("-x=debian:6.12", "'-x' is no label"),
        ("x" * 65 + "=debian:6.12", "at most 64"),
        ("a=", "no kernel behind the label, as in a=debian:6.12"),
    ],
)
def test_what_was_meant_is_told(typed: str, told: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_kernel(typed)
    assert told in str(refused.value)


@pytest.mark.parametrize("typed", ["debian:6.12.43+deb13", "debian:6.12.43-1~bpo12+1", "debian:6.12-1/cloud", "./a=b"])
def test_versions_and_paths_with_signs_are_no_patches_or_labels(typed: str) -> None:
    assert parse_kernel(typed).label == ""


def test_kernels_quoted_as_one_word_are_told_apart() -> None:
    assert image._meant("6.12 debian:7.0").endswith("each kernel is a word of its own: 6.12 debian:7.0")
    assert "word of its own" not in image._meant("my kernel")


def test_debians_releases_are_known_with_another_sign() -> None:
    for typed in ("debian/6.12", "debian-6.12", "Debian6.12", "debian_v6.12"):
        assert image._meant(typed) == "; did you mean debian:6.12?"
    assert "did you mean" not in image._meant("debian/linux/vmlinuz")
