# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact metrics: counts that repeat bit for bit, and what to do when seeds move them.

A count per seed and side. Where all seeds agree on both sides the difference is a fact, with interval [d, d].
Where they do not (allocator order, random numbers, timer ticks), the interval spans all pairings of seeds and
the spread over the seeds is the floor that an effect has to exceed.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Direction = Literal["higher", "lower", "same", "undecided"]
MIN_SEEDS = 2
WIDEST_SAME = 5.0  # percent; seeds that spread further cannot show that two kernels are the same
_ROUNDING = 1e-12


class ExactLook(Struct, frozen=True):
    """``effect`` and interval in percent; null when the baseline is 0 and the patched count is not."""

    call: Direction
    repeats: bool  # every seed gives the same count, on both sides
    baseline: float
    patched: float
    effect: float | None
    low: float | None
    high: float | None
    spread: float  # largest relative spread over the seeds of one side, percent


def spread_percent(values: Floats) -> float:
    """Largest over smallest count, in percent; 0 when all are equal, infinite when only some are 0.

    A ratio, as effects are: two sides with the same counts then never differ by more than their spread.
    """
    low, high = float(values.min()), float(values.max())
    if low == high:
        return 0.0
    return 100.0 * (high / low - 1.0) if low > 0 else math.inf


def percent(patched: float, baseline: float) -> float | None:
    """Change in percent; null where the baseline is 0 and the patched figure is not."""
    if baseline == 0:
        return 0.0 if patched == 0 else None
    return 100.0 * (patched / baseline - 1.0)


def _outside(log_effect: float, limit: float) -> bool:
    """Whether a log ratio exceeds a limit in percent, measured alike in both directions."""
    return abs(log_effect) > math.log1p(limit / 100.0) + _ROUNDING


def _log_ratio(patched: float, baseline: float) -> float:
    if patched == baseline:
        return 0.0
    if baseline == 0:
        return math.inf
    return math.log(patched / baseline) if patched > 0 else -math.inf


def look(baseline: Floats, patched: Floats, delta: float, floor: float) -> ExactLook:
    """Judge counts >= 0, one per seed and side, against ``delta`` and the calibrated ``floor`` (percent).

    Raises:
        ValueError: a count is negative or no number, or a side has fewer than two seeds.
    """
    a, b = np.asarray(baseline, dtype=np.float64), np.asarray(patched, dtype=np.float64)
    if min(a.size, b.size) < MIN_SEEDS:
        raise ValueError(f"exact metrics need {MIN_SEEDS} seeds a side, not {a.size} and {b.size}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()) or min(a.min(), b.min()) < 0:
        raise ValueError("an exact count is negative or not finite")
    middle_a, middle_b = float(np.median(a)), float(np.median(b))
    low = _log_ratio(float(b.min()), float(a.max()))
    high = _log_ratio(float(b.max()), float(a.min()))
    effect = _log_ratio(middle_b, middle_a)
    spread = max(spread_percent(a), spread_percent(b))
    repeats = spread == 0.0
    identical = np.array_equal(np.sort(a), np.sort(b))  # however far the seeds lie apart
    return ExactLook(
        call="same" if identical else _call(effect, low, high, repeats, delta, max(floor, spread)),
        repeats=repeats,
        baseline=middle_a,
        patched=middle_b,
        effect=percent(middle_b, middle_a),
        low=percent(float(b.min()), float(a.max())),
        high=percent(float(b.max()), float(a.min())),
        spread=spread,
    )


def _call(effect: float, low: float, high: float, repeats: bool, delta: float, floor: float) -> Direction:
    if repeats:
        return "same" if effect == 0 else ("higher" if effect > 0 else "lower")
    if (low > 0 or high < 0) and _outside(effect, floor):
        return "higher" if low > 0 else "lower"
    limit = max(delta, min(floor, WIDEST_SAME))
    if not _outside(low, limit) and not _outside(high, limit):
        return "same"
    return "undecided"
