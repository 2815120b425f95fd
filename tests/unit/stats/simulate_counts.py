# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulated exact experiments: counts over seeds as kernels were seen to spread, and the engine on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdelta.stats import counts, multiplicity, paired, sequential

Floats = NDArray[np.float64]
DELTA = float(np.log1p(0.01))
LEVEL = 1e6
MODELS = (
    "normal",
    "lognormal",
    "two-valued-50",
    "two-valued-80",
    "two-valued-50-jitter",
    "two-valued-80-jitter",
    "bad-seeds",
)


def _noise(rng: np.random.Generator, model: str, shape: tuple[int, ...]) -> Floats:
    """Log noise of a seed: sd 1 %, a skewed 1 %, two values 2 % apart, or 3 % of the seeds 8 % higher."""
    z = rng.normal(0.0, 1.0, shape)
    if model == "normal":
        return 0.01 * z
    if model == "lognormal":
        return np.asarray(np.log1p(0.01 * np.exp(z)))
    if model == "bad-seeds":
        return np.asarray(0.002 * z + 0.08 * (rng.random(shape) < 0.03), dtype=np.float64)
    share = 0.5 if "50" in model else 0.2
    jitter = 0.001 * z if model.endswith("jitter") else 0.0
    return np.asarray(0.02 * (rng.random(shape) < share) + jitter, dtype=np.float64)


def counts_of(rng: np.random.Generator, model: str, repeats: int, effect: float) -> tuple[Floats, Floats]:
    """Whole counts of both kernels, shape (repeats, seeds), the second higher by the log ``effect``."""
    shape = (repeats, counts.LOOKS[-1])
    a, b = _noise(rng, model, shape), _noise(rng, model, shape) + effect
    return np.round(LEVEL * np.exp(a)), np.round(LEVEL * np.exp(b))


class CountOutcome:
    """Where each simulated cell stopped: call, seeds, interval (log), whether it is a fact; shape (repeats,)."""

    def __init__(self, a: Floats, b: Floats) -> None:
        repeats, first = len(a), counts.FACT_SEEDS
        d = np.log(b) - np.log(a)
        self.call, self.seeds = np.zeros(repeats, dtype=int), np.full(repeats, first)
        self.fact = (np.ptp(a[:, :first], axis=1) == 0) & (np.ptp(b[:, :first], axis=1) == 0)
        self.low, self.high = d[:, 0].copy(), d[:, 0].copy()
        equal = d[:, 0] == 0
        self.call[self.fact] = np.where(equal, paired.SAME, np.sign(d[:, 0]).astype(int))[self.fact]
        self._plain(a[:, :first], b[:, :first])
        looks = counts.sequential_looks(counts.LOOKS)
        plan, alive = sequential.plan(looks), np.flatnonzero(~self.fact & (self.call == paired.UNDECIDED))
        for index, n in enumerate(looks):
            smallest = np.minimum(a[alive, :n].min(axis=1), b[alive, :n].min(axis=1))
            limit = DELTA - np.log1p(1.0 / smallest)
            look = paired.look(d[alive, :n], plan.two_sided[index], plan.one_sided[index], limit)
            self.call[alive], self.seeds[alive] = look.call, n
            self.low[alive], self.high[alive] = look.low, look.high
            alive = alive[look.call == paired.UNDECIDED]

    def _plain(self, a: Floats, b: Floats) -> None:
        """The first look at counts that vary: two groups far apart, or all of them within delta."""
        every = np.log(b)[:, :, None] - np.log(a)[:, None, :]
        low, high = every.min(axis=(1, 2)), every.max(axis=(1, 2))
        gap = np.maximum(b.min(axis=1) - a.max(axis=1), a.min(axis=1) - b.max(axis=1))
        wide = np.maximum(np.ptp(a, axis=1), np.ptp(b, axis=1))
        plain = ~self.fact & (gap > 0) & (gap >= counts.APART * wide)
        limit = DELTA - np.log1p(1.0 / np.minimum(a.min(axis=1), b.min(axis=1)))
        alike = ~self.fact & ~plain & (np.maximum(abs(low), abs(high)) <= limit)
        self.call[plain] = np.sign(low[plain]).astype(int)
        self.call[alike] = paired.SAME
        ended = plain | alike
        self.low[ended], self.high[ended] = low[ended], high[ended]

    def rate(self, *calls: int) -> float:
        """Share of cells that ended with one of ``calls``."""
        return float(np.isin(self.call, calls).mean())

    def covered(self, effect: float) -> float:
        """Share of intervals that hold ``effect``, up to one count."""
        one = 2.0 / LEVEL
        return float(((self.low <= effect + one) & (self.high >= effect - one)).mean())


def experiment_of_five(rng: np.random.Generator, model: str) -> bool:
    """Whether five cells of identical kernels, corrected at each look, close the gate of ``--fail-on`` (Holm)."""
    a, b = counts_of(rng, model, 5, 0.0)
    p, call, undecided = np.ones(5), np.zeros(5, dtype=int), np.ones(5, dtype=bool)
    for n in counts.LOOKS:
        for cell in np.flatnonzero(undecided):
            look = counts.look(a[cell, :n], b[cell, :n], counts.LOOKS, 1.0)
            p[cell], call[cell] = look.p, look.call if look.finished else paired.UNDECIDED
        kept = multiplicity.benjamini_hochberg(p.tolist()) <= 0.05
        undecided = (call != paired.SAME) & ~(np.isin(call, (paired.LOWER, paired.HIGHER)) & kept)
        if not undecided.any():
            break
    return bool(((call == paired.HIGHER) & (multiplicity.holm(p.tolist()) <= 0.05)).any())
