# SPDX-License-Identifier: GPL-2.0-or-later
"""The rule of Arm Fastpath."""

from __future__ import annotations

import numpy as np
import scipy

from kdelta.stats.estimators._common import ALPHA, Boots, Estimate, Estimator, Floats, change, direction


def _mean_interval(values: Floats) -> tuple[float, float]:
    if values.size < 2:
        return -np.inf, np.inf
    half = float(scipy.stats.t.isf(ALPHA / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))
    return float(values.mean()) - half, float(values.mean()) + half


def fastpath(baseline: Boots, patched: Boots) -> Estimate:
    """Arm Fastpath: 95 % intervals of the means, over the samples of all sessions, do not overlap."""
    a, b = np.concatenate(list(baseline)), np.concatenate(list(patched))
    (low_a, high_a), (low_b, high_b) = _mean_interval(a), _mean_interval(b)
    mean_a, mean_b = float(a.mean()), float(b.mean())
    call = direction(mean_a, mean_b, low_b > high_a or low_a > high_b)
    mark = {"improved": "(I) ", "regressed": "(R) ", "none": ""}[call]
    return Estimate(call, f"{mark}{mean_a:.6g} -> {mean_b:.6g} ({change(mean_a, mean_b)})")


ESTIMATOR: Estimator = fastpath
