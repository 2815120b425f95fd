# SPDX-License-Identifier: GPL-2.0-or-later
"""How many fresh blocks are worth booting, and when they are looked at."""

from __future__ import annotations

import math

from kdelta.model import Mode
from kdelta.stats.counts import FACT_SEEDS
from kdelta.stats.paired import MIN_PAIRS
from kdelta.verdict.words import GRID_PAIRS

_SHARES = (0.4, 0.6, 0.8, 1.0)  # of the blocks at which a plan looks, as the usual one of 20 does


def least(cells: int) -> int:
    """The fewest blocks that can decide so many cells at once."""
    return MIN_PAIRS if cells == 1 else GRID_PAIRS


def looks(blocks: int) -> tuple[int, ...]:
    """The looks of a sequential plan over ``blocks``, the first not before eight."""
    return tuple(sorted({max(MIN_PAIRS, math.ceil(blocks * share)) for share in _SHARES}))


def looks_of(mode: Mode, blocks: int) -> tuple[int, ...]:
    """``looks``; of counts also the one that finds the facts."""
    return looks(blocks) if mode == "timed" else tuple(sorted({FACT_SEEDS, *looks(blocks)}))
