# SPDX-License-Identifier: GPL-2.0-or-later
"""Times and what counts share with them: looks, floors, faults, corrections, symmetries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy.typing import NDArray

from kdelta.model import Layout, Metric
from kdelta.stats import signed_rank
from kdelta.stats.warnings import LayoutMoves
from kdelta.verdict import CellData, gate_holm, judge, open_cells
from kdelta.verdict.warnings import Withdrawn
from unit.verdict.verdict_cells import (
    COUNT,
    P99,
    RATE,
    SWAPPED,
    TIME,
    boots,
    cell,
    codes,
    exact_one,
    experiment,
    noisy,
    one,
)


def test_a_large_effect_is_called_at_the_first_look() -> None:
    result = one(*noisy(8, -0.05))
    assert result.verdict == "improved" and result.interval_percent is not None
    assert result.interval_percent[1] < 0 and result.extra["look"] == 1 and result.extra["spent_alpha"] < 0.013
    assert result.boots == (8, 8) and result.boots_needed is None
    assert one(*noisy(8, -0.05), metric=RATE).verdict == "regressed"


def test_quiet_identical_kernels_are_the_same() -> None:
    assert one(*noisy(20, 0.0, sd=0.004)).verdict == "same"


@pytest.mark.full
def test_an_inconclusive_cell_says_what_it_could_have_seen_and_those_boots_decide_it() -> None:
    decided = 0
    for seed in range(40):
        a, b = noisy(200, 0.006, seed=seed)
        first = one(a[:8], b[:8])
        if first.verdict != "inconclusive":
            continue
        assert first.detectable_percent and first.detectable_percent > 0.5 and first.boots_needed
        total = 8 + first.boots_needed
        if total > 200:
            continue
        decided += one(a[:total], b[:total], looks=(8, total), blocks=total).verdict != "inconclusive"
    assert decided >= 25


def test_an_effect_below_delta_is_called_with_a_warning() -> None:
    result = one(*noisy(20, -0.006, sd=0.001))
    assert result.verdict == "improved" and "below-delta" in codes(result)


def test_the_noise_floor_of_the_case_widens_delta() -> None:
    a, b = noisy(20, 0.0, sd=0.012, seed=3)
    assert one(a, b).verdict == "inconclusive"
    calibrated = one(a, b, floor=4.0)
    assert calibrated.verdict == "same" and calibrated.floor_percent == 4.0 and calibrated.extra["delta_percent"] == 4.0


def test_boots_after_the_last_look_reached_are_not_peeked_at() -> None:
    a, b = noisy(12, -0.05)
    for n in (8, 9, 10, 11):
        assert one(a[:n], b[:n]) == one(a[:8], b[:8])
    assert one(a, b).extra["look"] == 2


def test_nothing_is_judged_before_the_plan_looks() -> None:
    few, early = one(*noisy(5, -0.2)), one(*noisy(10, -0.2), looks=(), blocks=20)
    assert few.verdict is None and codes(few) == {"descriptive"} and few.interval_percent is None
    assert early.verdict is None and codes(early) == {"unfinished"}


def test_boots_without_common_blocks_get_no_verdict() -> None:
    a, b = noisy(20, -0.2)
    data = [cell(a, 0), replace(cell(b, 1), boots=tuple(replace(o, block=o.block + 20) for o in boots(b, 1)))]
    (result,) = judge(experiment(), data, {}, {"pipe": (TIME,)})
    assert result.verdict is None and "unblocked" in codes(result) and result.baseline is not None


def test_a_fault_takes_its_whole_block_out_and_is_counted() -> None:
    a, b = noisy(12, -0.05)
    bad = list(boots(b, 1))
    bad[3] = replace(bad[3], value=None, state="lost", why="no end record")
    data = [cell(a, 0), CellData(case=0, metric="latency", kernel=1, boots=tuple(bad))]
    (result,) = judge(experiment(), data, {}, {"pipe": (TIME,)})
    assert result.verdict == "improved" and result.boots == (11, 11) and "dropped" in codes(result)
    stolen = replace(bad[3], value=b[3], state="ok", facts={"steal_percent": 7.0})
    data[1] = CellData(case=0, metric="latency", kernel=1, boots=(*bad[:3], stolen, *bad[4:]))
    (kept,) = judge(experiment(), data, {}, {"pipe": (TIME,)})
    (dropped,) = judge(experiment(steal_limit_percent=5.0), data, {}, {"pipe": (TIME,)})
    assert kept.boots == (12, 12) and "steal" in codes(kept) and dropped.boots == (11, 11)


@pytest.mark.parametrize("state", ["lost", "panicked", "hung", "unsupported", "failed"])
@pytest.mark.parametrize("mode", ["timed", "exact"])
def test_a_side_without_figures_is_a_state_and_the_other_keeps_its_own(state: str, mode: str) -> None:
    dead = tuple(replace(o, value=None, state=state, why="needs CONFIG_ANON_VMA_NAME") for o in boots([1.0] * 8, 1))
    data = [cell([5.0] * 8, 0), CellData(case=0, metric="latency", kernel=1, boots=dead)]
    chosen = experiment(mode=mode)  # type: ignore[arg-type]
    (result,) = judge(chosen, data, {}, {"pipe": (TIME,)})
    assert result.state == state and result.verdict is None
    assert result.baseline == 5.0 and result.patched is None and result.effect_percent is None
    assert result.why == f"b: {state}: needs CONFIG_ANON_VMA_NAME" and result.sides == ("ok", state)
    assert open_cells(chosen, data, {}, {"pipe": (TIME,)}) == ()
    data = [replace(data[1], kernel=0), cell([5.0] * 8, 1)]
    (result,) = judge(chosen, data, {}, {"pipe": (TIME,)})
    assert result.state == state and result.sides == (state, "ok") and result.patched == 5.0


def test_what_both_sides_died_of_is_said_once() -> None:
    def dead(kernel: int, why: str) -> CellData:
        rows = tuple(replace(o, value=None, state="failed", why=why) for o in boots([1.0] * 8, kernel))
        return CellData(case=0, metric="latency", kernel=kernel, boots=rows)

    for whys, said in ((("x", "x"), "a, b: failed: x"), (("x", "y"), "a: failed: x; b: failed: y")):
        data = [dead(kernel, why) for kernel, why in enumerate(whys)]
        (result,) = judge(experiment(mode="exact"), data, {}, {"pipe": (TIME,)})
        assert result.why == said


def test_a_tail_with_too_few_samples_is_shown_but_not_judged() -> None:
    a, b = noisy(20, -0.2)
    few, enough = one(a, b, metric=P99, samples=1999), one(a, b, metric=P99, samples=2000)
    assert few.verdict is None and codes(few) >= {"tail"} and few.baseline is not None
    assert enough.verdict == "improved"


def test_legacy_metrics_never_decide() -> None:
    result = one(*noisy(20, -0.2), metric=replace(TIME, legacy=True))
    assert result.verdict is None and codes(result) == {"legacy"} and result.effect_percent is not None


def test_zeros_are_compared_relative_to_the_mean_level() -> None:
    leaks = one([0.0] * 20, [5.0, 6.0] * 10)
    assert leaks.verdict == "regressed" and "zeros" in codes(leaks)
    nothing = one([0.0] * 20, [0.0] * 20)
    assert nothing.verdict == "same" and nothing.effect_percent == 0.0


def test_what_vanishes_is_a_hundred_percent_less_and_what_comes_from_nothing_has_none() -> None:
    """A dentry an object that is no longer there was "-200.00 %", one that is new "+200.00 %"."""
    gone, new = one([1.0] * 20, [0.0] * 20), one([0.0] * 20, [1.0] * 20)
    assert (gone.verdict, gone.effect_percent, gone.interval_percent) == ("improved", -100.0, (-100.0, -100.0))
    assert (new.verdict, new.effect_percent, new.interval_percent) == ("regressed", None, None)
    assert "from-zero" in codes(new)
    varied = one([10.0, 11.0, 12.0, 10.0] * 5, [0.0] * 20)
    assert (varied.effect_percent, varied.interval_percent) == (-100.0, (-100.0, -100.0))
    some = one([10.0, 11.0] * 10, [0.0, 1.0] * 10)
    assert some.effect_percent == pytest.approx(-100 * 10 / 10.5)


def grid(seed: int, cases: int, effect: Callable[[int], float], n: int = 20) -> list[CellData]:
    rng = np.random.default_rng(seed)
    return [
        cell((1000 * np.exp(rng.normal(effect(c) * k, 0.01, n))).tolist(), k, metric, case=c)
        for c in range(cases)
        for metric in METRICS
        for k in (0, 1)
    ]


METRICS = tuple(replace(TIME, name=f"m{i}") for i in range(5))


def test_twelve_cases_by_five_metrics_of_identical_kernels_raise_no_alarm_in_ten_seeds() -> None:
    alone = 0
    for seed in range(10):
        results = judge(experiment(cases=12), grid(seed, 12, lambda c: 0.0), {}, {"pipe": METRICS})
        assert len(results) == 60
        assert not [r for r in results if r.verdict in ("improved", "regressed")]
        alone += sum("multiplicity" in codes(r) for r in results)
        assert all(r.boots_needed for r in results if r.verdict == "inconclusive")
    assert alone > 0, "without the correction there would have been alarms"


def test_real_effects_survive_the_correction() -> None:
    results = judge(experiment(cases=12), grid(1, 12, lambda c: -0.05 if c < 3 else 0.0), {}, {"pipe": METRICS})
    found = [r.case for r in results if r.verdict == "improved"]
    assert len(found) >= 14 and set(found) == {"pipe0", "pipe1", "pipe2"}


def test_the_gate_takes_regressions_that_holm_keeps_and_that_exceed_delta() -> None:
    results = judge(experiment(cases=4), grid(2, 4, lambda c: 0.05 if c == 1 else 0.0), {}, {"pipe": METRICS})
    closed = gate_holm(results)
    assert closed and {r.case for r in closed} == {"pipe1"}
    assert gate_holm(results, delta_percent=20.0) == ()
    exact = one([100] * 5, [101] * 5, metric=COUNT, mode="exact")
    assert gate_holm((exact,)) == (exact,)


def test_decided_cases_need_no_more_blocks() -> None:
    data = [
        cell(v, k, case=c) for c, e in enumerate((-0.08, 0.0)) for k, v in enumerate(noisy(12, e, sd=0.015, seed=2))
    ]
    chosen = experiment(cases=3)
    assert {cell.case for cell in open_cells(chosen, data, {}, {"pipe": (TIME,)})} == {1, 2}
    assert {
        cell.case for cell in open_cells(experiment(cases=2, precision_percent=0.5), data, {}, {"pipe": (TIME,)})
    } == {0, 1}
    assert open_cells(experiment(cases=2, precision_percent=90.0), data, {}, {"pipe": (TIME,)}) == ()


def test_eight_blocks_decide_one_cell_but_no_grid() -> None:
    strong = [noisy(8, -0.2, seed=c) for c in range(4)]
    data = [cell(v, k, case=c) for c, pair in enumerate(strong) for k, v in enumerate(pair)]
    (alone,) = judge(experiment(), data[:2], {}, {"pipe": (TIME,)})
    assert alone.verdict == "improved"
    # four certain effects keep each other; one among three others that are not does not pass
    data[2:] = [cell(v, k, case=c) for c in range(1, 4) for k, v in enumerate(noisy(8, 0.0, sd=0.015, seed=c))]
    first = judge(experiment(cases=4), data, {}, {"pipe": (TIME,)})[0]
    assert first.verdict == "inconclusive" and first.boots_needed
    withdrawn = first.warnings[-1]
    assert isinstance(withdrawn, Withdrawn) and withdrawn.blocks == 12
    assert first.boots_needed >= withdrawn.blocks  # and so many, not the eight that would decide it alone


def test_a_single_kernel_is_described() -> None:
    (result,) = judge(experiment(kernels=1), [cell([5.0, 6.0, 7.0], 0)], {}, {"pipe": (TIME,)})
    assert (result.baseline, result.patched, result.verdict, result.patched_label) == (6.0, None, None, "")


def test_each_patched_kernel_has_its_row() -> None:
    a, b = noisy(20, -0.05)
    results = judge(experiment(kernels=3), [cell(a, 0), cell(b, 1), cell(a, 2)], {}, {"pipe": (TIME,)})
    assert [(r.patched_label, r.verdict) for r in results] == [("b", "improved"), ("c", "same")]


def test_faults_of_the_design_become_footnotes() -> None:
    a, b = noisy(20, 0.0)
    first = [replace(o, slot=k) for k in (0, 1) for o in boots(a if k == 0 else b, k)]
    data = [CellData(case=0, metric="latency", kernel=k, boots=tuple(first[20 * k : 20 * k + 20])) for k in (0, 1)]
    (ordered,) = judge(experiment(), data, {}, {"pipe": (TIME,)})
    assert "order" in codes(ordered)
    two = [x * (1.1 if i % 3 == 0 else 1.0) for i, x in enumerate(a)]
    assert "bistable" in codes(one(two, b))
    assert "drift" in codes(one([x * 1.02**i for i, x in enumerate(a)], [x * 1.02**i for i, x in enumerate(b)]))
    jitter = np.random.default_rng(0).normal(0, 1e-4, 20)
    slow_second = [x * (1.03 if i % 2 else 1.0) * np.exp(jitter[i]) for i, x in enumerate([1000.0] * 20)]
    assert "slot" in codes(one(slow_second, [1030.0 if not i % 2 else 1000.0 for i in range(20)]))


values = st.lists(st.floats(min_value=900, max_value=1100), min_size=16, max_size=40)
counts = st.lists(st.integers(0, 1200), min_size=16, max_size=40)


def _log(percent: float | None) -> float:
    assert percent is not None
    return float(np.log1p(percent / 100))


@settings(max_examples=60)
@given(values, st.sampled_from([1.0, 0.97, 1.05]), st.sampled_from([TIME, RATE]))
def test_swapping_timed_kernels_negates_effects_and_swaps_words(
    drawn: list[float], shift: float, metric: Metric
) -> None:
    half = len(drawn) // 2
    a, b = drawn[:half], [x * shift for x in drawn[half : 2 * half]]
    there, back = one(a, b, metric), one(b, a, metric)
    assert back.verdict == SWAPPED[there.verdict or ""]
    assert _log(back.effect_percent) == pytest.approx(-_log(there.effect_percent), abs=1e-9)
    assert there.interval_percent and back.interval_percent
    assert _log(back.interval_percent[0]) == pytest.approx(-_log(there.interval_percent[1]), abs=1e-9)
    assert back.p_value == there.p_value


@settings(max_examples=100)
@given(counts)
def test_swapping_exact_kernels_swaps_words(drawn: list[int]) -> None:
    half = len(drawn) // 2
    a, b = drawn[:half], drawn[half : 2 * half]
    there, back = exact_one(a, b), exact_one(b, a)
    assert back.verdict == SWAPPED[there.verdict or ""]
    if "zeros" in codes(there):
        return  # percentages of the mean level, and counts of 0 have no ratio
    if there.effect_percent not in (None, -100.0) and back.effect_percent not in (None, -100.0):
        assert _log(back.effect_percent) == pytest.approx(-_log(there.effect_percent), abs=1e-9)


def _ties(a: list[float], b: list[float], factor: float) -> list[int]:
    """How the Walsh averages compare with each other and with 0: a logarithm's last digit may break a tie."""
    if min(*a, *b) <= 0:
        return []
    averages = signed_rank.walsh(np.log(np.array(b) * factor) - np.log(np.array(a) * factor))
    order = np.unique(np.append(np.abs(averages), 0.0), return_inverse=True)[1]
    return [*map(int, order), *map(int, np.sign(averages))]


