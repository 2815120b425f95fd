# SPDX-License-Identifier: GPL-2.0-or-later
"""One label of several kernels in a history."""

from __future__ import annotations

from kdelta.results.labels import apart
from kdelta.store.rows import HistoryRow


def row(label: str, release: str, image: str, cmdline: str = "", arch: str = "x86_64") -> HistoryRow:
    return HistoryRow(
        experiment="e", created_at="2026-01-01T00:00:00", mode="exact", tags=(), kernel=label, release=release,
        image_sha256=image, mitigations="default", case="pipe", metric="instructions", unit="", better="lower",
        value=1.0, values=(1.0,), cmdline=cmdline, arch=arch,
    )  # fmt: skip


def told(*rows: HistoryRow) -> list[str]:
    return [one.kernel for one in apart(rows)]


def test_a_version_that_is_several_images_is_told_by_their_release() -> None:
    """6.12.118 of Debian's and of kdelta's own config was one line of a chart, with a step of 23 % in it."""
    debian, built = row("6.12.118", "6.12.118+deb13-amd64", "a" * 64), row("6.12.118", "6.12.118", "b" * 64)
    assert told(debian, built, debian) == ["6.12.118+deb13-amd64", "6.12.118", "6.12.118+deb13-amd64"]
    assert told(debian, debian) == ["6.12.118", "6.12.118"]
    other = row("6.12.118", "6.12.118", "c" * 64)
    assert told(debian, built, other) == ["6.12.118+deb13-amd64", "6.12.118 bbbbbbbb", "6.12.118 cccccccc"]


def test_a_label_of_the_users_goes_on_over_images() -> None:
    assert told(row("next", "6.19.0-next-1", "a"), row("next", "6.19.0-next-2", "b")) == ["next", "next"]


def test_a_version_with_a_flavour_is_one_too() -> None:
    debian, built = (
        row("6.12.118-cloud", "6.12.118+deb13-cloud-amd64", "a"),
        row("6.12.118-cloud", "6.12.118-cloud", "b"),
    )
    assert told(debian, built) == ["6.12.118+deb13-cloud-amd64", "6.12.118-cloud"]
    assert told(row("next-cloud", "6.12-cloud", "a"), row("next-cloud", "6.13-cloud", "b")) == ["next-cloud"] * 2


def test_one_version_of_two_architectures_has_one_name_and_the_architecture_beside_it() -> None:
    """pidfd_open of 6.12.118-cloud was 3570 and 3054 in one column: arm64, and x86-64."""
    arm = row("6.12.118-cloud", "6.12.118+deb13-cloud-arm64", "a", arch="arm64")
    x86 = row("6.12.118-cloud", "6.12.118+deb13-cloud-amd64", "b")
    assert [one.kernel + one.guests for one in apart([arm, x86])] == ["6.12.118-cloud, arm64", "6.12.118-cloud"]


def test_one_image_with_two_command_lines_is_told_by_what_they_do_not_share() -> None:
    plain, other = (
        row("6.12.118", "6.12.118+deb13-amd64", "a", cmdline=line) for line in ("quiet", "quiet init_on_alloc=0")
    )
    assert told(plain, other) == ["6.12.118", "6.12.118 init_on_alloc=0"]
    assert told(other, other) == ["6.12.118", "6.12.118"]
