# SPDX-License-Identifier: GPL-2.0-or-later
"""What is behind a difference, in the same words wherever it is told: lines that move, or functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kdelta.model import Because, FunctionDelta
from kdelta.report import causes, moved
from kdelta.units import finite, percent

_SEEN_PERCENT = 0.05  # less is written as 0.0 %


def text(
    metric: str, deltas: Sequence[FunctionDelta], line: Because | None, effect_percent: float | None = None
) -> str:
    """``"-33 %: memset_orig -671"``; without an effect the causes alone; "" where none is known.

    A cache line is never "new": one that moves for the first time may be old.
    """
    told = moved.told(metric, deltas) or causes.because(line) or functions_text(deltas)
    if not told or effect_percent is None or not math.isfinite(effect_percent):
        return told
    digits = 0 if abs(effect_percent) >= 10 else 1
    seen = abs(effect_percent) >= _SEEN_PERCENT or not effect_percent
    return f"{percent(effect_percent, digits) if seen else f'{effect_percent:+.1g} %'}: {told}"


def functions_text(functions: Sequence[FunctionDelta], limit: int = 4) -> str:
    """``+264 __call_rcu_common, -270 step_into (gone)``, and how many more there are."""
    parts = [
        f"{f.delta:+.4g} {f.function}" + (f" ({f.note})" if f.note else "")
        for f in functions[:limit]
        if finite(f.delta) is not None
    ]
    more = len(functions) - limit
    return ", ".join(parts) + (f", {more} more" if parts and more > 0 else "")
