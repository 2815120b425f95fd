# SPDX-License-Identifier: GPL-2.0-or-later
"""Hodges-Lehmann estimate with exact signed-rank interval and p value.

Every function takes differences of shape (..., n), n pairs on the last axis, and works on each row.

Interval and p value count Walsh averages with closed inequalities: an average that equals the tested value counts
against it. Breaking ties and zeros by an arbitrarily small symmetric noise can only lower such a count, so both
stay valid, and merely conservative, for tied and discrete data, and they always agree with each other.
``permutation_p`` is the sharper conditional test, given the ties.

Sources: Hodges & Lehmann, "Estimates of location based on rank tests", Ann. Math. Stat. 34, 1963; Hollander, Wolfe
& Chicken, "Nonparametric Statistical Methods", 2014, ch. 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from kdelta.stats.boundaries import T

Floats = NDArray[np.float64]
Alternative = Literal["two-sided", "greater", "less"]


def _subset_sums(weights: Sequence[int]) -> Floats:
    """Probability of each sum of a random subset of ``weights``: the null distribution of a signed-rank sum."""
    probabilities = np.zeros(sum(weights) + 1)
    probabilities[0] = 1.0
    for weight in weights:
        shifted = np.zeros_like(probabilities)
        shifted[weight:] = probabilities[: probabilities.size - weight]
        probabilities = 0.5 * (probabilities + shifted)
    return probabilities


@lru_cache(maxsize=256)
def null_cdf(n: int) -> Floats:
    """P(V <= v) for v = 0..n(n+1)/2 under the null hypothesis, without ties."""
    cdf = np.minimum(np.cumsum(_subset_sums(range(1, n + 1))), 1.0)
    cdf.setflags(write=False)
    return cdf


@lru_cache(maxsize=256)
def _pairs(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places i <= j of ``n`` differences."""
    return np.triu_indices(n)


def walsh(differences: Floats) -> Floats:
    """Sorted Walsh averages (d_i + d_j) / 2, i <= j: shape (..., n) -> (..., n(n+1)/2)."""
    d = np.asarray(differences, dtype=np.float64)
    first, second = _pairs(d.shape[-1])
    return np.sort((d[..., first] + d[..., second]) / 2.0, axis=-1)


def estimate(averages: Floats) -> Floats:
    """Hodges-Lehmann estimate: the median of the Walsh averages, which are sorted.

    ``np.median`` would load numpy.ma, which nothing else of a report needs.
    """
    n = averages.shape[-1]
    return np.asarray((averages[..., (n - 1) // 2] + averages[..., n // 2]) / 2.0)


def _excluded(n: int, level: float) -> int:
    """How many Walsh averages lie outside a one-sided bound at ``level``; -1 when n is too small for it."""
    return int(np.searchsorted(null_cdf(n), level * (1.0 + 1e-12), side="right")) - 1


def bounds(averages: Floats, n: int, level: float) -> tuple[Floats, Floats]:
    """Lower and upper bound, each one-sided at ``level``; infinite when n pairs cannot reach it.

    A two-sided interval at level p is ``bounds(averages, n, p / 2)``.
    """
    k = _excluded(n, level)
    if k < 0:
        endless = np.full(averages.shape[:-1], np.inf)
        return -endless, endless
    return averages[..., k], averages[..., averages.shape[-1] - 1 - k]


def p_value(averages: Floats, n: int) -> Floats:
    """Two-sided exact p of no difference: the level at which the interval begins to exclude 0."""
    against = np.minimum((averages <= 0).sum(axis=-1), (averages >= 0).sum(axis=-1))
    return np.asarray(np.minimum(1.0, 2.0 * null_cdf(n)[against]))


def _doubled_midranks(values: Floats) -> NDArray[np.int64]:
    """Twice the rank of each value, so that ties, which share the mean of their ranks, are whole numbers too."""
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((2 * np.cumsum(times) - times + 1)[place], dtype=np.int64)


def permutation_p(differences: Floats, alternative: Alternative = "two-sided") -> float:
    """Exact p of one row over all sign changes of its midranks; zeros carry no sign and are left out.

    ``greater`` asks whether the differences lie above 0. 1 when nothing is left.
    """
    d = np.asarray(differences, dtype=np.float64)
    d = d[d != 0]
    if d.size == 0:
        return 1.0
    doubled = _doubled_midranks(np.abs(d))
    probabilities = _subset_sums(doubled.tolist())
    observed = int(doubled[d > 0].sum())
    above, below = float(probabilities[observed:].sum()), float(probabilities[: observed + 1].sum())
    if alternative == "two-sided":
        return min(1.0, 2.0 * min(above, below))
    return min(1.0, above if alternative == "greater" else below)


def paired_t(differences: Floats, level: float) -> tuple[Floats, Floats]:
    """Two-sided paired t interval at ``level``, the cross-check of the signed-rank interval."""
    d = np.asarray(differences, dtype=np.float64)
    n = d.shape[-1]
    if n < 2:
        endless = np.full(d.shape[:-1], np.inf)
        return -endless, endless
    quantile = T.get((n - 1, level)) or -scipy.special.stdtrit(n - 1, level / 2.0)
    half = quantile * d.std(axis=-1, ddof=1) / np.sqrt(n)
    return d.mean(axis=-1) - half, d.mean(axis=-1) + half
