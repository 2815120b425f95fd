# SPDX-License-Identifier: GPL-2.0-or-later
"""The maps of images in the cache (``experiment/reach.py``), for pruning. All of them can be counted again."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct

from kdelta.kernel.cache import disk_error
from kdelta.kernel.trees import size_bytes
from kdelta.paths import cache_dir

_NAME_CHARS = 16  # of the image's sha256


class Map(Struct, frozen=True, kw_only=True):
    """The rows of one image. ``counted_s`` is when the last one was counted, in seconds since the epoch."""

    name: str
    folder: Path
    counted_s: float
    size_bytes: int


def folder_of(image_sha256: str) -> Path:
    """Where the rows of an image are kept."""
    return cache_dir() / "reach" / image_sha256[:_NAME_CHARS]


def maps() -> Iterator[Map]:
    """All maps, by name."""
    root = cache_dir() / "reach"
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if folder.is_dir():
            yield Map(name=folder.name, folder=folder, counted_s=folder.stat().st_mtime, size_bytes=size_bytes(folder))


def doomed(
    found: Collection[Map], *, gone: Collection[str], kept: Collection[str], now_s: float, older_than_s: float | None,
    everything: bool,
) -> list[Map]:  # fmt: skip
    """The maps that a prune removes: of images that go (``gone``, sha256), of old counts, or all but ``kept``. Pure."""
    going, staying = ({image[:_NAME_CHARS] for image in images} for images in (gone, kept))
    return [
        one
        for one in found
        if one.name in going
        or (
            one.name not in staying
            and (everything or (older_than_s is not None and now_s - one.counted_s > older_than_s))
        )
    ]


def remove(one: Map) -> None:
    """Delete the rows of an image.

    Raises:
        HostError: not permitted.
    """
    try:
        shutil.rmtree(one.folder)
    except OSError as error:
        raise disk_error(error, one.folder) from None
