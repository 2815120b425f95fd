# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from kdelta import paths
from unit.report import real_benchstat


@pytest.fixture(scope="session")
def benchstat() -> str:
    """The path of the real benchstat; skips with the reason where there is none."""
    try:
        return real_benchstat.program(paths.cache_dir())
    except real_benchstat.Missing as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def guest_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests that compile the guest: its shipped sources are compiled once."""
    return tmp_path_factory.mktemp("guest-cache")
