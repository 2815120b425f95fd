# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact counts: facts where they repeat, judged over seeds where not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from kdelta.model import CellResult, State
from kdelta.verdict import CellData, Observation, judge, open_cells
from kdelta.verdict.warnings import SeedsMissing, WithinFloor
from unit.verdict.verdict_cells import (
    COUNT,
    TIME,
    boots,
    cell,
    codes,
    exact_one,
    experiment,
    noisy,
)


def test_exact_counts_that_repeat_are_facts() -> None:
    result = exact_one([1000] * 5, [714] * 5)
    assert result.verdict == "improved" and result.interval_percent == (result.effect_percent, result.effect_percent)
    assert result.effect_percent == pytest.approx(-28.6)
    assert exact_one([1000] * 5, [1000] * 5).verdict == "same"
    small = exact_one([1000] * 5, [1001] * 5)
    assert small.verdict == "regressed" and codes(small) == {"below-delta"}


def test_a_fact_within_the_floor_of_its_case_is_the_same() -> None:
    # A longer command line moved 18 of 163 system calls by 1 to 4 instructions, the same under all seeds.
    moved = exact_one([4995] * 5, [4999] * 5, floor=0.5)
    assert moved.verdict == "same" and codes(moved) == {"within-floor"}
    assert moved.effect_percent == pytest.approx(0.08, abs=0.01)
    beyond = exact_one([305] * 5, [307] * 5, floor=0.5)
    assert beyond.verdict == "regressed" and "within-floor" not in codes(beyond)


def test_a_difference_within_the_floor_whose_interval_is_wide_is_neither_the_same_nor_a_change() -> None:
    """Transfers of fork_exit, +8.2 % under a floor of 10 %, were regressed in a table and no step of its sweep."""
    a = [100.0 + n % 5 for n in range(20)]
    apart = [value + n % 9 * 2.3 for n, value in enumerate(a)]
    wide = exact_one(a, apart, floor=10.0)
    assert wide.effect_percent is not None and wide.interval_percent is not None
    assert 0 < wide.effect_percent < 10 < wide.interval_percent[1]
    assert wide.verdict == "inconclusive" and "within-floor" in codes(wide)


BRANCHES = replace(COUNT, name="taken_branches", primary=False)


@pytest.mark.parametrize(
    ("branches", "instructions", "verdict"), [(3, 804, "same"), (3, 204, "regressed"), (9, 804, "regressed")]
)
def test_a_count_of_some_instructions_has_the_room_that_the_floor_lets_all_of_them(
    branches: int, instructions: int, verdict: str
) -> None:
    """stat(2) of one image: a longer command line took 3 of 196 branches away, and 0.4 % of instructions."""
    sides = [cell([196] * 5, 0, BRANCHES), cell([196 + branches] * 5, 1, BRANCHES)]
    data = [*sides, cell([instructions] * 5, 0, COUNT), cell([instructions + branches] * 5, 1, COUNT)]
    plan = experiment(mode="exact", looks=(5, 8))
    found = {r.metric: r for r in judge(plan, data, {"pipe0": 0.5}, {"pipe": (COUNT, BRANCHES)})}
    assert found["taken_branches"].verdict == verdict
    assert found["instructions"].floor_percent == 0.5


@pytest.mark.parametrize("percent", [-9.5, 9.5])
def test_a_floor_is_as_wide_below_as_above(percent: float) -> None:
    """A fall of 9.5 % under a floor of 10 %, the same under all seeds, was inconclusive for ever."""
    assert exact_one([1000] * 5, [1000 + 10 * percent] * 5, floor=10.0).verdict == "same"


def test_an_interval_that_reaches_into_the_floor_is_no_change_and_says_how_many_boots_decide() -> None:
    a = [100.0, 96.0, 104.0, 98.0, 102.0, 95.0, 105.0, 100.0]
    reaches = exact_one(a, [89.0, 83.5, 95.0, 84.0, 93.0, 82.0, 95.0, 88.0], floor=10.0)
    assert reaches.effect_percent is not None and reaches.effect_percent < -10.0
    assert reaches.verdict == "inconclusive" and "within-floor" in codes(reaches)
    inside = exact_one(a, [94.0, 86.0, 95.0, 91.0, 96.0, 85.0, 98.5, 90.0], floor=10.0)
    assert inside.effect_percent is not None and abs(inside.effect_percent) < 10.0
    assert inside.verdict == "inconclusive" and (inside.boots_needed or 0) > 20  # 8 would tell that it differs


