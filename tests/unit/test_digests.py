# SPDX-License-Identifier: GPL-2.0-or-later
"""Files by their content: a change is always seen, and what is kept in the cache says whether it is whole."""

from __future__ import annotations

import os
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from kdelta import digests

LONG_AGO_NS = 10**9 * 86_400 * 365


def old(path: Path) -> None:
    """Not fresh any more: modified long ago, though its ctime is now."""
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def test_a_file_is_read_once_until_anything_about_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_FRESH_NS", 0)
    (path := tmp_path / "image").write_bytes(b"first")
    monkeypatch.setattr(digests, "_read", lambda path: f"read {path.read_bytes()!r}")
    assert digests.of_file(path) == "read b'first'"
    monkeypatch.setattr(digests, "_read", lambda _: pytest.fail("read again"))
    assert digests.of_file(path) == "read b'first'"


@pytest.mark.parametrize("replace", [True, False])
def test_other_bytes_of_the_same_size_and_time_are_seen(tmp_path: Path, replace: bool) -> None:
    (path := tmp_path / "image").write_bytes(b"first")
    old(path)
    assert digests.of_file(path) == sha256(b"first").hexdigest()
    (other := tmp_path / "other").write_bytes(b"other")
    if replace:
        old(other)
        other.rename(path)
    else:
        path.write_bytes(b"other")
        old(path)
    assert digests.of_file(path) == sha256(b"other").hexdigest()


def test_what_is_kept_is_whole_until_a_bit_of_it_flips(tmp_path: Path) -> None:
    (made := tmp_path / "made").write_bytes(b"\x7fELF program")
    target = tmp_path / "program"
    assert not digests.is_whole(target)
    digests.keep(made, target)
    assert digests.is_whole(target) and not made.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program", "program.sha256"]
    assert (
        subprocess.run(["sha256sum", "--check", "--quiet", "program.sha256"], cwd=tmp_path, check=False).returncode == 0
    )
    content = bytearray(target.read_bytes())
    content[5] ^= 1
    target.write_bytes(content)
    assert not digests.is_whole(target)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", None])
def test_without_a_readable_sum_nothing_is_whole(tmp_path: Path, content: bytes | None) -> None:
    (made := tmp_path / "made").write_bytes(b"x")
    digests.keep(made, tmp_path / "x")
    if content is None:
        (tmp_path / "x.sha256").unlink()
    else:
        (tmp_path / "x.sha256").write_bytes(content)
    assert not digests.is_whole(tmp_path / "x")
