# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that run until the clock says so: the count is the kernel's part of that time, and no cost. Pure.

A program's first run, which is not counted, has a clock that goes 10 % faster (guest/workloads/program_clock.h): one
that runs for a time takes 9 % less CPU time then. Of older experiments, or where less of it runs so: an exact guest's
clock counts instructions. A program that takes page faults for 0.1 s executes as many on each kernel,
its own and the kernel's together; where a fault costs more there are fewer faults, and the kernel's count is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from msgspec.structs import replace

from kdelta.attribution.profiles import USER
from kdelta.model import EXACT_COUNTERS, CallCount, Case, CellResult, Profile
from kdelta.verdict.warnings import ByClock, ByClockAlone, CallsBeside, OtherCalls
from kdelta.verdict.work import BYTES, WORD_BYTES

_OWN = "user_instructions"
_REP_BYTES = EXACT_COUNTERS.index(BYTES)
_SHORTENED = (0.9, 0.96)  # of its CPU time, where the clock goes 10 % faster: of half of it, and more
_ENDS = (
    "exit_group",
    "exit",
    "[end of killed tasks]",
)  # what a process leaves is taken down after it has last read the clock
_LEFT = 0.1  # so much of the change of one part the other leaves, at most: else they do not make up for each other
_UNSURE = 0.5  # of the words that string instructions move: some are bytes
_MOST = 0.003  # of the run, by which both together may change all the same
_LEAST_OWN, _LEAST = 0.01, 0.0003  # of the program's own part, and of the run: as much as the first changes


def _own(profile: Profile) -> float:
    return profile.functions.get(USER, (0,))[0] / profile.ops


def _words(profile: Profile, ends: bool = True) -> float:
    """What string instructions move, by 8 bytes: each takes the clock as far as an instruction does."""
    left_out = 0 if ends else sum(row.rep_bytes for row in _rows(profile))
    return (profile.total[_REP_BYTES] - left_out) / WORD_BYTES / profile.ops


def _whole(profile: Profile, ends: bool = True) -> float:
    left_out = 0 if ends else sum(row.instructions for row in _rows(profile))
    return (profile.total[0] - left_out) / profile.ops + _words(profile, ends)


def _rows(profile: Profile) -> list[CallCount]:
    return [profile.system_calls[name] for name in _ENDS if name in profile.system_calls]


def _makes_up(before: Sequence[Profile], after: Sequence[Profile], ends: bool) -> bool:
    """Whether what is not the program's own changes the other way, by as much; ``ends``: with ends of processes."""
    own = fmean(map(_own, after)) - fmean(map(_own, before))
    (old, new), (less, more) = (
        [fmean(of(one, ends) for one in side) for side in (before, after)] for of in (_whole, _words)
    )
    left = min(_LEFT * abs(own) + _UNSURE * abs(more - less), _MOST * old)
    return (new - old - own) * own < 0 and abs(own) >= _LEAST * old and abs(new - old) <= left


def lasts(before: Sequence[Profile], after: Sequence[Profile]) -> bool:
    """Whether under all seeds the program itself does more on one kernel, or less, and both together do as much."""
    old, new = ([_own(one) for one in side] for side in (before, after))
    less, more = (old, new) if max(old) <= min(new) else (new, old)
    apart = max(less) < min(more) and fmean(more) - fmean(less) >= _LEAST_OWN * fmean(old)
    return apart and any(_makes_up(before, after, ends) for ends in (True, False))


def shortened(profiles: Sequence[Profile]) -> float:
    """How many percent less CPU time it takes, under all seeds, where the clock goes faster; 0 where it does not."""
    shares = [one.faster_clock_cpu for one in profiles]
    least, most = _SHORTENED
    return 100.0 * (1.0 - fmean(shares)) if all(least <= share <= most for share in shares) else 0.0


def _runs_whole(case: Case) -> bool:
    return "pack" in case.params and "start" not in case.params  # a suite's has a fixed number of operations


def doubtful(row: CellResult, case: Case) -> bool:
    """Whether ``held`` may take the verdict of ``row``."""
    return _runs_whole(case) and row.metric != _OWN and row.verdict not in (None, "inconclusive")


def held(row: CellResult, case: Case, cpus: int, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of ``case``; where its program runs by the clock with a warning, and without a verdict.

    One that is held against as many calls as on the baseline keeps its own.
    """
    if not row.verdict or row.metric == _OWN or not _runs_whole(case) or not before or not after:
        return row
    less = shortened((*before, *after))
    if not less and (cpus != 1 or not lasts(before, after)):
        return row
    known = any(isinstance(warning, OtherCalls | CallsBeside) for warning in row.warnings)
    kind = ByClock if known else ByClockAlone
    told = kind(fmean(map(_own, before)), fmean(map(_own, after)), less)
    verdict = row.verdict if known else "inconclusive"
    return replace(row, verdict=verdict, p_value=row.p_value if known else None, warnings=(*row.warnings, told))
