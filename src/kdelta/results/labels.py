# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of different experiments under one label, told apart where that is a version. Pure.

``6.12.118`` is Debian's image in one experiment and one of kdelta's own config in another, or has another command line:
in a history they were one line, with a step between them that no kernel has. A label of the user's (``next``) is meant
to go on over images.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from kdelta.store.rows import HistoryRow

_DIGITS = 8  # of an image's digest
_NUMBER = re.compile(r"#\d+$")  # of a second kernel of one name


def apart(rows: Sequence[HistoryRow]) -> list[HistoryRow]:
    """``rows``; in place of a label that is the version of several images their release, else with the image too."""
    alike: dict[tuple[str, str], list[HistoryRow]] = {}  # an architecture is told beside each label
    for row in rows:
        alike.setdefault((row.kernel, row.arch), []).append(row)
    versions = {key for key, found in alike.items() if all(_is_version(one.kernel, one.release) for one in found)}
    images = {key: {(one.release, one.image_sha256) for one in alike[key]} for key in versions}
    lines = {key: {one.cmdline for one in alike[key]} for key in versions}
    return [
        replace(row, kernel=_told(row, images[key], lines[key])) if (key := (row.kernel, row.arch)) in versions else row
        for row in rows
    ]


def _is_version(label: str, release: str) -> bool:
    """Whether kdelta made the label of the release: ``6.12.118``, or with its flavour ``6.12.118-cloud``."""
    head, *flavour = _NUMBER.sub("", label).split("-")
    parts = release.split("-")
    return release.startswith(label) or (
        head[:1].isdigit() and release.startswith(head) and all(word in parts for word in flavour)
    )


def _told(row: HistoryRow, images: Collection[tuple[str, str]], lines: Collection[str]) -> str:
    name = row.kernel
    if len(images) > 1:
        alone = sum(release == row.release for release, _ in images) == 1
        name = row.release if alone else f"{row.release} {row.image_sha256[:_DIGITS]}"
    shared = set.intersection(*(set(line.split()) for line in lines))
    return " ".join((name, *(word for word in row.cmdline.split() if word not in shared)))
