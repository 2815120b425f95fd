# SPDX-License-Identifier: GPL-2.0-or-later
"""The initramfs, read back by cpio(1)."""

import shutil
import subprocess

import pytest

from kdelta.guest.image import initramfs


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio(1) is not installed")
def test_cpio_reads_what_was_packed(tmp_path) -> None:  # type: ignore[no-untyped-def]
    archive = initramfs({"init": b"\x7fELF", "data/path_lookup/paths.txt": b"a\n", "jobs": b""})
    listed = subprocess.run(["cpio", "-itv"], input=archive, capture_output=True, check=True).stdout.decode()
    assert "dev/console" in listed
    assert any(row.startswith("-rwxr-xr-x") and row.endswith(" init") for row in listed.splitlines())
    assert any(row.endswith(" data/path_lookup/paths.txt") for row in listed.splitlines())


def test_equal_input_gives_equal_bytes() -> None:
    files = {"init": b"x", "b/c": b"y"}
    assert initramfs(files) == initramfs(dict(reversed(files.items())))
