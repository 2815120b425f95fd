# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact counts -> CellResult: facts where they repeat, else judged over seeds as times are over blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kdelta.model import CellResult, Metric, Warn
from kdelta.stats import counts, exact, paired, signed_rank
from kdelta.verdict.pairing import Floats, Observation, Pairs, dropped, paired_blocks, values_of
from kdelta.verdict.warnings import (
    BelowLeast,
    FromZero,
    LegacyMetric,
    MediansHide,
    Noisy,
    SeedsMissing,
    SeedsVary,
    TooFewSeeds,
    WithinFloor,
)
from kdelta.verdict.words import DELTA_PERCENT, below, below_delta, shared_warnings, with_need, word


def seed_pairs(blank: CellResult, a: Sequence[Observation], b: Sequence[Observation]) -> Pairs:
    """The seeds that both kernels were measured with."""
    return paired_blocks((blank.baseline_label, blank.patched_label), a, b, np.inf)


class Used(Struct, frozen=True, eq=False):
    """The counts of the seeds that a look uses, of both kernels."""

    a: Floats
    b: Floats

    @property
    def spread_percent(self) -> float:
        return max(exact.spread_percent(self.a), exact.spread_percent(self.b))


def counted(
    blank: CellResult, a: Sequence[Observation], b: Sequence[Observation], metric: Metric, looks: tuple[int, ...]
) -> CellResult:
    """The cell ``blank`` with the verdict on the counts of all seeds.

    ``looks``: the plan in seeds. A seed that was lost leaves the cell without a verdict: it has fewer than planned.
    """
    values_a, values_b = values_of(a), values_of(b)
    shown = replace(blank, baseline=exact.median(values_a), patched=exact.median(values_b))
    shown = replace(shown, effect_percent=exact.percent(shown.patched or 0.0, shown.baseline or 0.0))
    pairs = seed_pairs(blank, a, b)
    if metric.legacy:
        return replace(shown, warnings=(LegacyMetric(metric.name),))
    if pairs.faulty or not pairs.a:
        return replace(shown, warnings=(_missing(pairs, (*a, *b)), *dropped(pairs)))
    shown = replace(shown, floor_percent=_floor(shown, metric))
    delta = max(DELTA_PERCENT, shown.floor_percent or 0.0)
    seeds = Used(values_of(pairs.a), values_of(pairs.b))
    look = counts.look(seeds.a, seeds.b, looks or counts.LOOKS, delta, whole=not metric.least)
    used = Used(seeds.a[: look.n], seeds.b[: look.n])
    if not look.finished:
        return replace(shown, warnings=(_unfinished(look, looks or counts.LOOKS), *_noisy(look, used)))
    return _judged(_figures(shown, used), used, look, metric, delta)


def _floor(shown: CellResult, metric: Metric) -> float | None:
    """The floor in percent; of averages no lower than what the least difference is of them."""
    level = max(shown.baseline or 0.0, shown.patched or 0.0)
    if not metric.least or not level:
        return shown.floor_percent
    return max(shown.floor_percent or 0.0, 100.0 * metric.least / level)


def _missing(pairs: Pairs, boots: Sequence[Observation]) -> Warn:
    """Only what was lost is booted again: a seed that ended otherwise as well stays as it is."""
    ended = {boot.block for boot in boots if boot.state not in ("ok", "lost")}
    again = [fault for fault in pairs.faulty if fault.state == "lost" and fault.block not in ended]
    return SeedsMissing(len(pairs.a), len(pairs.a) + len(pairs.faulty), len(again))


def _unfinished(look: counts.CountLook, looks: tuple[int, ...]) -> Warn:
    if look.n < counts.FACT_SEEDS:
        return TooFewSeeds(look.n, counts.FACT_SEEDS)
    first = counts.sequential_looks(looks)
    return SeedsVary(look.n, first[0] if first else paired.MIN_PAIRS, at_least=not first)


