# SPDX-License-Identifier: GPL-2.0-or-later
"""One label of several kernels in a history."""

from __future__ import annotations

from kdelta.results.labels import apart
from kdelta.store.rows import HistoryRow


def row(label: str, release: str, image: str) -> HistoryRow:
    return HistoryRow(
        experiment="e", created_at="2026-01-01T00:00:00", mode="exact", tags=(), kernel=label, release=release,
        image_sha256=image, mitigations="default", case="pipe", metric="instructions", unit="", better="lower",
        value=1.0, values=(1.0,),
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
