# SPDX-License-Identifier: GPL-2.0-or-later
"""The noise floor of a host: what identical kernels look like there.

Source: an A/A experiment in blocks, the same image under two labels (Kalibera & Jones, "Rigorous benchmarking in
reasonable time", ISMM 2013, for the split of the noise into levels).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.stats import paired, signed_rank

Floats = NDArray[np.float64]
MIN_BLOCKS = 20
_BAND = 0.0027  # two-sided: three sigma
_SUSPECT = 0.01


class Calibration(Struct, frozen=True):
    """What an A/A experiment says of a host, machine kind and case. Percentages unless said otherwise."""

    sd_pair_percent: float
    floor_percent: float  # smallest effect that MIN_BLOCKS blocks would find here
    intra_boot_correlation: float  # share of the variance of a sample that its boot decides
    slot_effect_percent: float  # second boot of a block over the first
    false_alarm_rate: float
    false_alarm_band: tuple[float, float]
    blocks: int
    blessed: bool
    why: str


def intra_boot_correlation(boots: Sequence[Floats]) -> float:
    """One-way ANOVA estimate of the intra-class correlation of samples in boots, within 0..1."""
    groups = [np.asarray(boot, dtype=np.float64) for boot in boots if len(boot) >= 2]
    if len(groups) < 2:
        return 0.0
    sizes = np.array([group.size for group in groups], dtype=np.float64)
    means = np.array([group.mean() for group in groups])
    grand = float((sizes * means).sum() / sizes.sum())
    between = float((sizes * (means - grand) ** 2).sum()) / (len(groups) - 1)
    within = sum(float(((g - g.mean()) ** 2).sum()) for g in groups) / float(sizes.sum() - len(groups))
    typical = float((sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(groups) - 1))
    total = between + (typical - 1.0) * within
    return float(np.clip((between - within) / total, 0.0, 1.0)) if total > 0 else 0.0


def false_alarm_rate(differences: Floats, rng: np.random.Generator, relabellings: int, alpha: float) -> float:
    """Share of random exchanges of the two labels within blocks that the engine calls a difference."""
    signs = rng.choice(np.array([-1.0, 1.0]), size=(relabellings, differences.size))
    calls = paired.look(signs * differences, alpha, alpha, np.inf).call
    return float(np.isin(calls, (paired.LOWER, paired.HIGHER)).mean())


def calibrate(
    differences: Floats,
    first: NDArray[np.bool_],
    boots: Sequence[Floats],
    rng: np.random.Generator,
    relabellings: int = 4000,
    alpha: float = 0.05,
) -> Calibration:
    """Judge a host from the A/A block log-differences, shape (blocks,).

    Args:
        differences: log second label - log first label per block.
        first: whether the first label was booted first in the block.
        boots: the samples of each boot, on any one scale.
        rng: source of the relabellings.

    A host is refused with fewer than 20 blocks, when the false-alarm rate lies above its binomial band about
    alpha, or when the engine finds the labels, or the slots, different at 1 % although nothing differs.

    Raises:
        ValueError: fewer than two blocks, or shapes that differ.
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.size < 2 or first.shape != d.shape:
        raise ValueError(f"calibration needs two blocks or more, with the order of each, not {d.size}")
    sd = float(d.std(ddof=1))
    by_slot = np.where(first, d, -d)
    averages = signed_rank.walsh(by_slot)
    rate = false_alarm_rate(d, rng, relabellings, alpha)
    low, high = (
        float(scipy.stats.binom.ppf(q, relabellings, alpha)) / relabellings for q in (_BAND / 2, 1 - _BAND / 2)
    )
    label_p = float(signed_rank.p_value(signed_rank.walsh(d), d.size))
    slot_p = float(signed_rank.p_value(averages, d.size))
    why = _refusal(d.size, rate, high, label_p, slot_p)
    return Calibration(
        sd_pair_percent=100.0 * sd,
        floor_percent=100.0 * float(np.expm1(paired.detectable(sd, max(d.size, MIN_BLOCKS)))),
        intra_boot_correlation=intra_boot_correlation(boots),
        slot_effect_percent=100.0 * float(np.expm1(signed_rank.estimate(averages))),
        false_alarm_rate=rate,
        false_alarm_band=(low, high),
        blocks=int(d.size),
        blessed=not why,
        why=why,
    )


def _refusal(blocks: int, rate: float, high: float, label_p: float, slot_p: float) -> str:
    if blocks < MIN_BLOCKS:
        return f"{blocks} blocks of at least {MIN_BLOCKS}"
    if rate > high:
        return f"false alarms {100 * rate:.1f} % above the band ({100 * high:.1f} %)"
    if label_p < _SUSPECT:
        return f"identical kernels differ (p = {label_p:.4f}): find what distinguishes the labels, or calibrate again"
    if slot_p < _SUSPECT:
        return f"the second boot of a block differs from the first (p = {slot_p:.4f})"
    return ""
