# SPDX-License-Identifier: GPL-2.0-or-later
"""The rule of lkp-tests."""

from __future__ import annotations

import numpy as np

from kdelta.stats.estimators._common import Boots, Estimate, Estimator, change, direction, relative_sd

_LKP_RATIO = 1.01


def lkp(baseline: Boots, patched: Boots) -> Estimate:
    """lkp-tests: each side's range lies beyond the other's median, and the medians differ by more than 1 %.

    One figure per run there, the mean of its samples here; shown as ``%change +- %stddev`` of means.
    """
    a, b = np.sort([float(np.mean(x)) for x in baseline]), np.sort([float(np.mean(x)) for x in patched])
    middle_a, middle_b = float(a[a.size // 2]), float(b[b.size // 2])  # the upper median, as there
    apart = (b[0] > middle_a and middle_b > a[-1]) or (a[0] > middle_b and middle_a > b[-1])
    larger, smaller = max(middle_a, middle_b), min(middle_a, middle_b)
    differs = bool(apart) and larger > _LKP_RATIO * smaller
    spread = f"{100 * relative_sd(a):.0f} % / {100 * relative_sd(b):.0f} %"
    text = f"{a.mean():.6g} -> {b.mean():.6g} ({change(float(a.mean()), float(b.mean()))}), stddev {spread}"
    return Estimate(direction(middle_a, middle_b, differs), text)


ESTIMATOR: Estimator = lkp
