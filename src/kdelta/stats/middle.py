# SPDX-License-Identifier: GPL-2.0-or-later
"""The median of few numbers, as numpy's to the last bit, without numpy.ma, which ``np.median`` loads."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def medians(values: ArrayLike) -> NDArray[np.float64]:
    """The medians along the last axis: shape (..., n) -> (...), nan where a value is nan or n is 0."""
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=-1)
    n = ordered.shape[-1]
    if not n:
        return np.full(ordered.shape[:-1], np.nan)
    middle = (ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2.0 if n % 2 == 0 else ordered[..., n // 2]
    return np.asarray(np.where(np.isnan(ordered[..., -1]), np.nan, middle))


def median(values: ArrayLike) -> float:
    """The median of ``values`` (n,); nan where one is nan or there is none."""
    return float(medians(values))
