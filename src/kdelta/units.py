# SPDX-License-Identifier: GPL-2.0-or-later
"""Units of metrics: which way is better, and how a value is printed.

A unit carries its meaning, as in golang/perf's benchunit: no caller needs to know that less
time is good or that bytes scale by 1024.
"""

from __future__ import annotations

import math
from typing import Literal

Better = Literal["lower", "higher"]

_SI = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_IEC = ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"), (1.0, ""))
_TIME = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


def finite(value: float | None) -> float | None:
    """``value``, or None where there is no number to show."""
    return value if value is not None and math.isfinite(value) else None


def size(percent: float) -> float:
    """How large a change is, the same for one and its reverse: -50 % is as large as +100 %, all of it infinite."""
    return abs(math.log1p(percent / 100)) if percent > -100 else math.inf


def _significant(value: float) -> str:
    """``value`` with four significant digits and no exponent."""
    if value == 0:
        return "0"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}"


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> tuple[str, str]:
    for factor, prefix in steps:
        if abs(value) >= factor:
            return _significant(value / factor), prefix
    return _significant(value), steps[-1][1]


def human(value: float | None, unit: str) -> str:
    """Render ``value`` for a person: ``human(1234.0, "ns") == "1.234 us"``; null prints as "-".

    Units are written per operation as ``ns``, ``instructions``, ``B``, ``MB/s``, ``ops/s``.
    """
    if value is None or not math.isfinite(value):
        return "-"
    if unit == "ns":
        text, prefix = _scaled(value, _TIME)
        return f"{text} {prefix}"
    if unit == "B":
        text, prefix = _scaled(value, _IEC)
        return f"{text} {prefix}B"
    if unit in ("ops/s", "writes/s"):
        text, prefix = _scaled(value, _SI)
        return f"{text}{prefix} {unit}" if not prefix else f"{text} {prefix}{unit}"
    if unit == "":
        return _significant(value)
    if float(value).is_integer():
        return f"{int(value)} {unit}"
    return f"{_significant(value)} {unit}"


def percent(value: float | None, digits: int = 2) -> str:
    """A signed percentage: ``percent(-28.61) == "-28.61 %"``; null prints as "-", and what reads as 0 has no sign."""
    if value is None or not math.isfinite(value):
        return "-"
    text = f"{value:+.{digits}f} %"
    return text if text.strip("+-0. %") else text[1:]


def counted(number: int, noun: str) -> str:
    """``counted(1, "boot") == "1 boot"``, ``counted(3, "boot") == "3 boots"``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
