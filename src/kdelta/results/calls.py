# SPDX-License-Identifier: GPL-2.0-or-later
"""What a count of instructions would be if the program had made the system calls that it made on the baseline. Pure.

A program may loop until another process has done something, or take what has arrived so far: how often it calls the
kernel then hangs on when things happen, which in emulated time a few instructions decide. stress-ng's access stressor
made 21 calls of access(2) an operation on 6.12 and 134 on 6.16, where the call costs the same. And an interval of a
loop that is stopped holds one more of what the loop does now and then, or one fewer: will-it-scale's tlb_flush2 unmaps
once in 256 operations, of which there are 369. As with string instructions (verdict/work.py) there are two accounts;
the second is the patched kernel's cost of each call at the baseline's number of calls, as in a Laspeyres price index.
On several CPUs what each call costs is not counted, and all have the average price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import profiles
from kdelta.attribution.entries import UNIMPLEMENTED, UNNAMED
from kdelta.attribution.once import once
from kdelta.model import CallCount, CellResult, Metric, Profile
from kdelta.stats import counts, paired
from kdelta.verdict.warnings import BelowDelta, CallsBeside, MixedCalls, OtherCalls, Why
from kdelta.verdict.words import DELTA_PERCENT
from kdelta.verdict.work import INSTRUCTIONS

_LEFT = 0.5  # of a change, as logarithms: with less at the same calls these are most of it
_TOLD = 0.75  # the share below which, or above whose inverse, the second account is worth a word, however little
_NEAR = 0.9  # so it is where both are apart by more than 1 % (DELTA_PERCENT), and by more than this share
_APART = 0.25  # of what is due to the calls: more between their prices on the two sides is told
_REFUSED = 2.0  # times what calls of no function come to on the other side
_NAMED = 4
_CHANGED = ("improved", "regressed")


class _Call(Struct, frozen=True, kw_only=True):
    """A system call of both sides, per operation; ``extra``: instructions that are due to its number, at the price of
    the patched kernel, ``then`` at that of the baseline: far from it where calls of a cheap kind are left out.

    ``varies``: with the seed. ``cut``: an interval of a loop can hold as many on either side.
    """

    name: str
    before: float
    after: float
    extra: float
    then: float
    varies: bool
    cut: bool


class Account(Struct, frozen=True, kw_only=True):
    """A count with the calls of the baseline, and what to tell of it: MixedCalls where the whole decides nothing."""

    same_calls_percent: float
    told: OtherCalls | None = None


def endless(metrics: Mapping[str, Sequence[Metric]]) -> frozenset[str]:
    """The workloads that are loops without end, by the metrics of each: their intervals have edges."""
    return frozenset(
        name for name, known in metrics.items() if any(one.name == INSTRUCTIONS and one.least for one in known)
    )


def doubtful(row: CellResult) -> bool:
    """Whether the second account may take the verdict of ``row`` away."""
    return _counted(row) and row.verdict in _CHANGED


def _counted(row: CellResult) -> bool:
    whole = row.effect_percent
    return row.metric == INSTRUCTIONS and bool(row.baseline) and whole is not None and math.isfinite(whole)


def held(row: CellResult, before: Sequence[Profile], after: Sequence[Profile], *, endless: bool = False) -> CellResult:
    """``row``, held against the second account; the profiles are those of all seeds of its two kernels.

    Where that leaves less than half of a change, the verdict falls if the calls vary with the seed; if they do not,
    the kernel made the program call otherwise, and the verdict stands with a warning. ``endless``: the case is a loop
    that is stopped, whose intervals have edges: one call more or fewer is no evidence, under however many seeds.
    """
    if not _counted(row) or row.verdict not in (*_CHANGED, "same"):
        return row
    account = second(row.baseline or 0.0, row.effect_percent or 0.0, before, after, endless=endless)
    if account is None:
        return row
    less_each = account.told is not None and account.told.less_each
    known = {} if less_each else {"effect_same_calls_percent": account.same_calls_percent}
    told = replace(row, extra=row.extra | known)
    if row.verdict == "same":
        return replace(told, warnings=(*told.warnings, *_evened_out(told, account, before, after)))
    if account.told is None:
        return told
    if not isinstance(account.told, MixedCalls):
        return replace(told, warnings=(*told.warnings, account.told))
    return _without_verdict(told, account.told)


def beside(row: CellResult, instructions: MixedCalls) -> CellResult:
    """Another count of the case whose ``instructions`` decide nothing: it is of the same calls."""
    if row.metric == INSTRUCTIONS or row.verdict is None:
        return row
    return _without_verdict(row, CallsBeside(instructions.calls, instructions.more))


def _without_verdict(row: CellResult, why: MixedCalls | CallsBeside) -> CellResult:
    kept = tuple(warning for warning in row.warnings if not isinstance(warning, BelowDelta))
    return replace(row, verdict="inconclusive", p_value=None, warnings=(*kept, why))


def second(
    baseline: float, whole_percent: float, before: Sequence[Profile], after: Sequence[Profile], *, endless: bool = False
) -> Account | None:
    """The second account of a change by ``whole_percent`` of ``baseline``; None where the calls are the same."""
    if not before or not after or not all(_made(profile) for profile in (*before, *after)):
        return None
    differing = _differing(before, after, endless=endless)
    if not differing or not baseline:
        return None
    same = whole_percent - 100.0 * math.fsum(call.extra for call in differing) / baseline
    left = _size(same) / _size(whole_percent) if whole_percent else 1.0
    nearest = _TOLD if abs(same - whole_percent) <= DELTA_PERCENT else _NEAR
    if nearest <= left <= 1 / nearest:
        return Account(same_calls_percent=same)
    kind = MixedCalls if left < _LEFT and _why(differing) != "kernel" else OtherCalls
    told = _with_refused(_said(kind, whole_percent, same, differing, bool(after[0].called)), before, after)
    then = whole_percent - 100.0 * math.fsum(call.then for call in differing) / baseline
    if min(then, same) <= -100.0 and kind is OtherCalls:
        told = replace(told, less_each=True)
    elif then > -100.0 and abs(then - same) > _APART * abs(whole_percent - same) and not told.averaged:
        told = replace(told, then_percent=then)
    return Account(same_calls_percent=same, told=told)


def _said(kind: type[OtherCalls], whole: float, same: float, differing: Sequence[_Call], averaged: bool) -> OtherCalls:
    named = tuple((call.name, call.before, call.after) for call in differing[:_NAMED])
    return kind(whole, same, named, max(0, len(differing) - _NAMED), _why(differing), averaged)


def _with_refused(told: OtherCalls, before: Sequence[Profile], after: Sequence[Profile]) -> OtherCalls:
    """With what one side does not have: the program called it there as well, and got ENOSYS.

    A number that the kernel's table lacks enters no function of a system call, one that is configured out that for all.
    """
    costs = [sum(_per_op(side, name)[1] for name in (UNNAMED, UNIMPLEMENTED)) for side in (before, after)]
    by = costs.index(max(costs))
    if costs[by] <= _REFUSED * costs[1 - by]:
        return told
    names = tuple(name for name, *made in told.calls if not made[by] and made[1 - by])
    return replace(told, refused=names, by="patched" if by else "baseline") if names else told


def _why(differing: Sequence[_Call]) -> Why:
    """What the numbers hang on. One call that varies with the seed, of whatever weight, says that all hang on time:

    in emulated time seeds move little. Of stress-ng's pthread 2.3 or 2.4 of rt_sigpending(2) an operation told so,
    where futex(2) and openat(2) were as many under each seed.
    """
    if any(call.varies for call in differing):
        return "seed"
    return "interval" if any(call.cut for call in differing) else "kernel"


def _evened_out(
    row: CellResult, account: Account, before: Sequence[Profile], after: Sequence[Profile]
) -> tuple[OtherCalls, ...]:
    """What to tell of a ``row`` that is the same because fewer calls cost more each, or the other way round."""
    n = min(len(before), len(after))
    delta = row.extra.get("delta_percent", DELTA_PERCENT)
    totals = [[profiles.kernel_vector(one)[0] / one.ops for one in side[:n]] for side in (before, after)]
    pairs = zip(totals[1], before, after, strict=False)
    priced = [total - math.fsum(call.extra for call in _differing([a], [b])) for total, a, b in pairs]
    if min(*totals[0], *priced) < 0:
        return ()
    look = counts.look(np.array(totals[0]), np.array(priced), counts.LOOKS, delta)
    plain = look.finished and look.call in (paired.LOWER, paired.HIGHER)
    if not plain or abs(look.effect or 0.0) <= delta or abs(account.same_calls_percent) <= delta:
        return ()
    whole, differing = row.effect_percent or 0.0, _differing(before, after)
    told = _said(OtherCalls, whole, account.same_calls_percent, differing, bool(after[0].called))
    return (_with_refused(told, before, after),)


@once
def _made(profile: Profile) -> Mapping[str, CallCount]:
    """The system calls of a run with what each came to; on several CPUs at the average of all."""
    if profile.system_calls or not profile.called:
        return profile.system_calls
    price = profiles.kernel_vector(profile)[0] / (sum(profile.called.values()) or 1)
    return {
        name: CallCount(calls=calls, instructions=round(calls * price), rep_bytes=0)
        for name, calls in profile.called.items()
    }


def _size(percent: float) -> float:
    return math.log1p(percent / 100.0) if percent > -100.0 else -math.inf


def _differing(before: Sequence[Profile], after: Sequence[Profile], *, endless: bool = False) -> list[_Call]:
    """The system calls whose numbers differ, those first that come to most; faults and interrupts are the kernel's."""
    found = []
    edges = sum(1.0 / fmean(profile.ops for profile in side) for side in (before, after))
    for name in sorted(set().union(*(_made(profile) for profile in (*before, *after)))):
        (calls, cost), (calls_after, cost_after) = _per_op(before, name), _per_op(after, name)
        if name.startswith("[") or calls == calls_after:
            continue
        price = cost_after / calls_after if calls_after else cost / calls
        found.append(
            _Call(
                name=name,
                before=calls,
                after=calls_after,
                extra=cost_after - calls * price,
                then=(calls_after - calls) * (cost / calls if calls else price),
                varies=any(_varies(side, name) for side in (before, after)),
                cut=endless and abs(calls - calls_after) < edges,
            )
        )
    renamed = _under_other_names(found, before, after)
    return sorted((call for call in found if call.name not in renamed), key=lambda call: (-abs(call.extra), call.name))


