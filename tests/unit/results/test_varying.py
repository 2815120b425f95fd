# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between seeds: the functions of any case, and of a program what it does otherwise itself."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.attribution import moved
from kdelta.model import CallCount, CellResult, Profile
from kdelta.results import explain, varying
from kdelta.results.warnings import ProgramVaries
from kdelta.verdict.warnings import Noisy
from unit.attribution import counts
from unit.serve import serve_store

MADE = serve_store.experiment("one", ("6.12", "7.0"))


def row(**more: Any) -> CellResult:
    fields: dict[str, Any] = {
        "case": "pidfd_open", "params": {}, "cgroup": "root", "mitigations": "default", "metric": "instructions",
        "unit": "instructions/op", "better": "lower", "primary": True, "baseline_label": "6.12", "verdict": "same",
        "patched_label": "7.0", "state": "ok", "baseline": 1000.0, "patched": 1000.0, "effect_percent": 0.0,
        "interval_percent": (0.0, 0.0),
    }  # fmt: skip
    return CellResult(**{**fields, **more})


def profile(kernel: dict[str, int], own: int = 0, **calls: int) -> Profile:
    """A run with ``own`` instructions in user space, and system calls by their number, at 10 instructions each."""
    by_name = {name: CallCount(calls=n, instructions=10 * n, rep_bytes=0) for name, n in calls.items()}
    return replace(counts.profile(kernel, user=own), system_calls=by_name)


def seeds(first: list[Profile], last: list[Profile] | None = None) -> explain.Seeds:
    return {(0, "default"): {0: first, **({1: last} if last else {})}}


QUIET = profile({"read": 1000}, own=500, futex=5)


def finished(row: CellResult, seeds: explain.Seeds) -> CellResult:
    return varying.told(row, explain.Explainer(MADE, seeds).by_kernel(row))


def test_counts_that_vary_name_the_functions_of_the_side_that_varies_most() -> None:
    slab = profile({"read": 900, "lock": 100, "___slab_alloc": 400})
    old = profile({"read": 900, "lock": 100})
    (told,) = finished(row(warnings=(Noisy(4.0, None),)), seeds([old, old], [old, slab])).warnings
    assert told == Noisy(4.0, None, functions=("___slab_alloc",))


@pytest.mark.parametrize(
    ("wild", "own", "calls"),
    [
        (profile({"read": 1100}, 500, futex=9, nanosleep=2), 0.0, (("futex", 5.0, 9.0), ("nanosleep", 0.0, 2.0))),
        (profile({"read": 1100}, 600, futex=5), 20.0, ()),
    ],
)
def test_a_program_that_does_other_things_from_seed_to_seed_is_told_so(wild: Profile, own: float, calls: Any) -> None:
    (told,) = finished(row(params={"pack": "x"}), seeds([QUIET] * 2, [QUIET, wild])).warnings
    assert isinstance(told, ProgramVaries)
    assert (told.kernel, round(told.spread_percent, 6), told.functions) == ("7.0", 10.0, ("read",))
    assert told.own_percent == pytest.approx(own)
    assert told.calls == calls


@pytest.mark.parametrize(
    ("params", "wild"),
    [
        ({"pack": "x"}, profile({"read": 1100}, 500, futex=5)),  # the kernel varies, the program does not
        ({"pack": "x"}, profile({"read": 1005}, 500, futex=9)),  # the program does, and it hardly matters
        ({}, profile({"read": 1100}, 900, futex=9)),  # a workload, which is made of its operations
        ({"pack": "x", "start": "y"}, profile({"read": 1100}, 900, futex=9)),  # a suite's program: a difference
    ],
)
def test_where_the_program_repeats_or_there_is_none_nothing_is_said(params: dict[str, str], wild: Profile) -> None:
    assert finished(row(params=params), seeds([QUIET] * 2, [QUIET, wild])).warnings == ()


def test_one_kernel_alone_names_what_varies_too() -> None:
    alone = row(patched_label="", patched=None, verdict=None, effect_percent=None, interval_percent=None)
    wild = profile({"read": 1100}, 500, futex=5)
    (told,) = finished(alone, seeds([QUIET, wild])).warnings
    assert isinstance(told, Noisy) and told.functions == ("read",) and told.judged is None
    assert finished(alone, seeds([QUIET, QUIET])).warnings == ()


def test_calls_of_several_cpus_vary_as_well() -> None:
    """Of 64 threads on two CPUs functions alone were told, where futex(2) was called 400 to 900 times."""
    seeds = [
        replace(QUIET, ops=2, system_calls={}, called={"futex": calls, "exit": 64, "mmap": 70 + calls % 3})
        for calls in (800, 1801)
    ]
    assert moved.calls_that_vary(seeds) == (("futex", 400.0, 900.5), ("mmap", 35.5, 36.0))


def test_calls_are_named_by_what_they_cost() -> None:
    found = moved.calls_that_vary([QUIET, profile({"read": 1}, 1, futex=6, nanosleep=20)])
    assert found == (("nanosleep", 0.0, 20.0), ("futex", 5.0, 6.0))
