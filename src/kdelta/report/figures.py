# SPDX-License-Identifier: GPL-2.0-or-later
"""How a figure is written: a value with its unit, an effect, an interval. No figure is longer than a column."""

from __future__ import annotations

import math

from kdelta.units import finite, human, percent

_SEEN_PERCENT = 0.005  # less is written as 0.00 %


def drawable(value: float | None) -> float | None:
    """``value`` where an axis can hold it: finite and of a size that arithmetic survives."""
    value = finite(value)
    return value if value is not None and (value == 0 or 1e-100 < abs(value) < 1e100) else None


def each(unit: str) -> str:
    """What a count of ``unit`` is per: the lookup of "instructions/lookup", else an operation."""
    part = unit.partition("/")[2]
    return part if part and part != "op" else "operation"


def absolute(value: float | None, unit: str, metric: str = "") -> str:
    """A value for a person. A unit that only repeats the metric's name is left out."""
    if finite(value) is None or value is None:
        return "-"
    noun, slash, _ = unit.partition("/")
    named = f" {metric.replace('_', ' ').partition(' of ')[0]}"  # "transfers of files_struct.file_lock"
    if slash and named.endswith(f" {noun}"):  # "4025/op" beside the word instructions
        return absolute(value, "", metric) + unit.removeprefix(noun)
    unit = "" if unit == metric else unit
    if value and not 1e-6 <= abs(value) < 1e15:
        return f"{value:.3e} {unit}".rstrip()
    if not unit and float(value).is_integer():
        return str(int(value))
    return human(value, unit)


def count(value: float, signed: bool = False) -> str:
    """A count without an exponent, in four digits or more: beside a bar or a tick."""
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"+{text}" if signed and value > 0 else text


def effect(value: float | None) -> str:
    """A signed percentage; absurdly large ones with an exponent."""
    if value is not None and math.isfinite(value) and abs(value) >= 1e5:
        return f"{value:+.2e} %"
    return percent(value)


def change(percent_: float | None, baseline: float | None, patched: float | None, *, called: bool = False) -> str:
    """The effect; from 0, which has no percentage, what it is now. One that is ``called`` never reads as 0."""
    if percent_ is None and baseline == 0 and patched:
        return f"now {count(patched)}"
    if called and percent_ and abs(percent_) < _SEEN_PERCENT:
        return f"{percent_:+.1g} %"
    return effect(percent_)


def interval(bounds: tuple[float, float] | None, exact: bool) -> str:
    """``[low, high]`` in percent; "exact" where a count that repeats leaves no width; "" where there is none."""
    if bounds is None or not all(map(math.isfinite, bounds)):
        return ""
    if exact and bounds[0] == bounds[1]:
        return "exact"
    low, high = (effect(bound).removesuffix(" %") for bound in bounds)
    return f"[{low}, {high}]"
