# SPDX-License-Identifier: GPL-2.0-or-later
"""Noisy bisection: a posterior over commits instead of one good-or-bad answer per step.

Student-t(3) noise, so that a bad boot moves the posterior little. The next test is the posterior median
(Horstein 1963; Ben-Or & Hassidim, "The Bayesian learner is optimal for noisy binary search", FOCS 2008). What good
and bad look like is uncertain too: both levels are integrated over, and every third boot is of an end. Without these
boots of the ends, simulated searches for a step of one standard deviation named the wrong commit one time in three.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.stats.drift import without_drift

Floats = NDArray[np.float64]
CONFIDENCE = 0.98  # real noise is not the model's: searches that stopped at 95 % were right 92-96 times in 100
_FREEDOM = 3.0
_LEVELS = 17  # grid of plausible levels of each end
_END_BOOTS = 20  # boots of both ends before the search, and then one of an end for each of the search


class Posterior(Struct, frozen=True):
    """``probability[i]`` that commit i + 1 is the first bad one; commit 0 is good, the last one bad.

    ``found`` is that commit once its probability reaches the confidence, else null and ``next_test`` is the commit
    to boot next.
    """

    probability: tuple[float, ...]
    next_test: int | None
    found: int | None

    @property
    def most_likely(self) -> int:
        """The commit that would be named now."""
        return int(np.argmax(self.probability)) + 1


def _scale(good: Floats, bad: Floats) -> float:
    """Scale of Student-t(3) noise from the deviations of both ends about their own medians."""
    residuals = np.abs(np.concatenate([good - np.median(good), bad - np.median(bad)]))
    # the median absolute deviation of t(3) is 0.765 scales; each end gave up one observation to its median
    correction = np.sqrt(residuals.size / max(residuals.size - 2, 1))
    return max(float(np.median(residuals)) / 0.765 * float(correction), 1e-9)


def _levels(values: Floats, scale: float) -> Floats:
    """A grid about the median as wide as its uncertainty."""
    error = 1.36 * scale / np.sqrt(values.size)  # asymptotic sd of a t(3) median
    return np.asarray(float(np.median(values)) + error * np.linspace(-4.0, 4.0, _LEVELS))


def posterior(
    commits: int,
    tested: Sequence[int],
    values: Sequence[float],
    confidence: float = CONFIDENCE,
    refuted: Collection[int] = (),
) -> Posterior:
    """Where the first bad commit is, from all boots so far.

    Args:
        commits: number of commits in order, 0 known good and ``commits - 1`` known bad.
        tested: the commit of each boot, in the order of the boots; at least three of each end.
        values: log boot median of each boot.
        refuted: commits that were compared with their parents and do not differ from them.

    Raises:
        ValueError: too few boots of an end, a commit out of range, ends that do not differ, or every commit refuted.
    """
    at, x = np.asarray(tested, dtype=int), np.asarray(values, dtype=np.float64)
    if commits < 2 or at.size != x.size or (at.size and not 0 <= at.min() <= at.max() < commits):
        raise ValueError("bisection needs two commits or more and a value for each boot of them")
    good, bad = x[at == 0], x[at == commits - 1]
    if min(good.size, bad.size) < 3:
        raise ValueError(f"bisection needs 3 boots of each end, not {good.size} and {bad.size}")
    if np.median(good) == np.median(bad):
        raise ValueError("the ends do not differ: there is nothing to bisect")
    if len(set(refuted)) >= commits - 1:
        raise ValueError("every commit was refuted: there is nothing left to bisect")
    x = without_drift(x, at == 0, at == commits - 1)
    scale = _scale(x[at == 0], x[at == commits - 1])
    log_weight = scipy.special.logsumexp(_log_evidence(commits, at, x, scale), axis=(0, 1))
    log_weight[[commit - 1 for commit in refuted]] = -np.inf
    probability = np.exp(log_weight - scipy.special.logsumexp(log_weight))
    best = int(np.argmax(probability))
    if probability[best] >= confidence:
        return Posterior(tuple(probability.tolist()), None, best + 1)
    return Posterior(tuple(probability.tolist()), _next(commits, at, probability), None)


def _next(commits: int, at: NDArray[np.int_], probability: Floats) -> int:
    """The end that has too few boots, else the commit that splits the posterior most evenly."""
    of_good, of_bad = int((at == 0).sum()), int((at == commits - 1).sum())
    if of_good + of_bad < _END_BOOTS + (at.size - of_good - of_bad):
        return 0 if of_good <= of_bad else commits - 1
    bad_by = np.cumsum(probability)[:-1]  # probability that commit 1, 2, ... commits - 2 is already bad
    return int(np.argmin(np.abs(bad_by - 0.5))) + 1 if bad_by.size else 0


def _log_evidence(commits: int, at: NDArray[np.int_], x: Floats, scale: float) -> Floats:
    """Log likelihood per good level, bad level and first bad commit: shape (levels, levels, commits - 1)."""
    good, bad = _levels(x[at == 0], scale), _levels(x[at == commits - 1], scale)
    as_good = scipy.stats.t.logpdf((x[None, :] - good[:, None]) / scale, _FREEDOM)
    as_bad = scipy.stats.t.logpdf((x[None, :] - bad[:, None]) / scale, _FREEDOM)

    def per_commit(log_density: Floats) -> Floats:
        sums = np.zeros((_LEVELS, commits))
        for level in range(_LEVELS):
            sums[level] = np.bincount(at, weights=log_density[level], minlength=commits)
        return np.cumsum(sums, axis=1)

    good_until, bad_until = per_commit(as_good), per_commit(as_bad)
    total_bad = bad_until[:, -1:]
    # first bad commit c = 1..commits-1: boots before c are good, the others bad
    before, after = good_until[:, :-1], total_bad - bad_until[:, :-1]
    return before[:, None, :] + after[None, :, :]
