# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of one run -> the one number of a boot for a case and metric (ARCHITECTURE.md, "samples to figures"). Pure.

The boot is the unit of statistics: samples inside it share layout and slab order, so they are folded before any test.
"""

from __future__ import annotations

import math
import statistics

from kdelta.model import EXACT_COUNTERS, Mode, Series

COUNTED = frozenset((*EXACT_COUNTERS, "user_instructions"))


def _mode_low(values: tuple[float, ...]) -> float:
    """The most frequent value; of several equally frequent ones their lower median (always a value that was seen)."""
    return statistics.median_low(statistics.multimode(values))


def number_of(series: Series, mode: Mode) -> float | None:
    """The number of one boot: the median of the samples after warm-up.

    Exact counts (``mode`` exact and a metric in ``COUNTED``) take the mode over repetitions instead: a repetition that
    a timer tick disturbed is an outlier of a count that else repeats bit for bit, and a mean of two counts is no count.

    Returns:
        The number in the series' unit; None where no sample is left after warm-up or one of them is not finite.
    """
    kept = series.kept()
    if not kept or not all(map(math.isfinite, kept)):
        return None
    if mode == "exact" and series.metric in COUNTED:
        return _mode_low(kept)
    return statistics.median(kept)


def spread_percent(series: Series) -> float | None:
    """Interquartile range of the samples after warm-up, in percent of their median.

    Returns:
        None with fewer than two samples, with one that is not finite, or with a median of 0.
    """
    kept = series.kept()
    if len(kept) < 2 or not all(map(math.isfinite, kept)):
        return None
    low, middle, high = statistics.quantiles(kept, n=4, method="inclusive")
    return abs((high - low) / middle) * 100 if middle else None