def test_an_interval_within_delta_that_leaves_the_floor_is_not_said_to_be_within_it() -> None:
    """-0.46 % [-0.91, -0.06] was "within the noise floor of this case (0.1 %)"."""
    a, off = [3050.0 + n for n in range(8)], [2, 4, 8, 14, 14, 20, 25, 27]
    same = exact_one(a, [value - part for value, part in zip(a, off, strict=True)], floor=0.1)
    assert same.verdict == "same" and same.effect_percent is not None and same.effect_percent < -0.3
    assert [w.reaches for w in same.warnings if isinstance(w, WithinFloor)] == [True]
    tiny = exact_one(a, [value - 1 - n % 2 for n, value in enumerate(a)], floor=0.1)
    assert [w.reaches for w in tiny.warnings if isinstance(w, WithinFloor)] == [False]


def test_counts_so_small_that_one_is_more_than_delta_can_only_be_told_apart() -> None:
    """17 locked operations, no two seeds alike: 8 fresh boots were said to decide what none calls the same."""
    a = [17.0625 + n % 3 / 64 for n in range(8)]
    b = a[1:] + a[:1]
    small, large = exact_one(a, b), exact_one([3000 + n for n in a], [3000 + n for n in b])
    assert (small.verdict, large.verdict) == ("inconclusive", "same")
    assert (small.boots_needed or 0) > 100


def test_counts_at_several_levels_are_judged_by_their_pairs() -> None:
    """Medians alike (1.13 and 1.06) made a fall by two thirds the same: 8 of 20 seeds went from 10 to 1."""
    a = [10.1, 1.12, 10.3, 1.15, 9.9, 10.2, 1.11, 10.0, 0.05, 1.13, 10.4, 0.06, 1.14, 10.1, 0.05, 1.1, 9.8, 0.05]
    b = [0.05, 1.07, 1.08, 0.06, 1.1, 1.06, 0.05, 1.09, 0.05, 1.05, 1.12, 0.05, 1.07, 1.08, 0.06, 1.06, 1.1, 0.05]
    fell = exact_one([*a, 1.12, 1.1], [*b, 1.09, 1.05], metric=replace(COUNT, least=0.05))
    assert fell.verdict == "improved" and "medians-hide" in codes(fell)
    assert fell.baseline == pytest.approx(1.135) and fell.patched == 1.06


def test_a_count_that_is_zero_under_some_seeds_is_told_relative_to_what_the_baseline_mostly_is() -> None:
    """Its median was 0.02 of a mean of 3.6: an interval of what was the same ended at +58,248 %."""
    some = exact_one([0.0] + [0.02] * 11 + [9.0] * 8, [0.0] * 2 + [0.02] * 9 + [9.0, 9.4] * 4 + [8.0], floor=10.0)
    assert some.verdict == "same" and some.interval_percent is not None and max(map(abs, some.interval_percent)) < 10.0


def test_small_differences_that_vary_across_seeds_are_the_same_within_the_floor() -> None:
    a = [3035.0 + n % 3 for n in range(20)]
    moved = exact_one(a, [value + 8 for value in a], floor=0.7)
    assert moved.verdict == "same" and {"noisy", "within-floor"} <= codes(moved)
    assert exact_one(a, [value + 30 for value in a], floor=0.7).verdict == "regressed"


def test_less_than_the_least_difference_of_an_average_is_the_same() -> None:
    control, other = [0.0137, 0.0156, 0.0137, 0.0176, 0.0137], [0.0176, 0.0137, 0.0156, 0.0195, 0.0137]
    least = replace(COUNT, least=0.05)
    assert exact_one(control, other, floor=5.0, metric=least).verdict == "same"
    assert exact_one(control, [value + 1 for value in other], floor=5.0, metric=least).verdict == "regressed"


