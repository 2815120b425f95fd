# SPDX-License-Identifier: GPL-2.0-or-later
"""Growth of counts over batches of operations. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def increments(counts: ArrayLike, ops: float) -> tuple[float, ...]:
    """Growth per operation of each batch, from counts before the first batch and after each (n + 1 -> n).

    Raises:
        ValueError: fewer than two counts, or no operations.
    """
    values = np.asarray(counts, dtype=np.float64)
    if values.ndim != 1 or values.size < 2 or ops <= 0:
        raise ValueError("a slope needs two counts or more, and operations between them")
    return tuple(float(v) for v in np.diff(values) / ops)


def slope(counts: ArrayLike, ops: float) -> float:
    """Growth per operation over all batches: the least-squares line through the counts."""
    values = np.asarray(counts, dtype=np.float64)
    increments(values, ops)  # refuses what has no slope
    return float(np.polyfit(np.arange(values.size) * float(ops), values, 1)[0])


def grows(counts: ArrayLike, ops: float, least: float = 0.5, batches: int = 2) -> bool:
    """Whether every batch grew the count by ``least`` per operation or more, over ``batches`` batches or more.

    Every batch: a cache that fills up grows the count too, but not for ever. A batch is so many operations that
    whatever else a settled guest does stays far below half an object for each.
    """
    steps = increments(counts, ops)
    return len(steps) >= batches and min(steps) >= least
