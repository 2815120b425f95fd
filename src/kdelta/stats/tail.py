# SPDX-License-Identifier: GPL-2.0-or-later
"""Tail metrics: how many samples a boot needs before its percentile means something."""

from __future__ import annotations

import math

BEYOND = 20  # samples that must lie beyond a percentile


def samples_needed(percentile: float) -> int:
    """Samples per boot for ``percentile`` (50..100): 2000 for p99, 20000 for p99.9.

    Raises:
        ValueError: 100 or more; a maximum is no estimate of anything at any number of samples.
    """
    if not 0.0 <= percentile < 100.0:
        raise ValueError(f"no number of samples estimates percentile {percentile}")
    share = 1.0 - percentile / 100.0
    return math.ceil(BEYOND / share - 1e-6)