@pytest.mark.parametrize(("before", "after"), [(0.0137, 0.0), (0.0, 0.0137), (0.0137, 0.03)])
def test_a_fact_of_averages_is_no_difference_below_the_least_even_from_zero(before: float, after: float) -> None:
    """14 transfers in 1,024 operations against none are "-100 %", or "from 0", and say nothing of a kernel."""
    result = exact_one([before] * 5, [after] * 5, floor=5.0, metric=replace(COUNT, least=0.05))
    assert result.verdict == "same" and codes(result) == {"below-least"}
    assert exact_one([before] * 5, [after] * 5, floor=5.0).verdict in ("improved", "regressed")


def test_fewer_than_five_seeds_never_give_a_verdict() -> None:
    for n in range(1, 5):
        result = exact_one([1000] * n, [714] * n)
        assert result.verdict is None and codes(result) == {"descriptive"} and result.interval_percent is None


def test_five_seeds_decide_what_all_their_pairings_say() -> None:
    plain = exact_one([1000, 1004, 1002, 1001, 1003], [1100, 1101, 1108, 1104, 1102])
    assert plain.verdict == "regressed" and plain.extra["fact"] == 0.0 and "noisy" in codes(plain)
    assert plain.interval_percent == pytest.approx((100 * (1100 / 1004 - 1), 100 * (1108 / 1000 - 1)))
    assert exact_one([1000, 1004, 1002, 1001, 1003], [1003, 1001, 1002, 1004, 1003]).verdict == "same"


def test_five_seeds_whose_gap_is_not_wide_go_on() -> None:
    few = exact_one([1000, 1010, 1002, 1001, 1003], [1020, 1021, 1028, 1024, 1022])
    assert few.verdict is None and codes(few) == {"unfinished", "noisy"} and few.interval_percent is None
    wide = exact_one([1000, 1010, 1002, 1001, 1003], [1009, 1007, 1001, 1004, 1012])
    assert wide.verdict is None and codes(wide) == {"unfinished", "noisy"}, "some pairings are beyond delta"


def test_exact_counts_that_move_are_judged_from_eight_seeds_on() -> None:
    rng = np.random.default_rng(4)
    a, b = (1000 + rng.integers(0, 5, 8)).tolist(), (1100 + rng.integers(0, 5, 8)).tolist()
    called = exact_one(a, b)
    assert called.verdict == "regressed" and "noisy" in codes(called) and called.extra["delta_percent"] == 1.0
    assert exact_one(a, [x + 1 for x in a]).verdict in ("same", "regressed")
    wide = exact_one(*noisy(20, 0.0, sd=0.05, seed=7))
    assert wide.verdict == "inconclusive" and wide.detectable_percent and wide.boots_needed


def test_a_seed_that_differs_once_is_no_fact() -> None:
    result = exact_one([1000] * 8, [1000] * 7 + [1001])
    assert result.extra["fact"] == 0.0 and result.verdict == "same"


def test_a_lost_seed_leaves_no_verdict() -> None:
    dead = [replace(o, value=None, state="lost", why="killed") if o.block == 2 else o for o in boots([714] * 5, 1)]
    data = [cell([1000] * 5, 0, COUNT), CellData(case=0, metric="instructions", kernel=1, boots=tuple(dead))]
    chosen = experiment(mode="exact", looks=(5, 8, 12, 16, 20))
    (result,) = judge(chosen, data, {}, {"pipe": (COUNT,)})
    assert result.verdict is None and "descriptive" in codes(result) and "dropped" in codes(result)
    assert not open_cells(chosen, data, {}, {"pipe": (COUNT,)}), "further seeds do not bring it back"


def test_a_plain_change_beside_instructions_gets_the_seeds_that_tell_it_from_chance() -> None:
    """``incl`` that became ``lock incl``: as many instructions, q = .088 of 45 cells, and nobody went on."""
    beside = tuple(replace(COUNT, name=name, primary=False) for name in ("locked", *"abcdefgh"))
    metrics = {"pipe": (COUNT, *beside)}

    def data(seeds: int) -> list[CellData]:
        values = {(0, "locked", 1): 12.0}
        return [
            cell([values.get((case, m.name, kernel), 10.0)] * seeds, kernel, m, case)
            for case in range(5) for m in metrics["pipe"] for kernel in (0, 1)
        ]  # fmt: skip

    plan = experiment(mode="exact", cases=5, looks=(5, 8, 12, 16, 20))
    still = open_cells(plan, data(5), {}, metrics)
    assert {one.case for one in still} == {0} and {one.kernel for one in still} == {0, 1}
    assert not open_cells(plan, data(8), {}, metrics)
    (told,) = [r for r in judge(plan, data(8), {}, metrics) if r.metric == "locked" and r.case == "pipe0"]
    assert told.verdict == "regressed"


