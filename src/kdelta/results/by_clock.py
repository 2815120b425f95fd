# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that run until the clock says so: the count is the kernel's part of that time, and no cost. Pure.

An exact guest's clock counts instructions. A program that takes page faults for 0.1 s executes as many on each kernel,
its own and the kernel's together; where a fault costs more there are fewer faults, and the kernel's count is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from msgspec.structs import replace

from kdelta.attribution.profiles import USER
from kdelta.model import EXACT_COUNTERS, Case, CellResult, Profile
from kdelta.verdict.warnings import ByClock, ByClockAlone, CallsBeside, OtherCalls
from kdelta.verdict.work import BYTES, WORD_BYTES

_OWN = "user_instructions"
_REP_BYTES = EXACT_COUNTERS.index(BYTES)
_LEFT = 0.1  # so much of the change of one part the other leaves, at most: else they do not make up for each other
_UNSURE = 0.5  # of the words that string instructions move: some are bytes
_LEAST = 0.001  # of the run: as much as the program's own part changes


def _own(profile: Profile) -> float:
    return profile.functions.get(USER, (0,))[0] / profile.ops


def _words(profile: Profile) -> float:
    """What string instructions move, by 8 bytes: each takes the clock as far as an instruction does."""
    return profile.total[_REP_BYTES] / WORD_BYTES / profile.ops


def _whole(profile: Profile) -> float:
    return profile.total[0] / profile.ops + _words(profile)


def _change(of: Callable[[Profile], float], before: Sequence[Profile], after: Sequence[Profile]) -> float:
    return fmean(map(of, after)) - fmean(map(of, before))


def lasts(before: Sequence[Profile], after: Sequence[Profile]) -> bool:
    """Whether under all seeds the program itself does more on one kernel, or less, and both together do as much."""
    old, new = ([_own(one) for one in side] for side in (before, after))
    less, more = (old, new) if max(old) <= min(new) else (new, old)
    own, whole, words = (_change(of, before, after) for of in (_own, _whole, _words))
    changed = max(less) < min(more) and abs(own) >= _LEAST * fmean(map(_whole, before))
    made_up = (whole - own) * own < 0  # what is not its own changes the other way
    return changed and made_up and abs(whole) <= _LEFT * abs(own) + _UNSURE * abs(words)


def held(row: CellResult, case: Case, cpus: int, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of ``case``; where its program runs by the clock with a warning, and without a verdict.

    One that is held against as many calls as on the baseline keeps its own.
    """
    program = "pack" in case.params and "start" not in case.params  # a suite's has a fixed number of operations
    if not row.verdict or row.metric == _OWN or not program or cpus != 1 or not before or not after:
        return row
    if not lasts(before, after):
        return row
    known = any(isinstance(warning, OtherCalls | CallsBeside) for warning in row.warnings)
    kind = ByClock if known else ByClockAlone
    told = kind(fmean(map(_whole, before)), fmean(map(_own, before)), fmean(map(_own, after)))
    verdict = row.verdict if known else "inconclusive"
    return replace(row, verdict=verdict, p_value=row.p_value if known else None, warnings=(*row.warnings, told))
