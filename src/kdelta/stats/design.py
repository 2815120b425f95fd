# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of how the data was collected. Each returns a warning or nothing; none changes an estimate.

The tests work at 1 %, so a sound experiment shows a spurious warning rarely.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from kdelta.model import Warn
from kdelta.stats import warnings

Floats = NDArray[np.float64]
ALPHA = 0.01
ALPHA_LIMIT = 0.05  # of an upper limit
OTHER_CPUS = 0.3
STEAL_PERCENT = 1.0
FREQUENCY_PERCENT = 2.0
TEMPERATURE_C = 15.0
_BLOCKS_OF_A_HOST = 4
# 1 % quantile of the share of the sum of squares within the best two clusters, by number of normal values
_SIMULATED_N = (8, 10, 12, 16, 20, 24, 30, 40, 60)
_SIMULATED_WITHIN = (0.064, 0.099, 0.111, 0.147, 0.171, 0.187, 0.203, 0.224, 0.251)


def too_few(pairs: int, needed: int) -> Warn | None:
    """Fewer complete blocks than any verdict needs."""
    if pairs >= needed:
        return None
    return warnings.TooFewBlocks(pairs, needed)


def unblocked(pairs: int, boots_a: int, boots_b: int) -> Warn | None:
    """Boots on both sides, but no block that holds both."""
    if pairs or not boots_a or not boots_b:
        return None
    return warnings.Unblocked()


