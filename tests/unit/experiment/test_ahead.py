# SPDX-License-Identifier: GPL-2.0-or-later
"""What a first measurement needs is made beside it, once, and is then in the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.experiment import ahead
from kdelta.guest import binary
from kdelta.kernel import naming
from kdelta.kernel.symbols import SymbolTable
from kdelta.machine import plugin
from kdelta.model import Kernel
from unit.guest.objects import with_objects
from unit.kernel import synthetic


@pytest.fixture(autouse=True)
def _nothing_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command began that another test ran in this process is not of these."""
    monkeypatch.setattr(ahead, "_compiling", [])
    monkeypatch.setattr(ahead, "_reading", [])


def test_the_guests_program_and_the_plugin_are_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path))
    with_objects(tmp_path)
    ahead.begin_compiling()
    ahead.compiled()
    programs, plugins = [*tmp_path.glob(f"guest/*/{binary.NAME}")], [*tmp_path.glob("plugin/*.so")]
    assert (len(programs), len(plugins)) == (1, 1)
    made = [path.stat().st_mtime_ns for path in (*programs, *plugins)]
    assert binary.build("x86_64", cache=tmp_path) == programs[0]
    assert plugin.build(tmp_path) == plugins[0]
    ahead.begin_compiling()
    assert not ahead._compiling
    assert [path.stat().st_mtime_ns for path in (*programs, *plugins)] == made


def test_the_names_of_a_kernel_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "platform.py").write_text("raise SystemExit('a file of who starts kdelta was imported')\n")
    monkeypatch.chdir(tmp_path)
    image = tmp_path / "vmlinux"
    image.write_bytes(synthetic.vmlinux())
    kernel = Kernel(
        label="mine", spec="m", release="6.12", image_path=str(image), image_sha256="", vmlinux_path=str(image)
    )
    ahead.begin_reading(kernel)
    ahead.read()
    assert naming.cached_path(image).exists()
    assert isinstance(naming.load(kernel), SymbolTable)
    ahead.begin_reading(kernel)
    assert not ahead._reading


def test_what_cannot_be_read_is_left_to_who_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    ahead.begin_reading(Kernel(label="away", spec="m", release="6.12", image_path="", image_sha256=""))
    assert not ahead._reading
    image = tmp_path / "vmlinux"
    image.write_bytes(b"none")
    ahead.begin_reading(
        Kernel(label="bad", spec="m", release="6.12", image_path=str(image), image_sha256="", vmlinux_path=str(image))
    )
    ahead.read()
    assert not ahead._reading
