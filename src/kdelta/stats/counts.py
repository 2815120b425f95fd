# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact counts, one per seed and side: a fact where they repeat, else judged as times are. Arrays in, values out.

The unit is the seed (one restored guest, perturbed by its seed); repetitions inside a seed are no evidence. Counts
that are the same under every seed on both sides are a fact with interval [d, d] from FACT_SEEDS seeds on. So are, with
the interval over all pairings, two groups of counts whose gap is twice as wide as either group (``apart``); and all
pairings within delta are the same. All others go on with fresh seeds and are judged at the looks of a group-sequential
plan over the seed pairs.

Why not fewer: simulated with three seeds a side and the interval over all their pairings, false alarms are 4.5 % a cell
with normal spread and 21 % with two seeds; coverage is 90 % and 67 %. See docs/methodology.md and the gates in tests.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.stats import paired, sequential, signed_rank

Floats = NDArray[np.float64]
FACT_SEEDS = 5  # two-valued counts look like a fact by chance in 2^-9 of cells
LOOKS = (5, 8, 12, 16, 20)  # seeds: the first can only find facts, and what is as plain as one
ALPHA = 0.05
APART = 2.0  # widths of the wider group; simulated: at most ``chance`` of 13 distributions, continuous or not


class CountLook(Struct, frozen=True, kw_only=True):
    """What ``n`` seed pairs say. Effect and interval in percent; null when the baseline is 0 and the patched is not.

    ``call`` is one of stats.paired's. ``index`` is the look of the sequential plan, -1 for a fact or before the first
    look; ``finished`` says whether ``call`` may be shown. ``p`` is valid for corrections whichever look stopped.
    """

    call: int
    fact: bool
    finished: bool
    n: int
    index: int
    effect: float | None
    low: float | None
    high: float | None
    p: float
    sd: float  # of the pair differences, percent
    agrees: bool  # the paired t interval says the same
    logs: bool  # False: some count is 0, percentages are relative to the mean level


def chance(n: int) -> float:
    """The largest probability that two-valued counts pass for a fact and a difference with ``n`` seeds a side.

    Both sides constant and unlike: 2 (q (1-q))^n, largest for two equally likely values.
    """
    return 2.0 ** (1 - 2 * n)


def apart(a: Floats, b: Floats) -> bool:
    """Whether two groups of counts have a gap between them of ``APART`` times the wider one.

    Of counts alike with one peak, or none, it was at most 1 in 50,000 with five a side (simulated; that all of one side
    lies above the other is 1 in 126: Mann & Whitney, Ann. Math. Stat. 18, 1947); of those around two values it is
    ``chance``.
    """
    gap = max(float(b.min() - a.max()), float(a.min() - b.max()))
    return gap > 0 and gap >= APART * max(float(np.ptp(a)), float(np.ptp(b)))


def early_look(looks: tuple[int, ...], n: int) -> int:
    """The last look of a plan among ``n`` seeds that comes before the sequential ones; 0 if there is none."""
    return max((look for look in looks if FACT_SEEDS <= look < paired.MIN_PAIRS and look <= n), default=0)


def sequential_looks(looks: tuple[int, ...]) -> tuple[int, ...]:
    """The looks of a plan at which counts that move can be judged: fewer pairs cannot reach any level."""
    return tuple(look for look in looks if look >= paired.MIN_PAIRS)


def differences(a: Floats, b: Floats) -> tuple[Floats, bool]:
    """Log ratios b / a; with values of 0 or less, differences relative to the mean level (False)."""
    if min(a.min(), b.min()) > 0:
        return np.log(b) - np.log(a), True
    level = float(np.abs(np.concatenate([a, b])).mean())
    return (b - a) / (level or 1.0), False


def resolution(a: Floats, b: Floats) -> float:
    """One count, relative to the smallest: bounds closer than that to a limit are on it."""
    smallest = min(a.min(), b.min())
    return float(np.log1p(1.0 / smallest)) if smallest > 0 else 0.0


