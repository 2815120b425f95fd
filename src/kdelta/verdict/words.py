# SPDX-License-Identifier: GPL-2.0-or-later
"""From a look to the word and the warnings of a cell: what times and counts have in common."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from kdelta.model import CellResult, Warn, Word
from kdelta.stats import paired
from kdelta.verdict.warnings import BelowDelta, CrossCheck, Zeros

ALPHA = 0.05
DELTA_PERCENT = 1.0
GRID_PAIRS = 12  # 8 pairs cannot go below p = 0.0078
MOST_BOOTS = paired.MOST_PAIRS  # a cell that says it needs so many would not be decided by them


def word(call: int, better: str) -> Word:
    """The word for a call of ``paired.look`` on a metric that is better ``higher`` or ``lower``."""
    if call in (paired.UNDECIDED, paired.SAME):
        return "same" if call == paired.SAME else "inconclusive"
    return "improved" if (call == paired.HIGHER) == (better == "higher") else "regressed"


def with_need(result: CellResult, same_percent: float | None = None) -> CellResult:
    """An inconclusive cell with its minimum detectable effect, and the fresh boots per kernel that would decide.

    Of counts, a change has to be beyond the floor to be called one. ``same_percent``: within what it is the same, where
    that is not delta.
    """
    sd, n, delta = (result.extra[key] for key in ("sd_pair_percent", "pairs", "delta_percent"))
    delta = delta if same_percent is None else same_percent
    floor = (result.floor_percent or 0.0) if "fact" in result.extra else 0.0
    return replace(
        result,
        detectable_percent=paired.detectable(sd, int(n)),
        boots_needed=paired.pairs_needed(sd, result.effect_percent or 0.0, delta, int(n), floor),
    )


def below(effect_percent: float | None, delta: float) -> bool:
    """Whether an effect is smaller than ``delta``, both in percent."""
    if effect_percent is None or effect_percent <= -100.0:
        return False
    return abs(float(np.log1p(effect_percent / 100.0))) < float(np.log1p(delta / 100.0))


def below_delta(delta: float) -> Warn:
    """The warning that goes with it."""
    return BelowDelta(delta)


def shared_warnings(agrees: bool, logs: bool) -> tuple[Warn, ...]:
    """What a look over pairs carries with it: a disagreeing cross-check, figures without logarithms."""
    found: list[Warn] = []
    if not agrees:
        found.append(CrossCheck())
    if not logs:
        found.append(Zeros())
    return tuple(found)


def cell_warnings(look: paired.Look, called: Word, delta: float, limit: float, logs: bool) -> tuple[Warn, ...]:
    """The warnings of a look at times; a small effect comes first."""
    small = called in ("improved", "regressed") and abs(float(look.effect)) < limit
    return (*((below_delta(delta),) if small else ()), *shared_warnings(bool(look.agrees), logs))
