# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of exact counts: change and spread in percent. Verdicts on them are in stats.counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def median(values: Floats) -> float:
    """The middle one of some values, or the mean of the two in the middle, as numpy has it and sooner of a few."""
    ordered: list[float] = sorted(values.tolist())
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2


def spread_percent(values: Floats) -> float:
    """Largest over smallest count, in percent; 0 when all are equal, infinite when only some are 0.

    A ratio, as effects are: two sides with the same counts then never differ by more than their spread.
    """
    found: list[float] = values.tolist()
    low, high = min(found), max(found)
    if low == high:
        return 0.0
    return 100.0 * (high / low - 1.0) if low > 0 else math.inf


def percent(patched: float, baseline: float) -> float | None:
    """Change in percent; null where the baseline is 0 and the patched figure is not."""
    if baseline == 0:
        return 0.0 if patched == 0 else None
    return 100.0 * (patched / baseline - 1.0)
