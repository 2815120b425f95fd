# SPDX-License-Identifier: GPL-2.0-or-later
"""Two cases on one kernel, paired by boot: a claim that compares cases and not kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kdelta.model import CellResult, Experiment, Word
from kdelta.stats import counts, paired
from kdelta.units import Better
from kdelta.verdict.counts import Used, of_baseline
from kdelta.verdict.pairing import CellData, paired_blocks, values_of
from kdelta.verdict.words import ALPHA, DELTA_PERCENT, word

Floats = NDArray[np.float64]


class Cross:
    """One metric of two cases in the same boots of one kernel."""

    def __init__(self, before: Floats, after: Floats, better: Better, exact: bool) -> None:
        self.before, self.after, self.n = float(np.median(before)), float(np.median(after)), before.size
        self.verdict: Word | None = None
        self.interval: tuple[float, float] | None = None
        self.percent: float | None = 100.0 * (self.after / self.before - 1.0) if self.before else None
        if exact:
            look = counts.look(before, after, counts.LOOKS, DELTA_PERCENT)
            self.percent, interval = of_baseline(look, Used(before[: look.n], after[: look.n]))
            if look.finished:
                self.verdict, self.interval = word(look.call, better), interval
        elif before.size >= paired.MIN_PAIRS and min(before.min(), after.min()) > 0:
            single = paired.look(np.log(after) - np.log(before), ALPHA, ALPHA, float(np.log1p(DELTA_PERCENT / 100.0)))
            self.verdict = word(int(single.call), better)
            self.interval = (100.0 * float(np.expm1(single.low)), 100.0 * float(np.expm1(single.high)))


def cross(
    experiment: Experiment, data: Sequence[CellData], cases: tuple[int, int], kernel: int, row: CellResult
) -> Cross | None:
    """The metric of ``row`` on both cases; None where no boot has both."""
    table = {(c.case, c.metric, c.kernel, c.mitigations): c.boots for c in data}
    sides = [table.get((case, row.metric, kernel, row.mitigations), ()) for case in cases]
    label = experiment.kernels[kernel].label
    pairs = paired_blocks((label, label), sides[0], sides[1], np.inf)
    if not pairs.a:
        return None
    return Cross(values_of(pairs.a), values_of(pairs.b), row.better, experiment.mode == "exact")
