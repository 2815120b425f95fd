# SPDX-License-Identifier: GPL-2.0-or-later
"""Empty file systems for guest/workloads/files.c, as the words of them that are not zero.

Run where mkfs of each is installed (e2fsprogs, xfsprogs, btrfs-progs, f2fs-tools): ``filesystems.py [NAME...]``. What
is made is kept in the tree, so that every machine measures the same file system, whatever its own mkfs makes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

BYTES = 512 << 20  # what mkfs.xfs takes at least is 300 MiB
_HERE = Path(__file__).resolve().parents[1] / "guest/data/files"
_ID = "6b64656c-7461-4000-8000-000000000001"
# Fixed identities and no time, and what follows is as these programs make it by default.
MADE_BY: dict[str, tuple[str, ...]] = {
    "ext4": ("mke2fs", "-q", "-t", "ext4", "-U", _ID, "-E", f"hash_seed={_ID},lazy_itable_init=1,root_owner=0:0"),
    "xfs": ("mkfs.xfs", "-q", "-m", f"uuid={_ID}"),
    "btrfs": ("mkfs.btrfs", "-q", "-U", _ID),
    "f2fs": ("mkfs.f2fs", "-q"),
}
_FILL = 1 << 63  # a run of one word
_LEAST = 4  # equal words that are told as a run


def image(name: str, folder: Path) -> NDArray[np.uint64]:
    """A new file system, as (BYTES / 8,) words.

    Raises:
        FileNotFoundError: no mkfs.
        subprocess.CalledProcessError: it failed.
    """
    file = folder / name
    with file.open("wb") as out:
        out.truncate(BYTES)
    subprocess.run([*MADE_BY[name], file], check=True, env=os.environ | {"E2FSPROGS_FAKE_TIME": "1"})
    return np.memmap(file, dtype=np.uint64, mode="r")


def runs(words: NDArray[np.uint64]) -> Iterator[tuple[int, list[int]]]:
    """(place, words) of what is not zero; a place with ``_FILL`` is one of equal words: how many, and which."""
    places = np.flatnonzero(words)
    for piece in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(places) else ():
        at, plain, start = int(piece[0]), list[int](), int(piece[0])
        for word, equal in groupby(words[at : int(piece[-1]) + 1].tolist()):
            count = len(list(equal))
            if count < _LEAST:
                plain += [word] * count
            else:
                if plain:
                    yield start, plain
                yield at | _FILL, [count, word]
                plain = []
            at += count
            start = start if plain else at
        if plain:
            yield start, plain


def flat(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each run as its place, its length and its words, one behind the other; little-endian in the file."""
    found: list[int] = []
    for at, run in runs(words):
        found += [at, *run] if at & _FILL else [at, len(run), *run]
    return np.array(found, dtype="<u8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", default=list(MADE_BY), help=", ".join(MADE_BY))
    for name in parser.parse_args().names:
        with tempfile.TemporaryDirectory() as folder:
            flat(image(name, Path(folder))).tofile(_HERE / f"{name}.words")


if __name__ == "__main__":
    main()
