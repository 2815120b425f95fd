# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that wait on one CPU: what the kernel does of itself meanwhile is in their counts. Pure.

When it comes to its periodic work hangs on the instant at which the guest had booted, which all seeds of a kernel
share. Of ``sh -c 'sleep 1 & exit 0'`` an identical kernel with a longer command line had -1.93 % [-2.37, -1.77] under
eight seeds: a batch of new pages was put on the LRU lists once instead of twice. ``sleep 2`` was -0.80 %.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.attribution.profiles import USER
from kdelta.model import Case, CellResult, Profile
from kdelta.results import idling
from kdelta.verdict.warnings import BelowDelta, Waited

_PERCENT = 4.0  # what is more than twice that of an identical kernel is the kernel's
_INSTRUCTIONS = 100_000  # as much of that run, which had 2.5 million: of a longer one it is less of the whole
_CHANGED = ("improved", "regressed")


def doubtful(row: CellResult, case: Case, cpus: int) -> bool:
    """Whether waiting may take the verdict of ``row`` away; of a suite's program it is in both of its runs."""
    program = "pack" in case.params and "start" not in case.params
    small = row.effect_percent is not None and abs(row.effect_percent) <= _PERCENT
    return cpus == 1 and program and small and row.verdict in _CHANGED


def _limit_percent(profiles: Sequence[Profile]) -> float:
    """Up to which change of a run what the kernel does meanwhile may be all of it."""
    least = min((one.total[0] - one.functions.get(USER, (0,))[0]) / one.ops for one in profiles)
    return min(_PERCENT, 100.0 * _INSTRUCTIONS / max(least, 1.0))


def held(row: CellResult, case: Case, cpus: int, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of ``case``, without its verdict where the program waits on both kernels, under all seeds."""
    if not before or not after or not doubtful(row, case, cpus) or not all(map(idling.waits, (*before, *after))):
        return row
    limit = _limit_percent((*before, *after))
    if abs(row.effect_percent or 0.0) > limit:
        return row
    kept = tuple(warning for warning in row.warnings if not isinstance(warning, BelowDelta))
    return replace(row, verdict="inconclusive", p_value=None, warnings=(*kept, Waited(limit)))