def _under_other_names(
    differing: Sequence[_Call], before: Sequence[Profile], after: Sequence[Profile]
) -> frozenset[str]:
    """Calls that one side alone has, as often as the other side has others: the kernel has other functions for them.

    A patch had getppid(2) come to sys_getpid(): no program made other calls. One that did, as the kernel refused
    the first, made the refused ones besides.
    """
    gone = [call for call in differing if not call.after]
    new = [call for call in differing if not call.before]
    as_often = sorted(call.before for call in gone) == sorted(call.after for call in new)
    refused = any(_per_op(before, name)[0] != _per_op(after, name)[0] for name in (UNNAMED, UNIMPLEMENTED))
    if not as_often or refused or any(call.varies for call in (*gone, *new)):
        return frozenset()
    return frozenset(call.name for call in (*gone, *new))


def _per_op(side: Sequence[Profile], name: str) -> tuple[float, float]:
    """Calls and instructions of one system call, per operation: the mean of the seeds."""
    rows = [(_made(profile).get(name), profile.ops) for profile in side]
    return (
        fmean(row.calls / ops if row else 0.0 for row, ops in rows),
        fmean(row.instructions / ops if row else 0.0 for row, ops in rows),
    )


def _varies(side: Sequence[Profile], name: str) -> bool:
    return len({row.calls / p.ops if (row := _made(p).get(name)) else 0.0 for p in side}) > 1
