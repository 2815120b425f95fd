# SPDX-License-Identifier: GPL-2.0-or-later
"""Which QEMU counts guests of several CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.experiment import emulator
from kdelta.model.progress import Quiet

STANZAS = """Package: qemu-system-x86
Version: 1:7.2+dfsg-7+deb12u18

Package: qemu-system-x86
Version: 1:10.0.2+ds-2+deb13u1~bpo12+1

Package: qemu-system-x86
Version: 1:10.0.7+ds-0+deb13u1
"""


def _qemu(folder: Path, version: str) -> str:
    """A program that says a version, as QEMU does."""
    path = folder / "qemu-system-x86_64"
    path.write_text(f"#!/bin/sh\necho 'QEMU emulator version {version} (Debian)'\n")
    path.chmod(0o755)
    return str(path)


def test_the_backport_is_the_one_built_for_debian_12() -> None:
    assert emulator.backport(STANZAS) == "1:10.0.2+ds-2+deb13u1~bpo12+1"
    with pytest.raises(HostError, match="no QEMU 10 for Debian 12"):
        emulator.backport(STANZAS.replace("~bpo12", ""))


def test_a_users_own_qemu_is_taken_where_it_can(tmp_path: Path) -> None:
    found = emulator.for_several_cpus("x86_64", _qemu(tmp_path, "9.0.2"), Quiet())
    assert found.version == (9, 0)


def test_a_users_own_qemu_that_corrupts_guests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"is QEMU 7\.2\.22.*takes 9\.0 or later; leave --qemu out"):
        emulator.for_several_cpus("x86_64", _qemu(tmp_path, "7.2.22"), Quiet())
