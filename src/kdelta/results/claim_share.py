# SPDX-License-Identifier: GPL-2.0-or-later
"""The share of one function in the kernel instructions of a case: a claim about functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kdelta.kernel.spelling import fold
from kdelta.model import Case, CellResult, Experiment
from kdelta.results import explain
from kdelta.results.claims import Measured, blank
from kdelta.spec.recipes import Claim
from kdelta.stats import counts
from kdelta.store.store import Store
from kdelta.verdict.counts import Used, of_baseline
from kdelta.verdict.words import DELTA_PERCENT, word

Floats = NDArray[np.float64]
_UNIT = 1e-6  # shares are judged as whole millionths of all instructions


def share(claim: Claim, case: Case, rows: Sequence[CellResult], experiment: Experiment, store: Store) -> Measured:
    """A function's share in the kernel instructions of a case, in percent, judged over the seeds."""
    if not rows or rows[0].state != "ok":
        return blank(f"{case.name} was not measured" + (f": {rows[0].state}: {rows[0].why}" if rows else ""))
    index = [c.name for c in experiment.cases].index(case.name)
    by_kernel = explain.seeds_of(experiment, store).get((index, rows[0].mitigations), {})
    sides = [by_kernel.get(0, []), by_kernel.get(len(experiment.kernels) - 1, [])]
    shares: list[Floats] = []
    for profiles in sides:
        kernels = [{n: c[0] for n, c in p.functions.items() if n != "[user]"} for p in profiles]
        if not kernels or any(not any(not name.startswith("[") for name in one) for one in kernels):
            return blank("the kernel has no function names")
        shares.append(np.array([100.0 * one.get(fold(claim.function), 0) / sum(one.values()) for one in kernels]))
    if not any(side.any() for side in shares):
        return blank(f"{claim.function} runs on neither kernel in {case.name}: it may be inlined, or named otherwise")
    n = min(shares[0].size, shares[1].size)
    whole = [np.round(side[:n] / 100.0 / _UNIT) for side in shares]
    look = counts.look(whole[0], whole[1], counts.LOOKS, DELTA_PERCENT)
    _, interval = of_baseline(look, Used(whole[0][: look.n], whole[1][: look.n]))
    return Measured(
        before=float(np.median(shares[0])),
        after=float(np.median(shares[1])),
        unit="% of kernel instructions",
        verdict=word(look.call, "lower") if look.finished else None,
        interval_percent=interval,
        why="" if look.finished else f"{look.n} of the {counts.FACT_SEEDS} seeds that a verdict needs",
    )
