# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from kdelta.stats import middle


@given(arrays(np.float64, array_shapes(max_dims=2, max_side=9), elements=st.floats(-1e300, 1e300) | st.just(np.nan)))
def test_it_is_numpys_to_the_last_bit(values: np.ndarray) -> None:
    np.testing.assert_array_equal(middle.medians(values), np.median(values, axis=-1))


def test_of_nothing_there_is_none() -> None:
    assert np.isnan(middle.median([]))


@pytest.mark.parametrize("code", ["from kdelta.stats import middle; middle.median([1, 2])"])
def test_it_loads_no_masked_arrays(code: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print('numpy.ma' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "False\n"
