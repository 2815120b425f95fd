# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulated experiments for the gates of the engine: boot noise, drift, and the engine run as the runner runs it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdelta.stats import paired, sequential

Floats = NDArray[np.float64]
MODELS = ("normal", "bimodal", "bad-boots")
DELTA = float(np.log1p(0.01))
PLAN_20 = (8, 12, 16, 20)
PLAN_40 = (8, 12, 16, 24, 40)


def boot_noise(rng: np.random.Generator, model: str, shape: tuple[int, ...]) -> Floats:
    """Log noise of boots, standard deviation 1 %: normal, two modes 1.6 % apart, or 2 % of boots slower by 8 %."""
    z = rng.normal(0.0, 1.0, shape)
    if model == "normal":
        return 0.01 * z
    if model == "bimodal":
        return 0.006 * z + 0.008 * np.sign(rng.random(shape) - 0.5)
    return 0.009 * z + 0.08 * (rng.random(shape) < 0.02)


def boots(rng: np.random.Generator, model: str, repeats: int, blocks: int, effect: float) -> tuple[Floats, Floats]:
    """Log levels of both kernels, shape (repeats, blocks), in AB/BA blocks under a linear drift (sd 3 %)."""
    noise = boot_noise(rng, model, (repeats, blocks, 2))
    coins = rng.random((repeats, (blocks + 1) // 2)) < 0.5
    baseline_first = np.stack([coins, ~coins], axis=-1).reshape(repeats, -1)[:, :blocks]
    time = np.arange(2 * blocks).reshape(blocks, 2) / (2 * blocks)
    drift = rng.normal(0.0, 0.03, (repeats, 1, 1)) * time
    a = noise[..., 0] + np.where(baseline_first, drift[..., 0], drift[..., 1])
    b = noise[..., 1] + np.where(baseline_first, drift[..., 1], drift[..., 0]) + effect
    return a, b


class Outcome:
    """Where each simulated experiment stopped: call, boots a side, interval and sequential p, all shape (repeats,)."""

    def __init__(self, differences: Floats, looks: tuple[int, ...], delta: float = DELTA) -> None:
        plan = sequential.plan(looks)
        repeats = len(differences)
        self.call = np.zeros(repeats, dtype=int)
        self.boots = np.zeros(repeats, dtype=int)
        self.low, self.high, self.p = np.zeros(repeats), np.zeros(repeats), np.ones(repeats)
        alive = np.arange(repeats)
        for index, n in enumerate(looks):
            look = paired.look(differences[alive, :n], plan.two_sided[index], plan.one_sided[index], delta)
            self.call[alive], self.boots[alive] = look.call, n
            self.low[alive], self.high[alive] = look.low, look.high
            self.p[alive] = sequential.sequential_p(look.p, looks, index)
            alive = alive[look.call == paired.UNDECIDED]

    def rate(self, *calls: int) -> float:
        """Share of experiments that ended with one of ``calls``."""
        return float(np.isin(self.call, calls).mean())


def band(rate: float, repeats: int) -> float:
    """Three binomial standard deviations."""
    return 3.0 * float(np.sqrt(rate * (1.0 - rate) / repeats))
