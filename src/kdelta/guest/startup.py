# SPDX-License-Identifier: GPL-2.0-or-later
"""A program's run with 2N operations less its run with N: what N operations cost. Pure (spec/counted.py says why)."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.model import EXACT_COUNTERS, CallCount, Profile, RunResult, Series

USER = "[user]"
_KNOWN = frozenset((*EXACT_COUNTERS, "user_instructions"))
REST = "[start-up]"  # functions that ran no more often in the longer run: what start-up varies by


def _less(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(operator.sub, a, b))


def _profile(twice: Profile, once: Profile) -> Profile:
    nothing = (0,) * len(EXACT_COUNTERS)
    functions, rest = {}, nothing
    for name in twice.functions.keys() | once.functions.keys():
        cost = _less(twice.functions.get(name, nothing), once.functions.get(name, nothing))
        if cost[0] > 0 or name == USER:
            functions[name] = cost
        else:
            rest = tuple(map(operator.add, rest, cost))
    if any(rest):
        functions[REST] = rest
    return replace(
        twice,
        functions=dict(sorted(functions.items())),
        total=_less(twice.total, once.total),
        system_calls=_calls(twice, once),
        moved=(),  # cache lines are not told apart by run
        waits=(),
        data_lines={},
        code_lines={},
        called={name: n for name in sorted(twice.called) if (n := twice.called[name] - once.called.get(name, 0))},
    )


def _calls(twice: Profile, once: Profile) -> dict[str, CallCount]:
    """As the functions: what is called no more often is one row.

    Rows in brackets are of no call: they stay also where the shorter run had more. A batch that the kernel freed in
    that one alone (14,000 instructions of stress-ng's rename) was else start-up, and a change made of it no deferred
    work.
    """
    found, rest = {}, (0, 0, 0)
    for name in (twice.system_calls.keys() | once.system_calls.keys()) if once.system_calls else ():
        cost = _less(_counts(twice.system_calls.get(name)), _counts(once.system_calls.get(name)))
        if cost[1] > 0 or (name.startswith("[") and any(cost)):
            found[name] = CallCount(calls=cost[0], instructions=cost[1], rep_bytes=cost[2])
        else:
            rest = (rest[0] + cost[0], rest[1] + cost[1], rest[2] + cost[2])
    if any(rest):
        found[REST] = CallCount(calls=rest[0], instructions=rest[1], rep_bytes=rest[2])
    return dict(sorted(found.items()))


def _counts(count: CallCount | None) -> tuple[int, int, int]:
    return (count.calls, count.instructions, count.rep_bytes) if count is not None else (0, 0, 0)


def _counted(series: Series, once: Profile) -> Series:
    """Each repetition less the repetition that stands for the shorter run."""
    user = once.functions.get(USER, (0,) * len(once.total))
    if series.metric in EXACT_COUNTERS:
        column = EXACT_COUNTERS.index(series.metric)
        start = (once.total[column] - user[column]) / once.ops
    else:
        start = user[0] / once.ops
    return replace(series, values=tuple(value - start for value in series.values))


def _timed(twice: Series, once: Series) -> Series:
    """Window by window, in the order in which they were measured."""
    n = min(len(twice.values), len(once.values))
    pairs = zip(twice.values[:n], once.values[:n], strict=True)
    return replace(twice, values=tuple(a - b for a, b in pairs), warm=twice.warm[:n])


def without(twice: RunResult, once: RunResult) -> RunResult:
    """The run ``twice``, with figures of what it did more than ``once``; not ok where either was not.

    A run that made no more for twice the operations has failed: it did not do them.
    """
    if twice.state != "ok":
        return twice
    if once.state != "ok":
        return replace(once, case=twice.case)
    profile = None
    if twice.profile is not None and once.profile is not None:
        profile = _profile(twice.profile, once.profile)
        every = (_counted(one, once.profile) for one in twice.series if one.metric in _KNOWN)
        series = tuple(one for one in every if min(one.values, default=0.0) >= 0)  # less than none is no count
    else:
        shorter = {one.metric: one for one in once.series}
        series = tuple(_timed(one, shorter[one.metric]) for one in twice.series if one.metric in shorter)
    if not series or series[0].metric != twice.series[0].metric or statistics.median(series[0].kept() or (0.0,)) <= 0:
        why = "twice the operations cost no more than once: none were made, or too few for this machine's noise"
        return RunResult(case=twice.case, state="failed", why=why, facts=twice.facts)
    return replace(twice, series=series, profile=profile, histograms={})


def all_without(runs: Sequence[RunResult], most: int) -> tuple[RunResult, ...]:
    """The runs of cases (numbers below ``most``), each without its shorter run (numbers from ``most`` on)."""
    shorter = {run.case - most: run for run in runs if run.case >= most}
    return tuple(without(run, shorter[run.case]) if run.case in shorter else run for run in runs if run.case < most)