def _noisy(look: counts.CountLook, used: Used) -> tuple[Warn, ...]:
    """That counts vary with the seed, and what that means; nothing of facts."""
    if look.fact:
        return ()
    spread = used.spread_percent
    return (Noisy(spread if np.isfinite(spread) else None, look.n if look.finished else None),)


def _figures(shown: CellResult, used: Used) -> CellResult:
    figures = exact.median(used.a), exact.median(used.b)
    return replace(shown, baseline=figures[0], patched=figures[1], boots=(used.a.size, used.b.size))


def _in_floor(look: counts.CountLook, floor: float | None) -> bool:
    """Whether a difference may be no more than the path's own noise, which seeds need not show.

    On one image a longer command line moved 18 of 163 system calls by 1 to 4 instructions, the same under all seeds.
    """
    if not floor or look.low is None or look.high is None:
        return False
    return max(look.low, -look.high) <= floor


def _apart(used: Used) -> float:
    """Between the sides, in counts: in percent nothing that one side lacks is small.

    Of the pairs, as the call is: counts at several levels can have the same medians and be worlds apart.
    """
    return abs(exact.median(signed_rank.walsh(used.b - used.a)))


def _hidden(effect: float | None, medians: float | None, delta: float) -> bool:
    """Whether medians do not show what the pairs do, both in percent."""
    if effect is None or medians is None:
        return False
    return abs(effect - medians) > max(delta, abs(effect) / 2.0)


def of_baseline(look: counts.CountLook, used: Used) -> tuple[float | None, tuple[float, float] | None]:
    """Effect and interval in percent of the baseline; None where that is 0.

    Logarithms have no 0, so counts with one among them are judged relative to the mean of both sides, where all of a
    count is 200 %. Of a baseline at several levels the median may be a thousandth of its mean.
    """
    baseline = exact.median(used.a)
    if look.effect is None or (not look.logs and not baseline):
        return None, None
    if not look.logs and not used.b.any():  # all of it, of each pair
        return -100.0, None if look.low is None else (-100.0, -100.0)
    scale = 1.0 if look.logs else float(np.mean([*used.a, *used.b])) / max(baseline, float(np.mean(used.a)))
    effect, *bounds = (
        None if value is None else max(-100.0, scale * value) for value in (look.effect, look.low, look.high)
    )
    low, high = bounds
    return effect, None if low is None or high is None else (low, high)


def _judged(shown: CellResult, used: Used, look: counts.CountLook, metric: Metric, delta: float) -> CellResult:
    called = word(look.call, metric.better)
    spread = used.spread_percent
    warnings = [*_noisy(look, used), *shared_warnings(look.agrees, look.logs)]
    if called in ("improved", "regressed") and metric.least and _apart(used) <= metric.least:
        called = "same"
        warnings.append(BelowLeast(metric.least))
    elif called in ("improved", "regressed") and _in_floor(look, shown.floor_percent):
        floor, farthest = shown.floor_percent or 0.0, max(-(look.low or 0.0), look.high or 0.0)
        called = "same" if farthest <= delta else "inconclusive"
        warnings.append(WithinFloor(floor, reaches=farthest > floor))
    if called in ("improved", "regressed") and below(look.effect, delta):
        warnings.append(below_delta(delta))
    effect, interval = of_baseline(look, used)
    if effect is None and called != "same":
        warnings.append(FromZero(shown.patched or 0.0))
    if called in ("improved", "regressed", "inconclusive") and _hidden(effect, shown.effect_percent, delta):
        warnings.append(MediansHide())
    result = replace(
        shown,
        effect_percent=effect,
        interval_percent=interval,
        verdict=called,
        p_value=look.p,
        warnings=tuple(warnings),
        extra={
            "spread_percent": spread if np.isfinite(spread) else 0.0,
            "delta_percent": delta,
            "seeds": float(look.n),
            "pairs": float(look.n),
            "sd_pair_percent": look.sd,
            "fact": float(look.fact),
        },
    )
    limit = counts.limit_percent(used.a, used.b, delta, whole=not metric.least)
    return with_need(result, limit) if called == "inconclusive" else result
