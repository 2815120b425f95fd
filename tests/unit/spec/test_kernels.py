# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel grammar."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel.sources import parse_kernel, written
from kdelta.spec.kernels import PatchRef


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("running", "running", ""),
        ("./bzImage", "image", "./bzImage"),
        ("/boot/vmlinuz-6.1.0-56-amd64", "image", "/boot/vmlinuz-6.1.0-56-amd64"),
        ("deb:linux-image.deb", "deb", "linux-image.deb"),
        ("linux-image.deb", "deb", "linux-image.deb"),
        ("./kernel.RPM", "rpm", "./kernel.RPM"),
        ("debian:6.12", "debian", "6.12"),
        ("debian:6.12.117+deb13", "debian", "6.12.117+deb13"),
        ("src:./linux", "src", "./linux"),
        ("src:debian:6.12", "src-debian", "6.12"),
    ],
)
def test_every_form_is_parsed(text: str, kind: str, target: str) -> None:
    spec = parse_kernel(text)
    assert (spec.kind, spec.target) == (kind, target)


def test_a_range_keeps_both_ends_and_the_flavour() -> None:
    spec = parse_kernel("debian:6.1..7.3/cloud")
    assert (spec.kind, spec.target, spec.last, spec.flavour) == ("range", "6.1", "7.3", "cloud")


def test_options_and_label_are_split_off() -> None:
    spec = parse_kernel('slow=debian:6.12,cmdline="init_on_alloc=1 a,b",arch=arm64')
    assert (spec.label, spec.cmdline, spec.arch) == ("slow", "init_on_alloc=1 a,b", "arm64")


def test_patches_keep_order_and_sign() -> None:
    spec = parse_kernel("src:./linux@v7.1-rc2+series.mbox-bad.patch+../a-b/c.patch")
    assert (spec.target, spec.ref) == ("./linux", "v7.1-rc2")
    assert spec.patches == (PatchRef("series.mbox"), PatchRef("bad.patch", True), PatchRef("../a-b/c.patch"))


def test_a_reverse_patch_may_follow_a_debian_version_directly() -> None:
    assert parse_kernel("src:debian:6.12-my.patch").patches == (PatchRef("my.patch", True),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a kernel"),
        ("debain:6.12", "not a kernel"),
        ("debian:", "nothing after"),
        ("debian:six", "not a version"),
        ("debian:6.12 debian:7.0", "each kernel is a word, quoted by itself"),
        ("debian:6.12/Cloud!", "not a flavour"),
        ("debian:6.12/arm64", "an architecture, no flavour: debian:6.12,arch=arm64"),
        ("debian:6.1..7.0/amd64", "an architecture, no flavour: debian:6.1..7.0$"),
        ("debian:6.12,cmdlin=x", "unknown option 'cmdlin'"),
        ("6.12,7.0", "'7.0' is no option; each kernel is a word: 6.12 7.0"),
        ("src:./linux,config=", "option 'config' has no value, as in config="),
        ("debian:6.12,cmdline", "option 'cmdline' has no value, as in cmdline="),
        ("debian:6.12,arch=sparc", "unknown arch"),
        ('debian:6.12,cmdline="x', "unbalanced"),
        ("src:./linux@--upload-pack=x", "is not a valid git ref"),
        ("src:./linux+", "patch file is missing"),
        ("src:./linux+a.patch+", "patch file is missing"),
        ("src:./linux+-+a.patch", "patch file is missing"),
        ("a\nb", "control characters"),
    ],
)
def test_a_typo_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse_kernel(text)


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused_but_never_crashes(text: str) -> None:
    try:
        parse_kernel(text)
    except UserError as error:
        assert "\n" not in str(error) or "\n" in text


SPECS = (
    "running", "deb:x y.deb", "debian:6.12.1-2/cloud", "debian:6.1..7.3/rt", "src:debian:6.12-my.patch",
    "6=, ",
    "a=src:./t@v6.1+a.patch-b.patch", "b=\"x,y=z\"", "x=./b,cmdline='say \"hi\" it'\"'\"'s, x',arch=arm64,config=f",
)  # fmt: skip


@given(st.one_of(st.sampled_from(SPECS), st.text(st.sampled_from("ab=:,'\"/@+-. debian6src"), max_size=30)))
@example("deb")
def test_what_is_written_is_read_back(text: str) -> None:
    try:
        spec = parse_kernel(text)
    except UserError:
        return
    assert replace(parse_kernel(written(spec)), text=text) == spec