def look(
    baseline: Floats, patched: Floats, looks: tuple[int, ...], delta_percent: float, *, whole: bool = True
) -> CountLook:
    """Judge counts >= 0 of the same seeds, shape (n,) each, n >= 1, at the last look that they reach.

    ``whole``: what is less than one apart is the same; not of averages, which 0.2 an operation can be.

    Raises:
        ValueError: a count is negative or no number, or the sides differ in length.
    """
    a, b = np.asarray(baseline, dtype=np.float64), np.asarray(patched, dtype=np.float64)
    if a.shape != b.shape or a.size == 0:
        raise ValueError(f"exact counts come in pairs of seeds, not {a.size} and {b.size}")
    if not all(math.isfinite(count) and count >= 0 for count in (*a.tolist(), *b.tolist())):
        raise ValueError("an exact count is negative or not finite")
    if len({*a.tolist()}) == len({*b.tolist()}) == 1:
        return _fact(float(a[0]), float(b[0]), a.size)
    plan_looks = sequential_looks(looks)
    index = sum(at <= a.size for at in plan_looks) - 1
    used = plan_looks[index] if index >= 0 else early_look(looks, a.size) or a.size
    a, b = a[:used], b[:used]
    limit = _limit(a, b, delta_percent, whole)
    if index < 0:
        return _early(a, b, bool(early_look(looks, a.size)), limit)
    return _sequential(a, b, plan_looks, index, limit)


def _percent(patched: float, baseline: float) -> float | None:
    if baseline == 0:
        return 0.0 if patched == 0 else None
    return 100.0 * (patched / baseline - 1.0)


def _fact(a: float, b: float, n: int) -> CountLook:
    effect = _percent(b, a)
    call = paired.SAME if a == b else paired.HIGHER if b > a else paired.LOWER
    return CountLook(
        call=call,
        fact=True,
        finished=n >= FACT_SEEDS,
        n=n,
        index=-1,
        effect=effect,
        low=effect,
        high=effect,
        p=1.0 if a == b else chance(n),
        sd=0.0,
        agrees=True,
        logs=True,
    )


def _scaled(x: float, logs: bool) -> float:
    return 100.0 * (float(np.expm1(x)) if logs else x)


def limit_percent(a: Floats, b: Floats, delta_percent: float, whole: bool) -> float:
    """What is the same, in percent, of counts in which one more or less is more than nothing: 0 where none could be."""
    logs = min(a.min(), b.min()) > 0
    return _scaled(_limit(a, b, delta_percent, whole), logs)


def _limit(a: Floats, b: Floats, delta_percent: float, whole: bool) -> float:
    """What ``differences`` may come to and be none."""
    limit = float(np.log1p(delta_percent / 100.0)) if min(a.min(), b.min()) > 0 else delta_percent / 100.0
    return max(limit - (resolution(a, b) if whole else 0.0), 1e-12)


def _early(a: Floats, b: Floats, may_end: bool, limit: float) -> CountLook:
    """Too few for the sequential plan: decided only where all pairings of the counts say so."""
    d, logs = differences(a, b)
    every = _pairings(a, b, logs)
    low, high = float(every.min()), float(every.max())
    plain = apart(a, b)
    call = paired.UNDECIDED
    if plain:
        call = paired.HIGHER if low > 0 else paired.LOWER
    elif max(abs(low), abs(high)) <= limit:
        call = paired.SAME
    ended = may_end and call != paired.UNDECIDED
    return CountLook(
        call=call if ended else paired.UNDECIDED,
        fact=False,
        finished=ended,
        n=a.size,
        index=-1,
        effect=_scaled(float(signed_rank.estimate(signed_rank.walsh(d))), logs),
        low=_scaled(low, logs) if ended else None,
        high=_scaled(high, logs) if ended else None,
        p=chance(a.size) if ended and plain else 1.0,
        sd=100.0 * float(d.std(ddof=1)) if a.size > 1 else math.inf,
        agrees=True,
        logs=logs,
    )


def _pairings(a: Floats, b: Floats, logs: bool) -> Floats:
    """The difference of each count of ``b`` from each of ``a``, as ``differences`` has them."""
    if logs:
        return np.asarray(np.log(b)[:, None] - np.log(a)[None, :])
    level = float(np.abs(np.concatenate([a, b])).mean())
    return np.asarray((b[:, None] - a[None, :]) / (level or 1.0))


def _sequential(a: Floats, b: Floats, looks: tuple[int, ...], index: int, limit: float) -> CountLook:
    d, logs = differences(a, b)
    plan = sequential.plan(looks, ALPHA)
    found = paired.look(d, plan.two_sided[index], plan.one_sided[index], limit)
    p = float(sequential.sequential_p(float(found.p), looks, index))
    return CountLook(
        call=int(found.call),
        fact=False,
        finished=True,
        n=a.size,
        index=index,
        effect=_scaled(float(found.effect), logs),
        low=_scaled(float(found.low), logs),
        high=_scaled(float(found.high), logs),
        p=min(p, chance(a.size)) if apart(a, b) else p,
        sd=100.0 * float(found.sd),
        agrees=bool(found.agrees),
        logs=logs,
    )