def test_a_change_within_delta_gets_the_seeds_that_a_grid_needs() -> None:
    """connect() was +0.90 % [+0.90, +0.90] and the same: eight seeds tell nothing in a grid."""
    before = [12166.0 + 11 * (n * 7 % 9) for n in range(12)]  # varies by 0.7 % with the seed, alike on both kernels

    def data(seeds: int) -> list[CellData]:
        varying = [cell(before[:seeds], 0, COUNT), cell([x + 109 for x in before[:seeds]], 1, COUNT)]
        return varying + [cell([515] * seeds, kernel, COUNT, case) for case in range(1, 12) for kernel in (0, 1)]

    plan, floors = experiment(mode="exact", cases=12, looks=(5, 8, 12, 16, 20)), {"pipe0": 0.5}
    first = judge(plan, data(8), floors, {"pipe": (COUNT,)})[0]
    assert first.verdict == "same" and "multiplicity" in codes(first)
    assert {one.case for one in open_cells(plan, data(8), floors, {"pipe": (COUNT,)})} == {0}
    assert judge(plan, data(12), floors, {"pipe": (COUNT,)})[0].verdict == "regressed"
    assert not open_cells(plan, data(12), floors, {"pipe": (COUNT,)})
    assert not open_cells(replace(plan, looks=(5, 8)), data(8), floors, {"pipe": (COUNT,)}), "no further seeds"


@pytest.mark.parametrize(
    ("a", "b", "again"), [({}, {2: "lost"}, 1), ({1: "hung"}, {2: "lost"}, 1), ({2: "lost"}, {2: "panicked"}, 0)]
)
def test_of_missing_seeds_it_is_told_how_many_a_resume_measures(
    a: dict[int, State], b: dict[int, State], again: int
) -> None:
    data = []
    for kernel, ended in enumerate((a, b)):
        bad = {block: Observation(block=block, slot=0, state=state) for block, state in ended.items()}
        made = tuple(bad.get(o.block, o) for o in boots([9] * 5, kernel))
        data.append(CellData(case=0, metric="instructions", kernel=kernel, boots=made))
    (result,) = judge(experiment(mode="exact", looks=(5, 8)), data, {}, {"pipe": (COUNT,)})
    missing = len(a.keys() | b.keys())
    assert SeedsMissing(5 - missing, 5, again) in result.warnings


REPS = tuple(replace(COUNT, name=name, primary=False) for name in ("rep_executions", "rep_bytes"))


def with_reps(
    a: Sequence[float], b: Sequence[float], moved: tuple[float, float], times: tuple[float, float] = (1, 1)
) -> CellResult:
    data = [cell(a, 0, COUNT), cell(b, 1, COUNT)]
    for kernel, side in enumerate((a, b)):
        data += [cell([times[kernel]] * len(side), kernel, REPS[0]), cell([moved[kernel]] * len(side), kernel, REPS[1])]
    found = judge(experiment(mode="exact", looks=(5, 8)), data, {}, {"pipe": (COUNT, *REPS)})
    return next(r for r in found if r.metric == "instructions")


def test_work_that_moves_into_string_instructions_is_no_improvement() -> None:
    assert with_reps([1000] * 5, [950] * 5, (80, 80)).verdict == "improved"
    hidden = with_reps([1000] * 5, [950] * 5, (80, 800))
    assert hidden.verdict == "inconclusive" and "mixed" in codes(hidden) and hidden.boots_needed is None
    back = with_reps([950] * 5, [1000] * 5, (800, 80))
    assert back.verdict == "inconclusive" and "mixed" in codes(back)


