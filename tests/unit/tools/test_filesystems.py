# SPDX-License-Identifier: GPL-2.0-or-later
"""File systems that are kept as their words: written again, they are what was recorded."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import filesystems
from kdelta.paths import shipped

FILL = 1 << 63


def written(flat: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """As guest/workloads/files_disk.c writes it."""
    words, at = np.zeros(size, dtype=np.uint64), 0
    while at < len(flat):
        place, count = int(flat[at]), int(flat[at + 1])
        if place & FILL:
            words[place ^ FILL : (place ^ FILL) + count] = flat[at + 2]
            at += 3
        else:
            words[place : place + count] = flat[at + 2 : at + 2 + count]
            at += 2 + count
    return words


@given(st.lists(st.sampled_from([0, 0, 0, 1, 1, 1, 1, 2, FILL, 2**64 - 1]), max_size=60))
def test_what_is_recorded_is_written_again(words: list[int]) -> None:
    image = np.array(words, dtype=np.uint64)
    assert written(filesystems.flat(image), len(words)).tolist() == words


def test_runs_of_equal_words_are_told_once() -> None:
    image = np.array([0, 5, 6, *[7] * 100, 8, 0], dtype=np.uint64)
    assert list(filesystems.runs(image)) == [(1, [5, 6]), (3 | FILL, [100, 7]), (103, [8])]


@pytest.mark.skipif(shutil.which("e2fsck", path="/usr/sbin:/sbin") is None, reason="e2fsprogs is not installed")
def test_the_recorded_ext4_is_a_sound_one(tmp_path: Path) -> None:
    flat = np.fromfile(shipped("guest") / "data/files/ext4.words", dtype="<u8")
    disk = tmp_path / "disk"
    np.memmap(disk, dtype=np.uint64, mode="w+", shape=(filesystems.BYTES // 8,))[:] = written(
        flat, filesystems.BYTES // 8
    )
    program = shutil.which("e2fsck", path="/usr/sbin:/sbin")
    done = subprocess.run([str(program), "-f", "-n", disk], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


MAGIC = {
    "ext4": (0x438, b"\x53\xef"),
    "xfs": (0, b"XFSB"),
    "btrfs": (0x10040, b"_BHRfS_M"),
    "f2fs": (0x400, b"\x10\x20\xf5\xf2"),
}


@pytest.mark.parametrize("name", list(filesystems.MADE_BY))
def test_each_recorded_file_system_fits_the_guests_buffer_and_says_which_it_is(name: str) -> None:
    flat = np.fromfile(shipped("guest") / f"data/files/{name}.words", dtype="<u8")
    assert len(flat) < 1 << 14  # words[] in files_disk.c
    first = written(flat, filesystems.BYTES // 8)[: (128 << 10) // 8].tobytes()
    at, text = MAGIC[name]
    assert first[at : at + len(text)] == text
