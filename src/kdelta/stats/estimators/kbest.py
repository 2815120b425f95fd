# SPDX-License-Identifier: GPL-2.0-or-later
"""K-best as in LEBench."""

from __future__ import annotations

import numpy as np

from kdelta.stats.estimators._common import Boots, Estimate, Estimator, Floats, change, direction, relative_sd

_K = 5
_K_RATIO = 0.05


def kbest_of(samples: Floats, k: int = _K, ratio: float = _K_RATIO) -> float:
    """K-best as in LEBench: the smallest of the first ``k`` sorted samples each within ``ratio`` of the one before.

    The smallest sample of the last run where no run is that long (LEBench, OS_Eval.c, Ren et al., SOSP 2019).
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    start = 0
    for index in range(1, ordered.size):
        if ordered[index] - ordered[index - 1] > ratio * abs(ordered[index - 1]):
            start = index
        elif index - start + 1 >= k:
            break
    return float(ordered[start])


def kbest(baseline: Boots, patched: Boots) -> Estimate:
    """Median over boots of the K-best per boot; a change larger than the larger RSD of the K-bests counts."""
    a, b = np.array([kbest_of(boot) for boot in baseline]), np.array([kbest_of(boot) for boot in patched])
    middle_a, middle_b = float(np.median(a)), float(np.median(b))
    spread = max(relative_sd(a), relative_sd(b))
    differs = abs(middle_b - middle_a) > spread * abs(middle_a)
    text = f"K-best {middle_a:.6g} -> {middle_b:.6g} ({change(middle_a, middle_b)}), RSD {100 * spread:.2f} %"
    return Estimate(direction(middle_a, middle_b, differs), text)


ESTIMATOR: Estimator = kbest
