# SPDX-License-Identifier: GPL-2.0-or-later
"""The rules of other tools, as those tools define them. For comparison only: they never decide.

Each rule takes the samples of both kernels as one array per boot, of a metric where lower is better, and calls
the second one ``improved``, ``regressed`` or ``none``. What they get wrong is in docs/methodology.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Boots = Sequence[Floats]
Call = Literal["improved", "regressed", "none"]

_K = 5
_K_RATIO = 0.05
_LKP_RATIO = 1.01
_ALPHA = 0.05


class LegacyCall(Struct, frozen=True):
    """What another tool would have said, and the figures that it would have shown."""

    call: Call
    text: str


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


def _direction(a: float, b: float, differs: bool) -> Call:
    if not differs or a == b:
        return "none"
    return "improved" if b < a else "regressed"


def _change(a: float, b: float) -> str:
    return f"{100.0 * (b / a - 1.0):+.2f} %" if a else "-"


def _relative_sd(values: Floats) -> float:
    return float(values.std(ddof=1) / values.mean()) if values.size > 1 and values.mean() else 0.0


def kbest(samples_a: Boots, samples_b: Boots) -> LegacyCall:
    """Median over boots of the K-best per boot; a change larger than the larger RSD of the K-bests counts."""
    a, b = np.array([kbest_of(boot) for boot in samples_a]), np.array([kbest_of(boot) for boot in samples_b])
    middle_a, middle_b = float(np.median(a)), float(np.median(b))
    spread = max(_relative_sd(a), _relative_sd(b))
    differs = abs(middle_b - middle_a) > spread * abs(middle_a)
    text = f"K-best {middle_a:.6g} -> {middle_b:.6g} ({_change(middle_a, middle_b)}), RSD {100 * spread:.2f} %"
    return LegacyCall(_direction(middle_a, middle_b, differs), text)


def lkp(samples_a: Boots, samples_b: Boots) -> LegacyCall:
    """lkp-tests: each side's range lies beyond the other's median, and the medians differ by more than 1 %.

    One figure per run there, the mean of its samples here; shown as ``%change +- %stddev`` of means.
    """
    a, b = np.sort([float(np.mean(x)) for x in samples_a]), np.sort([float(np.mean(x)) for x in samples_b])
    middle_a, middle_b = float(a[a.size // 2]), float(b[b.size // 2])  # the upper median, as there
    apart = (b[0] > middle_a and middle_b > a[-1]) or (a[0] > middle_b and middle_a > b[-1])
    larger, smaller = max(middle_a, middle_b), min(middle_a, middle_b)
    differs = bool(apart) and larger > _LKP_RATIO * smaller
    spread = f"{100 * _relative_sd(a):.0f} % / {100 * _relative_sd(b):.0f} %"
    text = f"{a.mean():.6g} -> {b.mean():.6g} ({_change(float(a.mean()), float(b.mean()))}), stddev {spread}"
    return LegacyCall(_direction(middle_a, middle_b, differs), text)


def _mean_interval(values: Floats) -> tuple[float, float]:
    if values.size < 2:
        return -np.inf, np.inf
    half = float(stats.t.isf(_ALPHA / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))
    return float(values.mean()) - half, float(values.mean()) + half


def fastpath(samples_a: Boots, samples_b: Boots) -> LegacyCall:
    """Arm Fastpath: 95 % intervals of the means, over the samples of all sessions, do not overlap."""
    a, b = np.concatenate(list(samples_a)), np.concatenate(list(samples_b))
    (low_a, high_a), (low_b, high_b) = _mean_interval(a), _mean_interval(b)
    mean_a, mean_b = float(a.mean()), float(b.mean())
    call = _direction(mean_a, mean_b, low_b > high_a or low_a > high_b)
    mark = {"improved": "(I) ", "regressed": "(R) ", "none": ""}[call]
    return LegacyCall(call, f"{mark}{mean_a:.6g} -> {mean_b:.6g} ({_change(mean_a, mean_b)})")


def benchstat(samples_a: Boots, samples_b: Boots) -> LegacyCall:
    """benchstat: Mann-Whitney U over all result lines at 5 %; medians are shown, ``~`` where it finds nothing."""
    a, b = np.concatenate(list(samples_a)), np.concatenate(list(samples_b))
    middle_a, middle_b = float(np.median(a)), float(np.median(b))
    p = float(stats.mannwhitneyu(a, b, alternative="two-sided").pvalue)
    call = _direction(middle_a, middle_b, p < _ALPHA)
    shown = _change(middle_a, middle_b) if call != "none" else "~"
    return LegacyCall(call, f"{middle_a:.6g} -> {middle_b:.6g} {shown} (p={p:.3f} n={a.size}+{b.size})")


RULES: Mapping[str, Callable[[Boots, Boots], LegacyCall]] = {
    "kbest": kbest,
    "lkp": lkp,
    "fastpath": fastpath,
    "benchstat": benchstat,
}


def call(rule: str, samples_a: Boots, samples_b: Boots, lower_is_better: bool = True) -> LegacyCall:
    """Apply the named rule; where higher is better the words are exchanged.

    Raises:
        KeyError: no such rule.
        ValueError: a side has no boot or a boot no sample.
    """
    if not samples_a or not samples_b or any(len(boot) == 0 for boot in (*samples_a, *samples_b)):
        raise ValueError("a legacy rule needs a boot with samples on both sides")
    result = RULES[rule](samples_a, samples_b)
    if lower_is_better or result.call == "none":
        return result
    swapped: Call = "regressed" if result.call == "improved" else "improved"
    marks = {"(I) ": "(R) ", "(R) ": "(I) "}
    return LegacyCall(swapped, marks.get(result.text[:4], result.text[:4]) + result.text[4:])
