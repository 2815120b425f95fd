# SPDX-License-Identifier: GPL-2.0-or-later
"""A tarball is known by its content."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kdelta import digests, vouched
from kdelta.kernel.origin import tarball


def test_a_tarball_is_summed_again_only_where_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.tar.xz"
    path.write_bytes(b"one")
    monkeypatch.setattr(vouched, "_FRESH_NS", -(1 << 62))  # as if it were old
    first = tarball(path, "debian-x", "Debian x", (6, 12))
    monkeypatch.setattr(digests, "of_file", lambda _: pytest.fail("read again"))
    assert tarball(path, "debian-x", "Debian x", (6, 12)) == first
    monkeypatch.setattr(digests, "of_file", lambda one: hashlib.sha256(one.read_bytes()).hexdigest())
    path.write_bytes(b"two")
    assert tarball(path, "debian-x", "Debian x", (6, 12)).id != first.id
    (tmp_path / ".s.tar.xz.seen").write_text(vouched.stamp((path,)) + "no sum")
    assert tarball(path, "debian-x", "Debian x", (6, 12)).id == f"tar:{hashlib.sha256(b'two').hexdigest()}"
