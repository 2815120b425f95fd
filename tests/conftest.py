# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import pytest
import real_benchstat

from kdelta import paths


@pytest.fixture(scope="session")
def benchstat() -> str:
    """The path of the real benchstat; skips with the reason where there is none."""
    try:
        return real_benchstat.program(paths.cache_dir())
    except real_benchstat.Missing as reason:
        pytest.skip(str(reason))
