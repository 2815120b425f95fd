# SPDX-License-Identifier: GPL-2.0-or-later
"""What was taken for noise, in words: the floors of counts by case, those that a host was calibrated for, or none."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from kdelta.attribution.exact import CROSSING, LINES_LEAST, MOVED_LEAST, TOUCHED
from kdelta.model import CellResult, Definition
from kdelta.report.causes import listed, more
from kdelta.units import finite
from kdelta.verdict.words import DELTA_PERCENT

NAMED = 6  # cases
_BRANCHES = "of taken branches as many as it lets pass of all instructions"
_LINES = tuple(name for name, _ in TOUCHED)
_WITHOUT = f"what lies within {DELTA_PERCENT:g} % is the same"


def _lines_least(definitions: Iterable[Definition]) -> str:
    """The least difference of lines of the cases, which is more of those that make few operations an interval."""
    found = {metric.least for one in definitions for metric in one.metrics if metric.name in _LINES} or {LINES_LEAST}
    least, most = min(found), max(found)
    return f"{least:.2g} lines" if least == most else f"{least:.2g} to {most:.2g} lines"


def told(cells: Iterable[CellResult], exact: bool, definitions: Iterable[Definition] = ()) -> str:
    """``Noise floor: 0.10 % (pipe); none (mine).``; "" where counts have none. Times have one where calibrated.

    ``definitions``: of the workloads that were measured.
    """
    # counts whose floor in percent is another one in each case
    of_lines = f"{_lines_least(definitions)} of data or code an operation"
    other = {"taken_branches": _BRANCHES, **dict.fromkeys(_LINES, of_lines)}
    floors: dict[float, dict[str, None]] = {}
    crossing: dict[str, float] = {}
    cases: dict[str, None] = {}
    derived: dict[str, None] = {}
    every: dict[str, None] = {}
    for cell in cells:
        floor = cell.floor_percent
        every[cell.case] = None
        if exact and cell.metric in other:
            derived[other[cell.metric]] = None
            continue
        if floor is None or finite(floor) is None or not (floor or not exact):
            continue
        if cell.metric in CROSSING:
            shown = math.inf if _is_least(cell) else floor
            crossing[cell.metric] = min(shown, crossing.get(cell.metric, shown))
        else:
            cases[cell.case] = None
            floors.setdefault(floor, {})[cell.case] = None
    without = [name for name in every if name not in cases]
    if not floors and not crossing:
        return "" if exact else f"Noise floor: not calibrated on this host (kdelta calibrate); {_WITHOUT}."
    lowest = min(crossing.values(), default=math.inf)
    crossing = {name: floor if math.isfinite(floor) else lowest for name, floor in crossing.items()}  # they have one
    several = len(floors) > 1 or bool(crossing) or bool(without)
    said = [f"{floor:.2f} %{_of(names, several, cases)}" for floor, names in floors.items()]
    if without and floors:
        names = _of(without, True, every)
        said.append(f"none{names}" if exact else f"not calibrated{names}, where {_WITHOUT}")
    for floor in dict.fromkeys(crossing.values()):
        names = listed([name for name, one in crossing.items() if one == floor])
        least = f"{MOVED_LEAST:g} an operation"
        percents = f"{floor:.2f} % of {names}, or {least} where that is more"
        said.append(percents if math.isfinite(floor) else f"{least} of {names}")
    said += derived
    return f"Noise floor: {'; '.join(said)}."


def _is_least(cell: CellResult) -> bool:
    """Whether a floor is the least difference in percent of the cell's own figures: no other cell has it."""
    level = max(cell.baseline or 0.0, cell.patched or 0.0)
    return bool(level) and math.isclose(cell.floor_percent or 0.0, 100 * MOVED_LEAST / level)


def _of(names: Collection[str], several: bool, cases: Collection[str]) -> str:
    """Whose floor it is, where there are ``several``; no more than a few by name."""
    if not several:
        return ""
    if len(names) == len(cases) > NAMED:
        return f" (all {len(cases)} cases)"
    return f" ({', '.join([*list(names)[:NAMED], *more(max(0, len(names) - NAMED))])})"
