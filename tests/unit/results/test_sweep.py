# SPDX-License-Identifier: GPL-2.0-or-later
"""Sweeps from given figures: points, gaps, steps and the functions behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta.kernel import banner as banner_module
from kdelta.model import (
    Annotations,
    Because,
    CallCount,
    Case,
    Experiment,
    ExperimentResult,
    Gap,
    Kernel,
    MachineOptions,
    Metric,
    Mode,
    MovedLine,
    Profile,
    State,
    plans,
)
from kdelta.report.view import build
from kdelta.results.sweep import step_functions, strings, sweeps
from kdelta.results.types import Detail, Sweep
from kdelta.results.versions import Version, gaps_in
from kdelta.results.warnings import StepDetectable, StepStrings, StepUnseen
from kdelta.verdict import CellData, Observation
from kdelta.verdict.warnings import CallsBeside, MixedAccounts, MixedCalls, TooFewSeeds, WithinFloor

INSTRUCTIONS = Metric(name="instructions", unit="instructions/op", better="lower", primary=True)
LOADS = Metric(name="loads", unit="loads/op", better="lower")
RATE = Metric(name="rate", unit="ops/s", better="higher", primary=True)


def experiment(versions: int, mode: Mode = "exact", blocks: int = 3) -> Experiment:
    kernels = tuple(
        Kernel(label=f"6.{i}", spec="", release="", image_path="", image_sha256=str(i)) for i in range(versions)
    )
    return Experiment(
        id="s", plan=plans.Sweep(), mode=mode, kernels=kernels, cases=(Case(workload="pipe"),), blocks=blocks, seed=7
    )


def cells(figures: Sequence[Sequence[float] | State], metric: str = "instructions") -> list[CellData]:
    """One cell per version: its figures by seed or block, or the state that it has instead."""
    found = []
    for kernel, values in enumerate(figures):
        if isinstance(values, str):
            boots = tuple(Observation(block=b, slot=kernel, state=values, why="no syscall") for b in range(3))
        else:
            boots = tuple(Observation(block=b, slot=kernel, value=v) for b, v in enumerate(values))
        found.append(CellData(case=0, metric=metric, kernel=kernel, boots=boots))
    return found


def sweep(
    figures: Sequence[Sequence[float] | State],
    floor: float = 0.0,
    seeds: Mapping[int, Sequence[Profile]] | None = None,
    metric: Metric = INSTRUCTIONS,
    mode: Mode = "exact",
) -> Sweep:
    (found,) = sweeps(
        experiment(len(figures), mode),
        cells(figures, metric.name),
        {"pipe": floor},
        {"pipe": (metric, LOADS)},
        {(0, "default"): seeds or {}},
    )
    return found


def profile(**functions: int) -> Profile:
    vectors: dict[str, tuple[int, ...]] = {name: (count, 0, 0, 0, 0, 0, 0) for name, count in functions.items()}
    return Profile(ops=1, functions=vectors, total=(sum(functions.values()), 0, 0, 0, 0, 0, 0))


def test_every_exact_change_between_neighbours_is_a_step() -> None:
    found = sweep([[100.0] * 5, [100.0] * 5, [110.0] * 5, [99.0] * 5])
    assert [(s.last, s.first, s.verdict) for s in found.steps] == [
        ("6.1", "6.2", "regressed"),
        ("6.2", "6.3", "improved"),
    ]
    assert [round(s.effect_percent, 6) for s in found.steps] == [10.0, -10.0]
    assert [p.value for p in found.points] == [100.0, 100.0, 110.0, 99.0]


def test_a_change_within_the_floor_is_no_step() -> None:
    assert sweep([[1000.0] * 5, [1006.0] * 5], floor=0.7).steps == ()
    assert len(sweep([[1000.0] * 5, [1008.0] * 5], floor=0.7).steps) == 1


def test_a_change_within_the_spread_of_the_seeds_is_no_step() -> None:
    wide = [1000.0 + 50 * (i % 3) for i in range(8)]
    assert sweep([wide, [x + 2 * (i % 2) for i, x in enumerate(reversed(wide))]]).steps == ()
    quiet = [1000.0 + i % 3 for i in range(8)]
    assert len(sweep([quiet, [x + 40 + i % 2 for i, x in enumerate(quiet)]]).steps) == 1


def test_a_gap_keeps_its_state_and_is_stepped_over() -> None:
    found = sweep([[100.0] * 5, "unsupported", [120.0] * 5, "panicked"])
    assert [(p.value, p.state) for p in found.points] == [
        (100.0, "ok"), (None, "unsupported"), (120.0, "ok"), (None, "panicked"),
    ]  # fmt: skip
    assert found.points[1].why == "no syscall"
    assert [(s.last, s.first) for s in found.steps] == [("6.0", "6.2")]


def test_a_version_that_has_not_run_yet_is_a_gap() -> None:
    (found,) = sweeps(experiment(3), cells([[1.0] * 5, [1.0] * 5]), {}, {"pipe": (INSTRUCTIONS,)}, {})
    assert (found.points[2].state, found.points[2].why) == ("lost", "not booted yet")


def test_four_seeds_make_no_step_and_the_version_after_says_so() -> None:
    found = sweep([[100.0] * 5, [200.0] * 4, [200.0] * 5, [200.0] * 5])
    few = TooFewSeeds(4, 5)
    assert (found.steps, [point.unseen for point in found.points]) == ((), [None, few, few, None])


def test_counts_that_vary_say_what_they_could_have_seen() -> None:
    rng = np.random.default_rng(1)
    found = sweep([np.round(1000 * np.exp(rng.normal(0, 0.05, 8))).tolist() for _ in range(2)])
    assert found.steps == () and isinstance(found.points[1].unseen, StepDetectable)


def test_what_reaches_into_the_noise_floor_says_that_and_no_smaller_step_that_is_detectable() -> None:
    """-10.5 % [-13.8, -7.7] at a floor of 10 % was undecided as the "minimum detectable step" was 2.6 %."""
    data = cells([[1000.0 + i % 3 for i in range(8)], [870.0 + 7 * i for i in range(8)]])
    (found,) = sweeps(experiment(2), data, {"pipe": 10.0}, {"pipe": (INSTRUCTIONS,)}, {})
    assert (found.steps, found.points[1].unseen) == ((), WithinFloor(10.0, reaches=True))


def test_counts_whose_two_accounts_disagree_say_that_first() -> None:
    reps = tuple(Metric(name=name, unit="", better="lower") for name in ("rep_executions", "rep_bytes"))
    data = cells([[1000.0 + i % 2 for i in range(8)], [1000.0 + i % 3 for i in range(8)]])
    for metric, sides in zip(reps, ((1.0, 1.0), (80.0, 800.0)), strict=True):
        data += cells([[side] * 8 for side in sides], metric.name)
    (found,) = sweeps(experiment(2), data, {}, {"pipe": (INSTRUCTIONS, *reps)}, {})
    assert found.steps == () and isinstance(found.points[1].unseen, MixedAccounts)


def test_a_program_that_makes_other_calls_has_no_step_and_its_whole_change_says_nothing() -> None:
    def run(calls: int) -> Profile:
        made = {"access": CallCount(calls=calls, instructions=50 * calls, rep_bytes=0)}
        return replace(profile(vfs_access=50 * calls), system_calls=made)

    seeds = {k: [run(calls), run(calls + (calls > 20))] for k, calls in enumerate((20, 20, 100))}
    found = sweep([[1000.0] * 5, [1000.0] * 5, [5000.0] * 5], seeds=seeds)
    assert found.steps == () and [type(point.unseen) for point in found.points] == [type(None), type(None), MixedCalls]
    assert isinstance(found.whole, MixedCalls) and found.whole.same_calls_percent == pytest.approx(0, abs=3)
    assert sweep([[1000.0] * 5, [5000.0] * 5], seeds={0: [profile(f=1000)], 1: [profile(f=5000)]}).whole is None


def test_what_crosses_between_cpus_has_no_step_where_the_program_makes_other_calls() -> None:
    """As in a comparison, where every count of the case falls with its instructions."""

    def run(calls: int) -> Profile:
        return replace(profile(vfs_access=50 * calls), called={"access": calls})

    transfers = Metric(name="transfers", unit="transfers/op", better="lower", primary=True)
    data = cells([[1000.0] * 5, [5000.0] * 5]) + cells([[3.0] * 5, [21.0] * 5], "transfers")
    several = replace(experiment(2), machine=MachineOptions(smp=4))
    seeds = {(0, "default"): {0: [run(20), run(20)], 1: [run(100), run(101)]}}
    for found in sweeps(several, data, {}, {"pipe": (INSTRUCTIONS, transfers)}, seeds):
        assert (found.steps, isinstance(found.points[1].unseen, MixedCalls | CallsBeside)) == ((), True)


def test_a_step_names_the_functions_of_the_versions_around_it() -> None:
    before, after = profile(vfs_read=60, pipe_read=40), profile(vfs_read=60, pipe_read=70, new_one=5)
    found = sweep([[100.0] * 5, "lost", [135.0] * 5], seeds={0: [before], 2: [after]})
    (step,) = found.steps
    assert {d.function: d.delta for d in step.because} == {"pipe_read": 30.0, "new_one": 5.0}
    assert step.because_line is not None and ("pipe_read", 30.0) in step.because_line.changed


def test_a_step_of_transfers_names_the_lines_that_move_and_draws_no_functions() -> None:
    def moving(writes: int) -> Profile:
        return replace(profile(vfs_read=60 + writes), moved=(MovedLine(name="tasklist_lock", reads=0, writes=writes),))

    transfers = Metric(name="transfers", unit="transfers/op", better="lower", primary=True)
    found = sweep([[58.0] * 5, [46.0] * 5], seeds={0: [moving(58)], 1: [moving(46)]}, metric=transfers)
    (step,) = found.steps
    assert [(d.function, d.delta) for d in step.because] == [("tasklist_lock", -12.0)]
    assert step.because_line == Because(changed=(("tasklist_lock", -12.0),))
    assert step_functions([found]) == ()


def test_a_profile_without_names_explains_nothing() -> None:
    (step,) = sweep(
        [[100.0] * 5, [200.0] * 5], seeds={0: [profile(**{"[unknown 0xff]": 100})], 1: [profile(f=200)]}
    ).steps
    assert (step.because, step.because_line) == ((), None)


def test_a_step_from_zero_has_no_percentage() -> None:
    (step,) = sweep([[0.0] * 5, [8.0] * 5]).steps
    assert (step.baseline, step.patched, step.effect_percent) == (0.0, 8.0, float("inf"))


@given(st.lists(st.integers(1, 400), min_size=2, max_size=12))
def test_repeating_counts_step_exactly_where_they_change(levels: list[int]) -> None:
    found = sweep([[float(level)] * 5 for level in levels])
    expected = [f"6.{i}" for i in range(1, len(levels)) if levels[i] != levels[i - 1]]
    assert [step.first for step in found.steps] == expected


def blocks_of(levels: Sequence[float], count: int, seed: int = 1) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    drift = 0.05 * rng.standard_normal(count)
    return [[float(level * np.exp(d + 0.003 * rng.standard_normal())) for d in drift] for level in levels]


def test_times_step_where_the_level_changes_in_spite_of_drift() -> None:
    figures = blocks_of([100, 100, 100, 110, 110], 8)
    found = sweep(figures, metric=RATE, mode="timed")
    (step,) = found.steps
    assert (step.last, step.first, step.verdict) == ("6.2", "6.3", "improved")
    assert 8 < step.effect_percent < 12 and step.p_value is not None and step.p_value <= 0.05


def test_times_in_fewer_than_eight_blocks_are_points_without_steps() -> None:
    found = sweep(blocks_of([100, 200], 7), metric=RATE, mode="timed")
    assert found.steps == () and all(point.value for point in found.points)
    assert [point.unseen for point in found.points] == [None, StepUnseen(7, 8)]
    assert not any(point.why for point in sweep(blocks_of([100, 200], 8), metric=RATE, mode="timed").points)


def test_the_same_times_give_the_same_steps_however_often_they_are_read() -> None:
    figures = blocks_of([100, 101, 103, 104, 108], 8, seed=3)
    assert sweep(figures, metric=RATE, mode="timed") == sweep(figures, metric=RATE, mode="timed")


def test_figures_that_vanish_and_come_from_nothing_have_a_percentage_of_what_was_there() -> None:
    """ "-200.00 %" and "+200.00 %": relative to the mean of both."""
    gone, new = (sweep([[a] * 8, [b] * 8], metric=RATE, mode="timed").steps for a, b in ((5.0, 0.0), (0.0, 5.0)))
    assert [step.effect_percent for step in (*gone, *new)] == [-100.0, math.inf]


def test_a_timed_gap_shifts_no_step() -> None:
    figures: list[Sequence[float] | State] = [*blocks_of([100, 100, 130, 130], 8)]
    figures.insert(2, "hung")
    (step,) = sweep(figures, metric=RATE, mode="timed").steps
    assert (step.last, step.first) == ("6.1", "6.3")


def test_an_absent_version_is_a_gap_with_its_reason_and_is_stepped_over() -> None:
    whole = experiment(3)
    missing = Gap(label="6.9", spec="src:./linux@v6.9", why="does not build: x", by_host=False)
    line: list[Version] = [*whole.kernels[:1], missing, *whole.kernels[1:]]
    one = replace(whole, annotations=Annotations(gaps=gaps_in(line)))
    figures = cells([[100.0] * 5, [100.0] * 5, [110.0] * 5])
    (found,) = sweeps(one, figures, {}, {"pipe": (INSTRUCTIONS,)}, {})
    assert [(p.kernel, p.value, p.state, p.why) for p in found.points] == [
        ("6.0", 100.0, "ok", ""), ("6.9", None, "failed", "does not build: x"), ("6.1", 100.0, "ok", ""),
        ("6.2", 110.0, "ok", ""),
    ]  # fmt: skip
    assert [(s.last, s.first) for s in found.steps] == [("6.1", "6.2")]


@pytest.mark.parametrize(
    ("banner", "expected"),
    [
        (
            b"Linux version 7.2.13 (a@b) (x86_64-linux-gnu-gcc-16 (Debian 16.2.0-4) 16.2.0, GNU ld (x)",
            "gcc 16.2.0",
        ),
        (b"\0Linux version 6.1 (a@b) (gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld (x) 2.40) # SMP", "gcc 12.2.0"),
        (
            b"Linux version 6.9.0 (a@b) (clang version 18.1.3 (https://example.org abc), LLD 18) #2",
            "clang 18.1.3",
        ),
        (b"Linux version 6.9.0 (me@host) (tcc, GNU ld 2.40) #2", "tcc"),
        (b"no kernel at all", ""),
    ],
)
def test_a_kernel_says_what_compiled_it(banner: bytes, expected: str) -> None:
    assert banner_module.compiler_in(banner) == expected


def test_a_step_that_string_instructions_carry_is_told_as_a_table_tells_it() -> None:
    """A page that dup(2) clears was a step of +0.54 %, without a word; held against one kernel it was +67.67 %."""
    rep = [Metric(name=name, unit="B/op", better="lower") for name in ("rep_bytes", "rep_executions")]
    data = cells([[742.0] * 5, [746.0] * 5, [800.0] * 5]) + cells([[1.0] * 5] * 3, "rep_executions")
    data += cells([[192.0] * 5, [4288.0] * 5, [4288.0] * 5], "rep_bytes")
    found = sweeps(experiment(3), data, {}, {"pipe": (INSTRUCTIONS, *rep)}, {})
    (warning,) = strings(found)
    assert isinstance(warning, StepStrings) and (warning.last, warning.first) == ("6.0", "6.1")
    told = "string instructions count once, whatever they move; with one for each 8 bytes: +67.45 %"
    view = build(ExperimentResult(experiment=experiment(3), results=(), warnings=(warning,)), Detail(sweeps=found))
    assert f"pipe, 6.0 to 6.1: {told}" in view.footnotes
    alone = replace(found[0], steps=found[0].steps[:1])
    view = build(ExperimentResult(experiment=experiment(3), results=()), Detail(sweeps=(alone,)))
    assert "(+67.45 % with string instructions by what they move)" in view.headline.text


def test_what_string_instructions_move_is_shown_at_each_step() -> None:
    moved = Metric(name="rep_bytes", unit="B/op", better="lower")
    data = cells([[1000.0] * 5, [800.0] * 5, [900.0] * 5]) + cells([[80.0] * 5, [64.0] * 5, [64.0] * 5], "rep_bytes")
    (found,) = sweeps(experiment(3), data, {}, {"pipe": (INSTRUCTIONS, moved)}, {})
    assert [point.rep_bytes for point in found.points] == [80.0, 64.0, 64.0]
    result = ExperimentResult(experiment=experiment(3), results=())
    (table,) = build(result, Detail(sweeps=(found,))).sweeps
    assert [row.sentence for row in table.rows] == ["", "REP bytes 80.00 B before, 64.00 B from here on", ""]
