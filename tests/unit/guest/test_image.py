# SPDX-License-Identifier: GPL-2.0-or-later
"""The initramfs, read back by cpio(1)."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from kdelta.guest.image import Node, archive, content, initramfs, payload


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


@pytest.mark.skipif(shutil.which("cpio") is None, reason="no cpio: kdelta doctor names the package")
def test_a_programs_files_keep_their_time_of_modification(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (source := tmp_path / "module.py").write_text("x = 1\n")
    os.utime(source, ns=(0, 1_600_000_000_900_000_000))
    packed = archive([("module.py", Node(stat.S_IFREG | 0o644, source)), ("made", Node(stat.S_IFREG | 0o644, b"y"))])
    (out := tmp_path / "out").mkdir()
    subprocess.run(["cpio", "-i", "-m", "--quiet"], input=packed, cwd=out, check=True)
    assert [int((out / name).stat().st_mtime) for name in ("module.py", "made")] == [1_600_000_000, 0]


def test_the_content_is_another_wherever_the_payload_is(tmp_path: Path) -> None:
    for name in ("init", "tool", "tree"):
        (tmp_path / name).write_bytes(name.encode())
    init, tool, tree = (tmp_path / name for name in ("init", "tool", "tree"))
    ways: tuple[tuple[Path, dict[str, Path], str | None, dict[str, Path], tuple[Path, ...]], ...] = (
        (init, {}, None, {}, ()),
        (init, {}, "jobs", {}, ()),
        (init, {}, "other jobs", {}, ()),
        (init, {"a": tool}, "jobs", {}, ()),
        (init, {"b": tool}, "jobs", {}, ()),
        (init, {"a": tree}, "jobs", {}, ()),
        (init, {}, "jobs", {"data/a": tool}, ()),
        (init, {}, "jobs", {"usr/a": tool}, ()),
        (init, {}, "jobs", {}, (tree,)),
        (init, {}, "jobs", {}, (tree, tree)),
        (tool, {}, "jobs", {}, ()),
    )
    assert len({payload(*way) for way in ways}) == len({content(*way) for way in ways}) == len(ways)
    before = content(*ways[0])
    init.write_bytes(b"INIT")
    assert content(*ways[0]) != before
