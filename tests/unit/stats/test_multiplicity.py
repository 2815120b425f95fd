# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kdelta.stats import multiplicity


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_p_values_equal_those_of_scipy(p_values: list[float]) -> None:
    expected = stats.false_discovery_control(p_values, method="bh")
    assert multiplicity.benjamini_hochberg(p_values) == pytest.approx(expected, rel=1e-12)


def test_of_no_p_values_none_is_adjusted() -> None:
    assert multiplicity.benjamini_hochberg([]).size == 0


def test_a_report_starts_without_the_parts_of_scipy_that_take_a_second() -> None:
    code = (
        "import sys, kdelta.cli.report, kdelta.cli.compare; print([m for m in sys.modules if m.startswith('scipy.')])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "scipy.stats" not in loaded and "scipy.optimize" not in loaded
