# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.model import Kernel


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    image = tmp_path / "vmlinuz"
    image.write_bytes(b"kernel")
    return Kernel(
        label="a", spec="a", release="6.12.1", image_path=str(image), image_sha256="0", build_id="ab" * 20
    )  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