def test_what_both_accounts_say_is_relative_to_the_baseline_also_where_a_count_is_0() -> None:
    """All of 5968523 instructions gone were -200 % "with string instructions by what they move"."""
    gone = with_reps([1000, 1001, 1002, 1000, 1001], [0] * 5, (80, 0), (1, 0))
    assert gone.verdict == "improved" and gone.effect_percent == gone.extra["effect_rep8_percent"] == -100.0
    assert "strings" not in codes(gone), "all of it is no more than all of it"


def test_counts_that_are_the_same_while_string_instructions_move_far_more_are_mixed() -> None:
    assert with_reps([1000] * 5, [1000] * 5, (80, 82)).verdict == "same"
    assert with_reps([1000] * 5, [1000] * 5, (80, 800)).verdict == "inconclusive"


def test_a_change_that_string_instructions_hide_most_of_says_how_large_it_is_by_what_they_move() -> None:
    """``rep stosb`` of 4 KiB more in dup was "+0.54 %" on top of the report, and half as much again by its work."""
    told = with_reps([1000] * 5, [1020] * 5, (80, 4176), (1, 2))
    assert told.verdict == "regressed" and "strings" in codes(told)
    assert 50 < told.extra["effect_rep8_percent"] < 60
    assert "strings" not in codes(with_reps([1000] * 5, [1020] * 5, (80, 88)))


def test_a_change_that_comes_of_fewer_string_instructions_says_what_it_is_by_what_they_move() -> None:
    """Python on 6.12 was 11.86 % slower than on 6.1, which copies by "rep movsq" what 6.12 copies in a loop."""
    told = with_reps([1000] * 5, [1120] * 5, (1040, 720))
    assert told.verdict == "regressed" and "strings" in codes(told)
    assert told.extra["effect_rep8_percent"] == pytest.approx(100 * (1120 - 1 + 90) / (1000 - 1 + 130) - 100)
    alike = with_reps([1000] * 5, [1120] * 5, (16000, 16000))
    assert 3 < alike.extra["effect_rep8_percent"] < 5
    assert "strings" not in codes(alike), "what both kernels move is no part of the change"


def test_a_withdrawn_difference_within_delta_is_the_same() -> None:
    rng = np.random.default_rng(5)
    data, plan = [], experiment(cases=8, looks=(8,), blocks=8)
    for case in range(8):  # one small difference that is significant alone, and seven cells of noise
        b = rng.normal(0, 0.001, 8) + (0.002 if case == 0 else 0.0)
        data += [cell([1000.0] * 8, 0, case=case), cell((1000 * np.exp(b)).tolist(), 1, case=case)]
    first = judge(plan, data, {}, {"pipe": (TIME,)})[0]
    assert "multiplicity" in codes(first) and first.verdict == "same"


def test_exact_zeros_have_a_direction_but_no_percentage() -> None:
    assert exact_one([0] * 5, [0] * 5).verdict == "same"
    appeared = exact_one([0] * 5, [5] * 5)
    assert appeared.verdict == "regressed" and appeared.effect_percent is None and "from-zero" in codes(appeared)
    assert appeared.interval_percent is None
    gone = exact_one([5] * 5, [0] * 5)
    assert gone.verdict == "improved" and gone.effect_percent == -100.0


def test_what_comes_from_zero_or_goes_to_it_is_told_relative_to_the_baseline() -> None:
    """``transfers of pid.pidfs_node``: 0 on 6.12, 19 on 6.16 was told as +200 %, relative to the mean of both."""
    moved = [19.1, 19.4, 19.6, 19.3, 19.5, 19.2, 19.7, 19.0]
    for seeds in (5, 8):
        new, gone = exact_one([0.0] * seeds, moved[:seeds]), exact_one(moved[:seeds], [0.0] * seeds)
        assert (new.verdict, new.effect_percent, new.interval_percent) == ("regressed", None, None)
        assert "from-zero" in codes(new)
        assert gone.verdict == "improved" and gone.effect_percent == pytest.approx(-100.0, abs=1.5)
        assert gone.interval_percent is not None and gone.interval_percent[0] == -100 and gone.interval_percent[1] < -96
    some = exact_one([0.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0], [4.0] * 8)
    assert some.effect_percent == pytest.approx(100.0)
