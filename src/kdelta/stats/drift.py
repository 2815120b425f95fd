# SPDX-License-Identifier: GPL-2.0-or-later
"""Take slow drift of the machine out of boots that follow no blocks, by boots of known kernels among them.

A search chooses each boot by those before it, so it cannot be laid out in blocks. The two ends of its line are booted
all along instead, and each boot is read against the ends booted next to it: a moving median of reference runs, as with
the standards of an assay (robust because a median; Tukey 1977, "Exploratory Data Analysis", running medians).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NEIGHBOURS = 4  # boots of each end that a boot is read against
_ROUNDS = 4  # levels and drift are estimated in turn; three rounds change nothing any more


def _nearest(order: NDArray[np.int_], ends: NDArray[np.int_]) -> NDArray[np.int_]:
    """For each place of ``order`` the NEIGHBOURS places of ``ends`` next to it, itself left out."""
    distance = np.abs(order[:, None] - ends[None, :]).astype(np.float64)
    distance[distance == 0] = np.inf
    return np.asarray(ends[np.argsort(distance, axis=1, kind="stable")[:, : min(NEIGHBOURS, ends.size - 1)]])


def without_drift(values: Floats, good: NDArray[np.bool_], bad: NDArray[np.bool_]) -> Floats:
    """``values`` less the drift that boots of the ends around each of them show.

    Args:
        values: log figures, shape (boots,), in the order of the boots.
        good: which boots were of the good end; at least two.
        bad: which boots were of the bad end; at least two.
    """
    order = np.arange(values.size)
    near = np.hstack([_nearest(order, np.flatnonzero(end)) for end in (good, bad)])
    adjusted = values
    for _ in range(_ROUNDS):
        level = np.where(bad, np.median(adjusted[bad]), np.median(adjusted[good]))
        adjusted = values - np.median((values - level)[near], axis=1)
    return np.asarray(adjusted)