@settings(max_examples=60)
@given(values, st.sampled_from([1e-9, 0.125, 1e3, 1e9]))
def test_scaling_units_changes_nothing(drawn: list[float], factor: float) -> None:
    half = len(drawn) // 2
    a, b = drawn[:half], drawn[half : 2 * half]
    assume(_ties(a, b, 1.0) == _ties(a, b, factor))
    plain, scaled = one(a, b), one([x * factor for x in a], [x * factor for x in b])
    assert plain.verdict == scaled.verdict and plain.boots_needed == scaled.boots_needed
    assert plain.effect_percent == pytest.approx(scaled.effect_percent, abs=1e-9)
    assert plain.p_value == scaled.p_value


@settings(max_examples=40)
@given(values, st.randoms(use_true_random=False))
def test_reordering_records_changes_nothing(drawn: list[float], rng: object) -> None:
    half = len(drawn) // 2
    data = [cell(drawn[:half], 0), cell(drawn[half : 2 * half], 1)]
    mixed = []
    for d in reversed(data):
        shuffled = list(d.boots)
        rng.shuffle(shuffled)  # type: ignore[attr-defined]
        mixed.append(replace(d, boots=tuple(shuffled)))
    assert judge(experiment(), mixed, {}, {"pipe": (TIME,)}) == judge(experiment(), data, {}, {"pipe": (TIME,)})


