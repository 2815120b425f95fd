# SPDX-License-Identifier: GPL-2.0-or-later
"""What estimators share: the interface, the direction of a change, its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.model import Warn

Floats = NDArray[np.float64]
Boots = Sequence[Floats]  # the samples after warm-up, one array a boot, in the order of the blocks
Call = Literal["improved", "regressed", "none"]
ALPHA = 0.05


class Estimate(Struct, frozen=True):
    """What a rule says, the figures that it would show, and what a reader must know of them."""

    call: Call
    text: str
    warnings: tuple[Warn, ...] = ()


@runtime_checkable
class Estimator(Protocol):
    """Arrays in, a value with warnings out. Lower is better: a caller inverts rates."""

    def __call__(self, baseline: Boots, patched: Boots, /) -> Estimate: ...


def direction(a: float, b: float, differs: bool) -> Call:
    """The word for a change from ``a`` to ``b`` that a rule takes for one, or not."""
    if not differs or a == b:
        return "none"
    return "improved" if b < a else "regressed"


def change(a: float, b: float) -> str:
    """The change in percent as text."""
    return f"{100.0 * (b / a - 1.0):+.2f} %" if a else "-"


def relative_sd(values: Floats) -> float:
    """Standard deviation over mean; 0 where there is none."""
    return float(values.std(ddof=1) / values.mean()) if values.size > 1 and values.mean() else 0.0
