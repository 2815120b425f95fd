# SPDX-License-Identifier: GPL-2.0-or-later
"""One look at paired differences: estimate, repeated interval, equivalence, and the word they support.

Rows are independent experiments, so one call judges one cell or thousands of simulated ones.

Sources: Hodges & Lehmann 1963 (estimate), Jennison & Turnbull 1989 (repeated interval), Schuirmann, "A comparison
of the two one-sided tests procedure", J. Pharmacokinet. Biopharm. 15, 1987 (equivalence).
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.stats import signed_rank
from kdelta.stats.boundaries import CHI

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOWER, HIGHER, SAME, UNDECIDED = -1, 1, 2, 0
MIN_PAIRS = 8  # fewer cannot reach the first look of any plan
MOST_PAIRS = 100_000
_ASSURANCE = 5.0 / 6.0
_WIDEST = 2.0  # deltas that the interval of what is the same may reach to
_LAST_LOOK, _LAST_LOOK_ONE = 2.17, 1.85  # z of the last look of the usual plan: two-sided .0302, one-sided .0325
_SPREAD = np.linspace(-3.0, 3.0, 61)  # standard errors about an estimate, and their weights
_WEIGHTS = np.exp(-(_SPREAD**2) / 2.0) / np.exp(-(_SPREAD**2) / 2.0).sum()
_POWER = 2.9  # z(.975) + z(.83): the effect found five times in six; z(.95) + z(.9) for equivalence


class Look(Struct, frozen=True):
    """Result per row, on the scale of the differences. ``call`` is LOWER, HIGHER, SAME or UNDECIDED."""

    effect: Floats
    low: Floats
    high: Floats
    p: Floats
    call: Ints
    sd: Floats
    agrees: NDArray[np.bool_]  # the paired t interval excludes 0 exactly when ours does


def look(differences: Floats, two_sided: float, one_sided: float, delta: float) -> Look:
    """Judge differences of shape (..., n), n >= 2, at nominal levels of one look; ``delta`` > 0 on their scale.

    LOWER or HIGHER when the two-sided interval excludes 0; else SAME when both one-sided bounds lie inside
    (-delta, delta) and the interval, which is wider by a fifth of noise that is normal, inside twice that; else
    UNDECIDED. Of few values the bounds jump: a kernel that counts 10 or 1000 where the other counts 100 had averages of
    0 between its bounds, and an interval from -90 to +900 %.
    """
    d = np.asarray(differences, dtype=np.float64)
    n = d.shape[-1]
    averages = signed_rank.walsh(d)
    low, high = signed_rank.bounds(averages, n, two_sided / 2.0)
    inner_low, inner_high = signed_rank.bounds(averages, n, one_sided)
    same = (inner_low > -delta) & (inner_high < delta) & (low > -_WIDEST * delta) & (high < _WIDEST * delta)
    call = np.where(high < 0, LOWER, np.where(low > 0, HIGHER, np.where(same, SAME, UNDECIDED)))
    t_low, t_high = signed_rank.paired_t(d, two_sided)
    return Look(
        effect=signed_rank.estimate(averages),
        low=low,
        high=high,
        p=signed_rank.p_value(averages, n),
        call=call,
        sd=d.std(axis=-1, ddof=1),
        agrees=((low > 0) == (t_low > 0)) & ((high < 0) == (t_high < 0)),
    )


def detectable(sd: float, pairs: int) -> float:
    """Smallest effect that ``pairs`` differences with standard deviation ``sd`` would have shown."""
    return _POWER * sd / math.sqrt(pairs)


def _normal(z: Floats) -> Floats:
    """The normal distribution function of some numbers, without loading scipy."""
    return np.array([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in z.tolist()])


def _decided(n: float, sd: float, effects: Floats, delta: float, floor: float) -> Floats:
    """Probability that ``n`` fresh pairs call a difference or sameness, for each true effect; normal approximation."""
    error = sd / math.sqrt(n)
    different = _normal((effects - floor) / error - _LAST_LOOK) + _normal((-effects - floor) / error - _LAST_LOOK)
    inside = _normal((delta - effects) / error - _LAST_LOOK_ONE) - _normal((-delta - effects) / error + _LAST_LOOK_ONE)
    return np.asarray(1.0 - (1.0 - different) * (1.0 - np.maximum(inside, 0.0)))


def pairs_needed(sd: float, effect: float, delta: float, pairs: int, floor: float = 0.0) -> int:
    """Fresh pairs that would decide five times in six, given what ``pairs`` pairs know; at least the first look's.

    METHOD's n ~ (2.9 sd / effect)^2 holds for a known effect. The present estimate is not, and one that just failed
    to be significant is the likelier too large, so its uncertainty is averaged over (assurance: O'Hagan, Stevens &
    Campbell, "Assurance in clinical trial design", Pharmaceutical Statistics 4, 2005); sd is taken at its upper 80 %
    limit (Browne, "On the use of a pilot sample for sample size determination", Statistics in Medicine 14, 1995).
    Fresh, because the present pairs have spent their plan's error: going on until it is significant is no test. At
    most MOST_PAIRS.
    """
    if sd <= 0.0:
        return MIN_PAIRS
    sd *= math.sqrt((pairs - 1) / (CHI.get(pairs - 1) or scipy.special.chdtri(pairs - 1, 0.8)))
    effects = effect + sd / math.sqrt(pairs) * _SPREAD
    low, high = MIN_PAIRS, MOST_PAIRS
    while low < high:
        n = (low + high) // 2
        if float(_WEIGHTS @ _decided(n, sd, effects, delta, floor)) >= _ASSURANCE:
            high = n
        else:
            low = n + 1
    return low
