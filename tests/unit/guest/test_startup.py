# SPDX-License-Identifier: GPL-2.0-or-later
"""What N more operations cost: a longer run less a shorter one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from operator import add

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import TOUCHED, exact_metrics
from kdelta.guest import startup
from kdelta.model import EXACT_COUNTERS, CallCount, Profile, RunResult, Series, State

PARTS = 10


def vector(instructions: int) -> tuple[int, ...]:
    return (instructions, instructions // 2, *(0,) * (len(EXACT_COUNTERS) - 2))


def counted(case: int, user: int, state: State = "ok", **functions: int) -> RunResult:
    """A run whose profile has these functions, with series as attribution/exact.py makes them."""
    named = {name: vector(n) for name, n in functions.items()} | {"[user]": vector(user)}
    kernel = [sum(vector(n)[i] for n in functions.values()) for i in range(len(EXACT_COUNTERS))]
    total = tuple(starmap(add, zip(kernel, vector(user), strict=True)))
    values = dict(zip(EXACT_COUNTERS, kernel, strict=True)) | {"user_instructions": user}
    values |= {name: 7 for name, _ in TOUCHED}  # start-up has them as well: which is whose is not known
    series = tuple(
        Series(metric=m.name, unit=m.unit, better=m.better, values=(values[m.name] / PARTS,) * 2)
        for m in exact_metrics("op", PARTS)
    )
    profile = Profile(ops=PARTS, functions=named, total=total)
    return RunResult(case=case, state=state, why="" if state == "ok" else "why", series=series, profile=profile)


def figure(run: RunResult, metric: str) -> Sequence[float]:
    return next(one.values for one in run.series if one.metric == metric)


def test_start_up_is_in_neither_figure_and_functions_add_up() -> None:
    once = counted(0, 500, start_a_program=100_000, pipe_write=3000, noise=70)
    twice = counted(0, 700, start_a_program=100_000, pipe_write=6000, noise=64)
    run = startup.without(twice, once)
    assert run.state == "ok"
    assert figure(run, "instructions") == pytest.approx((299.4, 299.4))
    assert figure(run, "user_instructions") == pytest.approx((20.0, 20.0))
    assert run.profile is not None
    assert run.profile.functions == {
        "[start-up]": (-6, -3, *(0,) * 5),
        "[user]": vector(200),
        "pipe_write": vector(3000),
    }
    sums = [sum(column) for column in zip(*run.profile.functions.values(), strict=True)]
    assert sums == list(run.profile.total)


def test_calls_of_start_up_are_not_among_those_of_several_cpus() -> None:
    made = {0: {"read": 40, "execve": 1, "futex": 3}, 1: {"read": 70, "execve": 1, "futex": 2}}
    runs = [counted(0, 500, f=1000 * (n + 1)) for n in made]
    once, twice = (
        replace(run, profile=replace(run.profile, called=made[n])) for n, run in enumerate(runs) if run.profile
    )
    profile = startup.without(twice, once).profile
    assert profile is not None and profile.called == {"read": 30, "futex": -1}


def test_no_more_for_twice_the_operations_is_a_failure() -> None:
    run = startup.without(counted(0, 500, start=1000), counted(0, 500, start=1000))
    assert run.state == "failed"
    assert run.why.startswith("twice the operations cost no more")
    assert run.series == ()


def test_a_count_that_is_less_for_twice_the_operations_has_no_figure() -> None:
    run = startup.without(counted(0, 500, read=300), counted(2, 700, read=100))
    assert run.state == "ok" and figure(run, "instructions") == pytest.approx((20.0, 20.0))
    assert "user_instructions" not in {one.metric for one in run.series}
    assert all(value >= 0 for one in run.series for value in one.values)


@pytest.mark.parametrize("bad", ["hung", "failed", "unsupported", "lost"])
def test_either_run_that_is_not_ok_is_the_cases_state(bad: State) -> None:
    good = counted(2, 5, work=10)
    for pair in ((counted(2, 5, bad), good), (good, counted(9, 5, bad))):
        run = startup.without(*pair)
        assert (run.case, run.state, run.why) == (2, bad, "why")


def test_windows_of_time_are_taken_pair_by_pair_and_warm_ones_stay_warm() -> None:
    def timed(case: int, *values: float) -> RunResult:
        series = Series(
            metric="elapsed", unit="ns", better="lower", values=values, warm=(True, *(False,) * (len(values) - 1))
        )
        return RunResult(case=case, state="ok", series=(series,), histograms={"latency": b""})

    run = startup.without(timed(0, 50.0, 30.0, 34.0, 33.0), timed(0, 20.0, 10.0, 12.0))
    assert run.series[0].values == (30.0, 20.0, 22.0)
    assert run.series[0].warm == (True, False, False)
    assert not run.histograms


def test_each_case_is_paired_with_its_own_shorter_run() -> None:
    runs = [counted(0, 1, a=5), counted(1, 1, a=50), counted(3, 1, a=20)]
    plain, less = startup.all_without(runs, 2)
    assert plain == runs[0]
    assert figure(less, "instructions") == pytest.approx((3.0, 3.0))


def test_system_calls_are_those_of_the_operations() -> None:
    def calling(run: RunResult, **calls: int) -> RunResult:
        assert run.profile is not None
        counts = {name: CallCount(calls=n, instructions=100 * n, rep_bytes=n) for name, n in calls.items()}
        return replace(run, profile=replace(run.profile, system_calls=counts))

    run = startup.without(
        calling(counted(0, 1, work=50), write=30, mmap=9, brk=2),
        calling(counted(0, 1, work=30), write=10, mmap=9, brk=3),
    )
    assert run.profile is not None
    assert run.profile.system_calls == {
        "[start-up]": CallCount(calls=-1, instructions=-100, rep_bytes=-1),
        "write": CallCount(calls=20, instructions=2000, rep_bytes=20),
    }


def test_what_the_kernel_did_of_itself_in_the_shorter_run_is_no_start_up() -> None:
    """rename's shorter run had 14,249 instructions of freed memory more: deferred.py has to see them."""

    def calling(run: RunResult, **counts: CallCount) -> RunResult:
        assert run.profile is not None
        return replace(
            run,
            profile=replace(
                run.profile, system_calls={"write": CallCount(calls=20, instructions=9, rep_bytes=0), **counts}
            ),
        )

    later, ticks = "[kernel threads and new tasks]", "[timer interrupt]"
    batch, tick = (
        CallCount(calls=0, instructions=14_249, rep_bytes=64),
        CallCount(calls=4, instructions=900, rep_bytes=0),
    )
    run = startup.without(
        calling(counted(0, 1, work=500_000), **{ticks: tick}),
        calling(counted(0, 1, work=30), **{later: batch, ticks: tick}),
    )
    assert run.profile is not None
    assert run.profile.system_calls == {later: CallCount(calls=0, instructions=-14_249, rep_bytes=-64)}
