# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that a patch brings are built as their users have them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.kernel import source, toolchain
from kdelta.kernel.sources import parse_kernel
from unit.kernel.tiny_tree import patch, planted

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain, "missing", lambda arch: [])
    return planted(tmp_path / "linux")


def test_an_option_that_a_patch_brings_has_its_default_and_no_build_of_its_own(tree: Path, tmp_path: Path) -> None:
    (tree / "Kconfig").write_text("config OLD\n")
    mine = patch(tmp_path, "my.patch", "config OLD\nconfig FRESH\n", "config OLD\n", "Kconfig")
    base = source.resolve_source(parse_kernel(f"src:{tree}"))
    patched = source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))
    assert source.config_differences(base, patched) == ("CONFIG_FRESH: n -> y",)
    assert len(list((tmp_path / "cache").glob("build/*/obj-*/vmlinux"))) == 1
    off = source.resolve_source(parse_kernel(f'src:{tree}+{mine},config="FRESH=n"'))
    assert source.options(off).get("FRESH", "n") == "n"


def test_an_option_that_a_patch_declares_once_more_is_as_it_was(tree: Path, tmp_path: Path) -> None:
    (tree / "Kconfig").write_text("config OLD\n")
    (tree / "fs/Kconfig").write_text("# none\n")
    mine = patch(tmp_path, "my.patch", "config OLD\nconfig FRESH\n", "# none\n", "fs/Kconfig")
    known = patch(tmp_path, "known.patch", "config OLD\nconfig FRESH\n", "config OLD\n", "Kconfig")
    base = source.resolve_source(parse_kernel(f"src:{tree}"))
    patched = source.resolve_source(parse_kernel(f"src:{tree}+{known}+{mine}"))
    assert source.config_differences(base, patched) == ("CONFIG_FRESH: n -> y",)
