# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from kdelta import paths
from unit.guest.objects import with_objects
from unit.report import real_benchstat

# How long an example takes is the machine's load.
hypothesis.settings.register_profile("kdelta", deadline=None)
hypothesis.settings.load_profile("kdelta")


@pytest.fixture(scope="session")
def benchstat() -> str:
    """The path of the real benchstat; skips with the reason where there is none."""
    try:
        return real_benchstat.program(paths.cache_dir())
    except real_benchstat.Missing as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def guest_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests that compile the guest, also of several workers: it is compiled once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "guest-cache"
    folder.mkdir(exist_ok=True)
    with_objects(folder)
    return folder