def drift(levels: Floats) -> Warn | None:
    """Trend of the block levels (log, in order of time, shape (blocks,)) by Spearman's rank correlation."""
    if levels.size < 8 or np.ptp(levels) == 0:
        return None
    rho, p = scipy.stats.spearmanr(np.arange(levels.size), levels)
    if p >= ALPHA:
        return None
    thirds = max(1, levels.size // 3)
    size = 100.0 * float(abs(np.expm1(np.median(levels[-thirds:]) - np.median(levels[:thirds]))))
    return warnings.Drift(size if rho > 0 else -size)


def slot_effect(differences: Floats, baseline_first: NDArray[np.bool_]) -> Warn | None:
    """Whether the block differences depend on which kernel was booted first (shapes (blocks,))."""
    first, second = differences[baseline_first], differences[~baseline_first]
    if differences.size >= 8 and min(first.size, second.size) == 0:
        return warnings.OneOrder()
    if min(first.size, second.size) < 4 or np.ptp(differences) == 0:
        return None
    p = float(scipy.stats.mannwhitneyu(first, second, alternative="two-sided").pvalue)
    if p >= ALPHA:
        return None
    size = 50.0 * (float(np.median(second)) - float(np.median(first)))
    return warnings.SlotEffect(size)


def hosts(differences: Floats, host: NDArray[np.int64], names: tuple[str, ...]) -> Warn | None:
    """Whether the effect differs between the hosts of a fleet (shapes (blocks,); ``host`` indexes ``names``).

    One-way analysis of variance (Fisher, "Statistical Methods for Research Workers", 1925) over hosts with at least
    four blocks: of one host among four, ranks (Kruskal & Wallis) cannot reach 1 % with five blocks each. Blocks are
    nested in hosts, so what a host adds to both kernels is in no difference.
    """
    groups = {name: differences[host == index] for index, name in enumerate(names)}
    groups = {name: values for name, values in groups.items() if values.size >= _BLOCKS_OF_A_HOST}
    if len(groups) < 2 or np.ptp(np.concatenate(list(groups.values()))) == 0:
        return None
    if float(scipy.stats.f_oneway(*groups.values()).pvalue) >= ALPHA:
        return None
    ordered = sorted((100.0 * float(np.median(values)), name) for name, values in groups.items())
    return warnings.HostsDiffer(ordered[0][1], ordered[0][0], ordered[-1][1], ordered[-1][0])


def layouts(differences: Floats, layout: NDArray[np.int64]) -> Warn | None:
    """How far the effect differs between layouts of the same code (shapes (blocks,)); None below two blocks of each.

    The component of variance between groups of a one-way random model, its upper limit at 95 % (one-sided, exact where
    groups are alike in size): Searle, Casella & McCulloch, "Variance Components", 1992, 3.5 and 3.6.
    """
    groups = [differences[layout == one] for one in np.unique(layout)]
    k, n = len(groups), differences.size
    if k < 2 or min(group.size for group in groups) < 2:
        return None
    each = (n - sum(group.size**2 for group in groups) / n) / (k - 1)
    mean = float(differences.mean())
    between = sum(group.size * (float(group.mean()) - mean) ** 2 for group in groups) / (k - 1)
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / (n - k)
    least = float(scipy.stats.f.ppf(ALPHA_LIMIT, k - 1, n - k))
    found, most = (max(0.0, (level - within) / each) for level in (between, between / least))
    return warnings.LayoutMoves(k, 100.0 * math.sqrt(found), 100.0 * math.sqrt(most))


def without_hosts(levels: Floats, host: NDArray[np.int64]) -> Floats:
    """``levels`` (shape (blocks,)) without what each host adds to all of its own: its median."""
    cleaned, present = levels.copy(), np.unique(host)
    for index in present if present.size > 1 else ():
        cleaned[host == index] -= np.median(levels[host == index])
    return cleaned


def steal(percents: Floats, limit: float = STEAL_PERCENT) -> Warn | None:
    """CPU time that the host's other guests took, percent per boot."""
    if percents.size == 0 or float(percents.max()) <= limit:
        return None
    count = int((percents > limit).sum())
    return warnings.Steal(count, percents.size, limit)


def busy(cpus: Floats, limit: float = OTHER_CPUS) -> Warn | None:
    """CPUs that programs other than the guest kept busy, per boot."""
    if cpus.size == 0 or float(np.median(cpus)) <= limit:
        return None
    return warnings.Busy(float(np.median(cpus)))


def frequency(mhz: Floats, limit: float = FREQUENCY_PERCENT) -> Warn | None:
    """CPU frequency per boot."""
    if mhz.size == 0 or float(mhz.min()) <= 0:
        return None
    change = 100.0 * (float(mhz.max()) / float(mhz.min()) - 1.0)
    if change <= limit:
        return None
    return warnings.Frequency(change)


def temperature(celsius: Floats, limit: float = TEMPERATURE_C) -> Warn | None:
    """Host temperature per boot."""
    if celsius.size == 0 or float(np.ptp(celsius)) <= limit:
        return None
    return warnings.Temperature(float(np.ptp(celsius)))


def _two_means(ordered: Floats, smallest: int) -> tuple[float, int]:
    """Share of the sum of squares that remains within the best two clusters of sorted values, and the split."""
    n = ordered.size
    total = float(((ordered - ordered.mean()) ** 2).sum())
    best, at = 1.0, 0
    for cut in range(smallest, n - smallest + 1):
        left, right = ordered[:cut], ordered[cut:]
        within = float(((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum())
        if within < best * total:
            best, at = within / total, cut
    return best, at


def bistable(values: Floats) -> Warn | None:
    """Boots that fall into two clusters (log boot medians of one kernel, block levels removed, shape (boots,)).

    Two clusters of at least a fifth of the boots each that explain more of the spread than the best two clusters
    of normal noise do in all but 1 % of experiments (simulated, n = 8..60).
    """
    if values.size < 8 or np.ptp(values) == 0:
        return None
    ordered = np.sort(values)
    smallest = max(2, -(-values.size // 5))
    within, cut = _two_means(ordered, smallest)
    if within > within_limit(values.size):
        return None
    low, high = float(np.median(ordered[:cut])), float(np.median(ordered[cut:]))
    size = 100.0 * float(np.expm1(high - low))
    return warnings.Bistable(size, (cut, values.size - cut))


def within_limit(n: int) -> float:
    """The 1 % quantile of the share within two clusters under normal noise, n >= 8 values."""
    return float(np.interp(n, _SIMULATED_N, _SIMULATED_WITHIN))
