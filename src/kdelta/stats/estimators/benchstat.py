# SPDX-License-Identifier: GPL-2.0-or-later
"""The rule of benchstat."""

from __future__ import annotations

import numpy as np
import scipy

from kdelta.stats.estimators._common import ALPHA, Boots, Estimate, Estimator, change, direction


def benchstat(baseline: Boots, patched: Boots) -> Estimate:
    """benchstat: Mann-Whitney U over all result lines at 5 %; medians are shown, ``~`` where it finds nothing."""
    a, b = np.concatenate(list(baseline)), np.concatenate(list(patched))
    middle_a, middle_b = float(np.median(a)), float(np.median(b))
    p = float(scipy.stats.mannwhitneyu(a, b, alternative="two-sided").pvalue)
    call = direction(middle_a, middle_b, p < ALPHA)
    shown = change(middle_a, middle_b) if call != "none" else "~"
    return Estimate(call, f"{middle_a:.6g} -> {middle_b:.6g} {shown} (p={p:.3f} n={a.size}+{b.size})")


ESTIMATOR: Estimator = benchstat
