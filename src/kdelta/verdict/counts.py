# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact counts -> CellResult: facts where every seed agrees, judged by their spread or as noise where not. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from kdelta.model import CellResult, Metric, Warn
from kdelta.stats import design, exact, paired
from kdelta.verdict.pairing import Observation, Pairs, paired_blocks, values_of
from kdelta.verdict.words import ALPHA, DELTA_PERCENT, SEED_CAUSES, below, below_delta, cell_warnings, with_need, word


def counted(blank: CellResult, a: Sequence[Observation], b: Sequence[Observation], metric: Metric) -> CellResult:
    """The cell ``blank`` with the verdict on the counts of all seeds, a seed being a block."""
    values_a, values_b = values_of(a), values_of(b)
    shown = replace(blank, baseline=float(np.median(values_a)), patched=float(np.median(values_b)))
    shown = replace(shown, effect_percent=exact.percent(shown.patched or 0.0, shown.baseline or 0.0))
    seeds = min(values_a.size, values_b.size)
    faults = tuple(f"block {boot.block}: {boot.state}" for boot in (*a, *b) if boot.state != "ok")
    warnings = [Warn("dropped", f"{len(faults)} boots dropped: {'; '.join(faults[:4])}")] if faults else []
    if metric.legacy:
        return replace(shown, warnings=(Warn("legacy", f"{metric.name} is a legacy view: shown, never judged"),))
    if seeds < exact.MIN_SEEDS:
        few = design.too_few(seeds, exact.MIN_SEEDS)
        return replace(shown, warnings=(*((few,) if few else ()), *warnings))
    floor = blank.floor_percent or 0.0
    delta = max(DELTA_PERCENT, floor)
    look = exact.look(values_a, values_b, delta, floor)
    if not look.repeats and min(values_a.min(), values_b.min()) > 0:
        pairs = paired_blocks((blank.baseline_label, blank.patched_label), a, b, np.inf)
        if len(pairs.a) >= paired.MIN_PAIRS and not np.array_equal(values_of(pairs.a), values_of(pairs.b)):
            return _noisy_counts(shown, pairs, metric, delta, tuple(warnings))
    call = {"higher": paired.HIGHER, "lower": paired.LOWER, "same": paired.SAME}.get(look.call, paired.UNDECIDED)
    called = word(call, metric.better)
    if not look.repeats:
        size = f"by {look.spread:.2f} %" if np.isfinite(look.spread) else "from 0"
        text = f"counts differ {size} between seeds ({SEED_CAUSES}): that is the floor"
        warnings.append(Warn("noisy", text))
    if called in ("improved", "regressed") and below(look.effect, delta):
        warnings.append(below_delta(delta))
    if look.effect is None:
        warnings.append(Warn("from-zero", f"the baseline counts 0, so there is no percentage; now {look.patched:g}"))
    if called == "same" and look.spread > delta:
        warnings.append(Warn("wide-same", f"same within {look.spread:.2f} %, the spread of the seeds, not {delta:g} %"))
    spread = look.spread if np.isfinite(look.spread) else 0.0
    result = replace(
        shown,
        interval_percent=None if look.low is None or look.high is None else (look.low, look.high),
        verdict=called,
        warnings=tuple(warnings),
        extra={"spread_percent": spread, "delta_percent": delta, "seeds": float(seeds)},
    )
    if called != "inconclusive":
        return result
    if min(values_a.min(), values_b.min()) <= 0:  # no ratio: more seeds would only widen the interval
        return replace(result, detectable_percent=max(spread, floor))
    sd = 100.0 * float(np.hypot(values_a.std(ddof=1), values_b.std(ddof=1))) / (look.baseline or look.patched or 1.0)
    needed = paired.pairs_needed(sd, look.effect or 0.0, delta, seeds)
    return replace(result, detectable_percent=max(spread, floor), boots_needed=needed)


def _noisy_counts(
    shown: CellResult, pairs: Pairs, metric: Metric, delta: float, warnings: tuple[Warn, ...]
) -> CellResult:
    """Counts that move with the seed, of many seeds: judged as times are, a seed being a block."""
    a, b = values_of(pairs.a), values_of(pairs.b)
    d, n = np.log(b) - np.log(a), len(a)
    limit = float(np.log1p(delta / 100.0))
    look = paired.look(d, ALPHA, ALPHA, limit)
    called = word(int(look.call), metric.better)
    spread = max(exact.spread_percent(a), exact.spread_percent(b))
    text = f"counts differ by {spread:.2f} % between seeds ({SEED_CAUSES}): judged over {n} seeds as times are"
    result = replace(
        shown,
        effect_percent=100.0 * float(np.expm1(look.effect)),
        interval_percent=(100.0 * float(np.expm1(look.low)), 100.0 * float(np.expm1(look.high))),
        verdict=called,
        p_value=float(look.p),
        warnings=(*warnings, Warn("noisy", text), *cell_warnings(look, called, delta, limit, logs=True)),
        extra={
            "spread_percent": spread,
            "delta_percent": delta,
            "seeds": float(n),
            "pairs": float(n),
            "sd_pair_percent": 100.0 * float(look.sd),
        },
    )
    return with_need(result) if called == "inconclusive" else result
