# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of different experiments under one label, told apart where that is a version. Pure.

``6.12.118`` is Debian's image in one experiment and one of kdelta's own config in another: in a history they were one
line, with a step between them that no kernel has. A label of the user's (``next``) is meant to go on over images.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kdelta.store.rows import HistoryRow

_DIGITS = 8  # of an image's digest


def apart(rows: Sequence[HistoryRow]) -> list[HistoryRow]:
    """``rows``; in place of a label that is the version of several images their release, else with the image too."""
    images: dict[str, set[tuple[str, str]]] = {}
    for row in rows:
        images.setdefault(row.kernel, set()).add((row.release, row.image_sha256))
    several = {
        label: found
        for label, found in images.items()
        if len(found) > 1 and all(release.startswith(label) for release, _ in found)
    }
    return [replace(row, kernel=_told(row, several[row.kernel])) if row.kernel in several else row for row in rows]


def _told(row: HistoryRow, images: Iterable[tuple[str, str]]) -> str:
    alone = sum(release == row.release for release, _ in images) == 1
    return row.release if alone else f"{row.release} {row.image_sha256[:_DIGITS]}"