def test_an_effect_that_differs_between_hosts_is_told_and_a_host_of_its_own_speed_is_not() -> None:
    a, b = (np.array(side) for side in noisy(20, -0.05, sd=0.004))
    slow = np.arange(20) % 2 == 1

    def warned(before: NDArray[np.float64], after: NDArray[np.float64]) -> set[str]:
        sides = [cell(before.tolist(), 0), cell(after.tolist(), 1)]
        hosted = [
            replace(side, boots=tuple(replace(x, host="old" if slow[x.block] else "new") for x in side.boots))
            for side in sides
        ]
        (result,) = judge(experiment(), hosted, {}, {"pipe": (TIME,)})
        assert result.verdict == "improved"
        return codes(result)

    assert "hosts" not in warned(np.where(slow, 3 * a, a), np.where(slow, 3 * b, b))
    assert "bistable" not in warned(np.where(slow, 3 * a, a), np.where(slow, 3 * b, b))
    assert "hosts" in warned(a, np.where(slow, b * 0.9, b))


def test_blocks_that_are_spread_over_layouts_tell_what_layout_alone_moves() -> None:
    plain = experiment()
    shifted = replace(plain.kernels[1], layouts=(Layout(image_path="/l", image_sha256="1"),) * 3)
    spread = replace(plain, kernels=(plain.kernels[0], shifted))
    a, b = noisy(20, sd=0.002)
    b = [value * (1.05 if block % 4 == 1 else 1.0) for block, value in enumerate(b)]
    data = [cell(a, 0), cell(b, 1)]
    told = judge(spread, data, {}, {"pipe": (TIME,)})[0].warnings[-1]
    assert isinstance(told, LayoutMoves) and told.layouts == 4 and told.percent == pytest.approx(2.5, abs=0.4)
    assert "layout" not in codes(judge(plain, data, {}, {"pipe": (TIME,)})[0])
