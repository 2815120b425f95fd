# SPDX-License-Identifier: GPL-2.0-or-later
"""Many cells at once: which p values survive.

Sources: Benjamini & Hochberg, "Controlling the false discovery rate", JRSS B 57, 1995; Holm, "A simple sequentially
rejective multiple test procedure", Scand. J. Statist. 6, 1979.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def benjamini_hochberg(p_values: Sequence[float]) -> Floats:
    """Adjusted p: those at or below alpha hold at most a share alpha of false discoveries, on average."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")[::-1]
    stepped = np.minimum.accumulate(p[order] * (p.size / np.arange(p.size, 0, -1)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def holm(p_values: Sequence[float]) -> Floats:
    """Adjusted p: those at or below alpha hold any false alarm with probability at most alpha. For gates."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
