# SPDX-License-Identifier: GPL-2.0-or-later
"""Our own estimate on the same samples: boots paired in order, without looks or correction."""

from __future__ import annotations

import numpy as np

from kdelta.model import Remark
from kdelta.stats import paired
from kdelta.stats.estimators._common import ALPHA, Boots, Estimate, Estimator, direction


def hodges_lehmann(baseline: Boots, patched: Boots) -> Estimate:
    """Median of the Walsh averages of the log block differences, exact signed-rank interval at 5 % (stats.paired)."""
    n = min(len(baseline), len(patched))
    a, b = (np.array([float(np.median(boot)) for boot in side[:n]]) for side in (baseline, patched))
    if n < 2 or min(a.min(), b.min()) <= 0:
        return Estimate("none", f"{n} pairs", (Remark("few", "fewer than two pairs, or figures of 0"),))
    look = paired.look(np.log(b) - np.log(a), ALPHA, ALPHA, 1.0)
    effect, low, high = (100.0 * float(np.expm1(x)) for x in (look.effect, look.low, look.high))
    differs = low > 0 or high < 0
    few = (Remark("few", f"{n} pairs of at least {paired.MIN_PAIRS}"),) if n < paired.MIN_PAIRS else ()
    return Estimate(direction(0.0, effect, differs), f"{effect:+.2f} % [{low:+.2f}, {high:+.2f}]", few)


ESTIMATOR: Estimator = hodges_lehmann
