# SPDX-License-Identifier: GPL-2.0-or-later
"""A bare Debian for the tests: what it wants, and that it is one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import bare
import container


def test_what_is_lacking_is_named(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "mmdebstrap" else f"/usr/bin/{name}")
    assert bare.main([]) == 1
    assert capfd.readouterr().err == "bare: apt-get install mmdebstrap\n"
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert bare.lacking().endswith("run it as root")


def test_an_unreleased_debian_has_no_security_updates() -> None:
    assert "-security" not in container.sources("sid")


@pytest.mark.full
@pytest.mark.skipif(bool(bare.lacking()), reason=bare.lacking())
def test_a_bare_debian_has_its_own_python_and_this_commit(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = "ls -d README.md .venv /usr/bin/gcc; python3 --version && ls -ld /root"
    assert bare.main(["--release", "bookworm", "--in", str(tmp_path), said]) == 0
    out, err = capfd.readouterr()
    assert "README.md\nPython 3." in out and "drwx------" in out
    assert "'.venv'" in err and "'/usr/bin/gcc'" in err
