# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between the seeds of one kernel: in the kernel's functions, and in what a program itself does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kdelta.attribution import moved
from kdelta.model import CellResult, Profile
from kdelta.results.warnings import ProgramVaries
from kdelta.spec.counted import START
from kdelta.spec.program import PACK
from kdelta.verdict.warnings import Noisy
from kdelta.verdict.words import DELTA_PERCENT

_CALLS_NAMED, _FUNCTIONS_NAMED = 4, 4


def _sides(row: CellResult, by_kernel: Mapping[str, list[Profile]]) -> dict[str, list[Profile]]:
    """The profiles of all seeds by kernel, of the kernels of ``row`` that have any with names."""
    found = {label: by_kernel.get(label, []) for label in (row.baseline_label, row.patched_label) if label}
    return {label: side for label, side in found.items() if side and all(map(moved.has_names, side))}


def _widest(sides: dict[str, list[Profile]], counter: int) -> tuple[str, list[Profile]]:
    """The kernel whose count spreads most."""
    return max(sides.items(), key=lambda item: moved.spread_percent(item[1], counter))


def _functions(side: Sequence[Profile], counter: int, limit: int = 2) -> tuple[tuple[str, ...], int]:
    """The functions that differ between the seeds, and how many more."""
    return moved.names(moved.moved(*moved.extremes(side, counter), among=side, counter=counter), limit)


def _program(row: CellResult, sides: dict[str, list[Profile]]) -> tuple[ProgramVaries, ...]:
    """That the program of ``row`` does other things from seed to seed, where that moves the kernel's count too."""
    found = []
    for label, side in sides.items():
        spread, own = moved.spread_percent(side), moved.user_spread_percent(side)
        calls = moved.calls_that_vary(side)
        if spread < DELTA_PERCENT or not math.isfinite(spread) or not (calls or own >= DELTA_PERCENT):
            continue
        functions, more = _functions(side, 0, _FUNCTIONS_NAMED)
        found.append(
            ProgramVaries(
                kernel=label,
                spread_percent=spread,
                own_percent=own if math.isfinite(own) else None,
                calls=calls[:_CALLS_NAMED],
                more_calls=max(0, len(calls) - _CALLS_NAMED),
                functions=functions,
                more_functions=more,
            )
        )
    return tuple(found)


def told(row: CellResult, by_kernel: Mapping[str, list[Profile]]) -> CellResult:
    """The finished ``row``; what its seeds differ in is named: functions, and where it is a program, its calls.

    ``by_kernel``: the profiles of all seeds of its case.
    """
    counter = moved.counter_of(row.metric)
    alone = not row.patched_label and row.primary  # nothing is judged: how it varies is said here
    program = (
        row.primary and PACK in row.params and START not in row.params
    )  # of a difference of two runs none can tell
    noisy = any(isinstance(warning, Noisy) for warning in row.warnings)
    if counter is None or row.state != "ok" or not (alone or program or noisy):
        return row
    if not (sides := _sides(row, by_kernel)):
        return row
    side = _widest(sides, counter)[1]
    warnings = list(row.warnings)
    spread = moved.spread_percent(side, counter) if alone else 0.0
    if alone and DELTA_PERCENT <= spread < math.inf:
        warnings.append(Noisy(spread, None))
    if any(isinstance(warning, Noisy) for warning in warnings):
        functions, more = _functions(side, counter)
        warnings = [replace(w, functions=functions, more=more) if isinstance(w, Noisy) else w for w in warnings]
    if program:
        warnings += _program(row, sides)
    return replace(row, warnings=tuple(warnings))
