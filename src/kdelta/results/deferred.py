# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs on one CPU whose count changed by what the kernel puts off: it frees later, in batches. Pure.

What a program leaves to be freed (RCU, delayed work) is done by kernel threads and interrupts after a grace period of
some ticks, all at once. How many of these batches fall into its run hangs on the instant at which that begins, which
seeds move little. A patch that saves 5 instructions of lseek(2) in stress-ng's null had -2.49 % [-3.29, -0.82] under 16
seeds: on the baseline each had 904 to 984 instructions an operation of such work, on the patched kernel 37 to 1570.

The page lists of a CPU are refilled and emptied in bulk as well, up to some 2,000 pages at once, and when hangs on what
was allocated before. Of a run that is little; of a suite's program, the difference of two runs that are mostly
start-up, it may be all: fio's read-libaio, 5.7 million instructions, was 5 % apart in identical kernels, as a page
fault that took 284,000 was in its shorter run alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from msgspec.structs import replace

from kdelta.attribution.entries import TASK
from kdelta.guest.startup import REST
from kdelta.model import Case, CellResult, Profile
from kdelta.results import idling
from kdelta.spec.counted import START
from kdelta.verdict.warnings import BelowDelta, Deferred, InBulk, Meanwhile
from kdelta.verdict.work import INSTRUCTIONS

_INTERRUPT = "interrupt]"
_LEFT = 0.5  # of a change: with less beside what is put off, that is most of it
_INSTRUCTIONS = 600_000  # of all operations together: twice what it moved within one kernel
# What start-up varies by is where the shorter run had the refill: then they ran less often in the longer one.
_LISTS = frozenset((REST, "__rmqueue_pcplist", "rmqueue_bulk", "free_pcppages_bulk", "__free_one_page"))
_BULK = 300_000  # of all operations together: a refill, rounded up
_CHANGED = ("improved", "regressed")


def doubtful(row: CellResult, case: Case, cpus: int) -> bool:
    """Whether what is put off may take the verdict of ``row`` away; several CPUs have no counts by entry."""
    whole = row.effect_percent is not None and math.isfinite(row.effect_percent) and bool(row.baseline)
    return cpus == 1 and "pack" in case.params and row.metric == INSTRUCTIONS and whole and row.verdict in _CHANGED


def _later(profile: Profile) -> float:
    """Instructions an operation that kernel threads and interrupts executed."""
    rows = profile.system_calls.items()
    return sum(one.instructions for name, one in rows if name == TASK or name.endswith(_INTERRUPT)) / profile.ops


def _mostly_bulk(change: float, before: Sequence[Profile], after: Sequence[Profile]) -> bool:
    """Whether less than half of a change an operation is left without page lists and what start-up varies by."""

    def cost(profile: Profile) -> float:
        return sum(each[0] for name, each in profile.functions.items() if name in _LISTS) / profile.ops

    bulk = fmean(map(cost, after)) - fmean(map(cost, before))
    return (change - bulk) / change < _LEFT


def held(row: CellResult, case: Case, cpus: int, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of ``case``, without its verdict where most of a change is of what the kernel puts off.

    Where that is too large to be chance, or what it does of itself while the program waits, the verdict stays, and a
    warning tells what is left: ``sleep 1`` was +20.9 % from 6.12 to 7.0, and +1.87 % without.
    """
    if not doubtful(row, case, cpus) or not before or not after:
        return row
    baseline, whole = row.baseline or 0.0, row.effect_percent or 0.0
    change = baseline * whole / 100.0
    if START in case.params and 0 < abs(change) * after[0].ops <= _BULK and _mostly_bulk(change, before, after):
        return _without_verdict(row, InBulk(whole, whole, 100.0 * _BULK / (baseline * after[0].ops)))
    if not change or not all(one.system_calls for one in (*before, *after)):
        return row
    later = fmean(map(_later, after)) - fmean(map(_later, before))
    if (change - later) / change >= _LEFT:
        return row
    left = 100.0 * (change - later) / baseline
    waits = START not in case.params and all(map(idling.waits, (*before, *after)))  # ``waiting`` has judged it
    if waits or abs(change) * after[0].ops > _INSTRUCTIONS:
        return replace(row, warnings=(*row.warnings, Meanwhile(left)))
    return _without_verdict(row, Deferred(whole, left))


def beside(row: CellResult, instructions: Deferred) -> CellResult:
    """Another count of the case whose ``instructions`` decide nothing: it is of the same work."""
    return row if row.metric == INSTRUCTIONS or row.verdict not in _CHANGED else _without_verdict(row, instructions)


def _without_verdict(row: CellResult, why: Deferred) -> CellResult:
    kept = tuple(warning for warning in row.warnings if not isinstance(warning, BelowDelta))
    return replace(row, verdict="inconclusive", p_value=None, warnings=(*kept, why))
