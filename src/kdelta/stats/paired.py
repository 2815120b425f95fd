# SPDX-License-Identifier: GPL-2.0-or-later
"""One look at paired differences: estimate, repeated interval, equivalence, and the word they support.

Rows are independent experiments, so one call judges one cell or thousands of simulated ones.

Sources: Hodges & Lehmann 1963 (estimate), Jennison & Turnbull 1989 (repeated interval), Schuirmann, "A comparison
of the two one-sided tests procedure", J. Pharmacokinet. Biopharm. 15, 1987 (equivalence).
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.stats import signed_rank

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOWER, HIGHER, SAME, UNDECIDED = -1, 1, 2, 0
MIN_PAIRS = 8  # fewer cannot reach the first look of any plan
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
    (-delta, delta); else UNDECIDED.
    """
    d = np.asarray(differences, dtype=np.float64)
    n = d.shape[-1]
    averages = signed_rank.walsh(d)
    low, high = signed_rank.bounds(averages, n, two_sided / 2.0)
    inner_low, inner_high = signed_rank.bounds(averages, n, one_sided)
    same = (inner_low > -delta) & (inner_high < delta)
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


def pairs_needed(sd: float, effect: float, delta: float) -> int:
    """Fresh pairs that would decide: n ~ (2.9 sd / distance)^2, at least the first look's.

    Fresh, because the pairs at hand have spent their plan's error: going on until it is significant is no test. The
    distance is what has to be resolved: the estimate from 0, or from the nearer equivalence bound, whichever is easier.
    """
    distance = max(abs(effect), delta - abs(effect))
    return max(MIN_PAIRS, math.ceil((_POWER * sd / distance) ** 2))
