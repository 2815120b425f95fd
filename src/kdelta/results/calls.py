# SPDX-License-Identifier: GPL-2.0-or-later
"""What a change in instructions would be if the program had made the system calls that it made on the baseline. Pure.

A program may loop until another process has done something, or take what has arrived so far: how often it calls the
kernel then hangs on when things happen, which in emulated time a few instructions decide. stress-ng's access stressor
made 21 calls of access(2) an operation on 6.12 and 134 on 6.16, where the call costs the same. As with string
instructions (verdict/work.py) there are two accounts; the second is the patched kernel's cost of each call at the
baseline's number of calls, as in a Laspeyres price index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from kdelta.model import CellResult, Profile
from kdelta.verdict.warnings import BelowDelta, MixedCalls, OtherCalls
from kdelta.verdict.work import INSTRUCTIONS

_LEFT = 0.5  # of a change, as logarithms: with less at the same calls these are most of it
_NAMED = 4


class _Call(Struct, frozen=True, kw_only=True):
    """A system call of both sides, per operation; ``extra``: instructions that are due to its number."""

    name: str
    before: float
    after: float
    extra: float


class Account(Struct, frozen=True, kw_only=True):
    """A change with the calls of the baseline; ``most``: where the calls are most of the change, what to tell."""

    same_calls_percent: float
    most: OtherCalls | None = None


def doubtful(row: CellResult) -> bool:
    """Whether ``row`` says that instructions changed."""
    whole = row.effect_percent
    called = row.verdict in ("improved", "regressed")
    return row.metric == INSTRUCTIONS and called and bool(row.baseline and whole and math.isfinite(whole))


def held(row: CellResult, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """``row``, held against the second account; the profiles are those of all seeds of its two kernels.

    Where that leaves less than half of the change, the verdict falls if the calls vary with the seed; if they do not,
    the kernel made the program call otherwise, and the verdict stands with a warning.
    """
    if not doubtful(row):
        return row
    account = second(row.baseline or 0.0, row.effect_percent or 0.0, before, after)
    if account is None:
        return row
    told = replace(row, extra=row.extra | {"effect_same_calls_percent": account.same_calls_percent})
    if account.most is None:
        return told
    if not isinstance(account.most, MixedCalls):
        return replace(told, warnings=(*told.warnings, account.most))
    kept = tuple(warning for warning in told.warnings if not isinstance(warning, BelowDelta))
    return replace(told, verdict="inconclusive", p_value=None, warnings=(*kept, account.most))


def second(
    baseline: float, whole_percent: float, before: Sequence[Profile], after: Sequence[Profile]
) -> Account | None:
    """The second account of a change by ``whole_percent`` of ``baseline``; None where the calls are the same."""
    if not before or not after or not all(profile.system_calls for profile in (*before, *after)):
        return None
    differing = _differing(before, after)
    if not differing or not baseline:
        return None
    same = whole_percent - 100.0 * math.fsum(call.extra for call in differing) / baseline
    if _size(same) / _size(whole_percent) >= _LEFT:
        return Account(same_calls_percent=same)
    named = tuple((call.name, call.before, call.after) for call in differing[:_NAMED])
    varies = any(_varies(side, name) for side in (before, after) for name, *_ in named)
    kind = MixedCalls if varies else OtherCalls
    more = max(0, len(differing) - _NAMED)
    return Account(same_calls_percent=same, most=kind(whole_percent, same, named, more))


def _size(percent: float) -> float:
    return math.log1p(percent / 100.0) if percent > -100.0 else -math.inf


def _differing(before: Sequence[Profile], after: Sequence[Profile]) -> list[_Call]:
    """The system calls whose numbers differ, those first that come to most; faults and interrupts are the kernel's."""
    found = []
    for name in sorted(set().union(*(profile.system_calls for profile in (*before, *after)))):
        (calls, cost), (calls_after, cost_after) = _per_op(before, name), _per_op(after, name)
        if name.startswith("[") or calls == calls_after:
            continue
        price = cost_after / calls_after if calls_after else cost / calls
        found.append(_Call(name=name, before=calls, after=calls_after, extra=cost_after - calls * price))
    return sorted(found, key=lambda call: (-abs(call.extra), call.name))


def _per_op(side: Sequence[Profile], name: str) -> tuple[float, float]:
    """Calls and instructions of one system call, per operation: the mean of the seeds."""
    rows = [(profile.system_calls.get(name), profile.ops) for profile in side]
    return (
        fmean(row.calls / ops if row else 0.0 for row, ops in rows),
        fmean(row.instructions / ops if row else 0.0 for row, ops in rows),
    )


def _varies(side: Sequence[Profile], name: str) -> bool:
    return len({row.calls / p.ops if (row := p.system_calls.get(name)) else 0.0 for p in side}) > 1
