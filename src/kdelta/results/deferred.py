# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs on one CPU whose count changed by what the kernel puts off: it frees later, in batches. Pure.

What a program leaves to be freed (RCU, delayed work) is done by kernel threads and interrupts after a grace period of
some ticks, all at once. How many of these batches fall into its run hangs on the instant at which that begins, which
seeds move little. A patch that saves 5 instructions of lseek(2) in stress-ng's null had -2.49 % [-3.29, -0.82] under 16
seeds: on the baseline each had 904 to 984 instructions an operation of such work, on the patched kernel 37 to 1570.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from msgspec.structs import replace

from kdelta.attribution.entries import TASK
from kdelta.model import Case, CellResult, Profile
from kdelta.results import idling
from kdelta.verdict.warnings import BelowDelta, Deferred, Meanwhile
from kdelta.verdict.work import INSTRUCTIONS

_INTERRUPT = "interrupt]"
_LEFT = 0.5  # of a change: with less beside what is put off, that is most of it
_INSTRUCTIONS = 600_000  # of all operations together: twice what it moved within one kernel
_CHANGED = ("improved", "regressed")


def doubtful(row: CellResult, case: Case, cpus: int) -> bool:
    """Whether what is put off may take the verdict of ``row`` away; several CPUs have no counts by entry."""
    whole = row.effect_percent is not None and math.isfinite(row.effect_percent) and bool(row.baseline)
    return cpus == 1 and "pack" in case.params and row.metric == INSTRUCTIONS and whole and row.verdict in _CHANGED


def _later(profile: Profile) -> float:
    """Instructions an operation that kernel threads and interrupts executed."""
    rows = profile.system_calls.items()
    return sum(one.instructions for name, one in rows if name == TASK or name.endswith(_INTERRUPT)) / profile.ops


def held(row: CellResult, case: Case, cpus: int, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of ``case``, without its verdict where most of a change is of what the kernel puts off.

    Where that is too large to be chance, or what it does of itself while the program waits, the verdict stays, and a
    warning tells what is left: ``sleep 1`` was +20.9 % from 6.12 to 7.0, and +1.87 % without.
    """
    if not doubtful(row, case, cpus) or not all(side and all(p.system_calls for p in side) for side in (before, after)):
        return row
    baseline, whole = row.baseline or 0.0, row.effect_percent or 0.0
    change = baseline * whole / 100.0
    if not change:
        return row
    later = fmean(map(_later, after)) - fmean(map(_later, before))
    if (change - later) / change >= _LEFT:
        return row
    left = 100.0 * (change - later) / baseline
    waits = "start" not in case.params and all(map(idling.waits, (*before, *after)))  # ``waiting`` has judged it
    if waits or abs(change) * after[0].ops > _INSTRUCTIONS:
        return replace(row, warnings=(*row.warnings, Meanwhile(left)))
    return _without_verdict(row, Deferred(whole, left))


def beside(row: CellResult, instructions: Deferred) -> CellResult:
    """Another count of the case whose ``instructions`` decide nothing: it is of the same work."""
    return row if row.metric == INSTRUCTIONS or row.verdict not in _CHANGED else _without_verdict(row, instructions)


def _without_verdict(row: CellResult, why: Deferred) -> CellResult:
    kept = tuple(warning for warning in row.warnings if not isinstance(warning, BelowDelta))
    return replace(row, verdict="inconclusive", p_value=None, warnings=(*kept, why))
