# SPDX-License-Identifier: GPL-2.0-or-later
"""How well counts of instructions tell time: their ranks, and how far nanoseconds per instruction spread."""

from __future__ import annotations

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

LEAST = 5  # operations: with fewer, ranks say nothing
_RESAMPLES = 2000
_INTERVAL = (2.5, 97.5)


class Fidelity(Struct, frozen=True, kw_only=True):
    """Times against counts of ``n`` operations.

    ``rank``: Spearman's correlation, with a percentile bootstrap ``rank_interval`` over operations (Efron & Tibshirani
    1993, chapter 13). ``ns_per_count``: the geometric mean. ``spread``: the geometric standard deviation of that ratio,
    1 where every operation has the same: about two of three lie within a factor of it.
    """

    n: int
    rank: float
    rank_interval: tuple[float, float]
    ns_per_count: float
    spread: float


def fidelity(times_ns: NDArray[np.float64], counts: NDArray[np.float64], seed: int = 1) -> Fidelity:
    """Times and counts of the same operations, shape (n,) each, all above 0.

    Raises:
        ValueError: fewer than LEAST operations, other shapes, or a figure that is not above 0.
    """
    times, counted = np.asarray(times_ns, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if times.shape != counted.shape or times.ndim != 1 or times.size < LEAST:
        raise ValueError(f"fidelity needs times and counts of the same {LEAST} operations or more")
    if not (np.isfinite(times).all() and np.isfinite(counted).all() and times.min() > 0 and counted.min() > 0):
        raise ValueError("a time or a count is not above 0")
    ratios = np.log(times / counted)
    random = np.random.default_rng(seed)
    drawn = [_rank(times[some], counted[some]) for some in random.integers(0, times.size, (_RESAMPLES, times.size))]
    low, high = np.percentile([rank for rank in drawn if np.isfinite(rank)], _INTERVAL)
    return Fidelity(
        n=times.size,
        rank=_rank(times, counted),
        rank_interval=(float(low), float(high)),
        ns_per_count=float(np.exp(ratios.mean())),
        spread=float(np.exp(ratios.std(ddof=1))),
    )


def _rank(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Spearman's correlation, as Pearson's of the ranks; nan where a side has one value alone."""
    ranks = [scipy.stats.rankdata(side) for side in (a, b)]
    if min(np.ptp(side) for side in ranks) == 0:
        return float("nan")
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
