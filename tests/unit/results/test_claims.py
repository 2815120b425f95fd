# SPDX-License-Identifier: GPL-2.0-or-later
"""Recipes are parsed strictly, and a claim is judged by sign and order of size."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta import paths
from kdelta.errors import UserError
from kdelta.model import Word
from kdelta.results import claims
from kdelta.results.claims import Column, Measured
from kdelta.spec import recipes
from kdelta.spec.recipes import Claim, Setting
from kdelta.units import Better
from unit.spec.recipe_builders import recipe_with


def judged(claim: str, **measured: object) -> claims.Answer:
    recipe = recipe_with(claim)
    return claims.judge(recipe.claims[0], recipe, Measured(**{"unit": "instructions/op", **measured}))  # type: ignore[arg-type]


SLOWER = "case = 'pidfd_open'\nbefore = 0.4\nafter = 0.5\nunit = 'us'\n"


def test_the_same_sign_within_a_factor_of_two_is_reproduced() -> None:
    answer = judged(SLOWER, before=0.30, after=0.40, verdict="regressed")
    assert answer.call == "reproduced"
    assert "1.3 times the published size" in str(answer.why)


def test_the_same_sign_and_another_size_is_the_same_direction_with_the_factor() -> None:
    answer = judged(SLOWER, before=100.0, after=101.0, verdict="regressed")
    assert answer.call == "same direction"
    assert "0.045 times" in str(answer.why)


def test_intervals_without_a_common_value_are_the_same_direction() -> None:
    published = SLOWER + "interval_percent = [24.0, 26.0]\n"
    near = judged(published, before=0.30, after=0.40, verdict="regressed", interval_percent=(25.0, 40.0))
    far = judged(published, before=0.30, after=0.40, verdict="regressed", interval_percent=(30.0, 40.0))
    assert (near.call, far.call) == ("reproduced", "same direction")


def test_the_other_sign_is_opposite() -> None:
    assert judged(SLOWER, before=100.0, after=90.0, verdict="improved").call == "opposite"


def test_a_count_is_called_no_time_where_it_is_opposite() -> None:
    """It was "published as slower, measured as faster", of instructions."""
    count = "case = 'pidfd_open'\npercent = 2\nunit = 'instructions'\n"
    answer = judged(count, before=100.0, after=90.0, verdict="improved")
    assert (answer.call, answer.why) == ("opposite", "published as more, measured as less")
    answer = judged(SLOWER, before=100.0, after=90.0, verdict="improved")
    assert answer.why == "published as slower, measured as faster"


@pytest.mark.parametrize("figures", ["before = 5\nafter = 0\n", "before = 0\nafter = 3\n", "before = 0\n"])
@pytest.mark.parametrize("after", [4.999, 5.001])
def test_what_is_the_same_is_no_rise_nor_fall_of_what_vanishes_or_is_new(figures: str, after: float) -> None:
    """It was "opposite: published as gone; it grows", or "same direction", by what the noise floor had called noise."""
    share = f"case = 'pipe'\nfunction = 'f'\n{figures}unit = '% of kernel instructions'\n"
    answer = judged(share, before=5.0, after=after, verdict="same")
    assert answer.call == "not reproduced" and "no difference beyond the noise floor" in str(answer.why)


@pytest.mark.parametrize("cores", [1, 4])
def test_a_claim_in_instructions_is_not_answered_by_time(cores: int) -> None:
    """Of 5 % fewer instructions a time that rose by 4 % made "opposite: published as less, measured as more"."""
    recipe = recipe_with(f"case = 'pipe'\npercent = -5\nunit = 'instructions'\ncores = {cores}\n")
    told = recipes.obstacle(recipe.claims[0], recipe, Setting(mode="timed", cores=8, accel="kvm"))
    assert told == "needs exact mode, which counts instructions: leave out --timed"


def test_no_difference_beyond_the_floor_is_not_reproduced() -> None:
    answer = judged(SLOWER, before=100.0, after=100.2, verdict="same", interval_percent=(-0.4, 0.8))
    assert answer.call == "not reproduced"


def test_a_claim_smaller_than_what_could_be_seen_is_not_refuted() -> None:
    small = "case = 'pidfd_open'\npercent = 0.5\nunit = 'us'\n"
    answer = judged(small, before=100.0, after=100.2, verdict="same", interval_percent=(-0.4, 0.8))
    assert answer.call == "not measurable here"


def test_data_without_a_verdict_refutes_nothing() -> None:
    assert judged(SLOWER, before=100.0, after=60.0, verdict=None).call == "not measurable here"


def columns(**verdicts: tuple[float, str]) -> dict[str, object]:
    found = tuple(Column(name=n, percent=p, verdict=v) for n, (p, v) in verdicts.items())  # type: ignore[arg-type]
    first = found[0]
    return {"counts": True, "columns": found, "verdict": first.verdict}


def test_a_claim_in_time_is_never_reproduced_nor_refuted_by_instructions() -> None:
    faster = "case = 'path_lookup'\nbefore = 21619\nafter = 22536\nunit = 'ops/s'\nbetter = 'higher'\n"
    far = judged(faster, before=4624.0, after=3348.0, **columns(instructions=(-27.6, "improved")))
    assert far.call == "same direction" and "7.8 times the published size" in str(far.why) and "--timed" in str(far.why)
    near = judged(faster, before=100.0, after=96.0, **columns(instructions=(-4.0, "improved")))
    assert near.call == "same direction"
    other = judged(faster, before=100.0, after=120.0, **columns(instructions=(20.0, "regressed")))
    assert other.call == "not measurable here" and "go the other way: instructions (" in str(other.why)
    nothing = judged(faster, before=100.0, after=100.0, **columns(instructions=(0.0, "same")))
    assert nothing.call == "not measurable here" and "counts do not show it" in str(nothing.why)


def test_locked_operations_carry_what_instructions_do_not() -> None:
    dearer = "case = 'fork_vmas'\npercent = 12.16\nunit = 'ms'\n"
    answer = judged(
        dearer, before=100.0, after=100.2, **columns(instructions=(0.2, "same"), locked=(23.6, "regressed"))
    )
    assert answer.call == "same direction" and "carried by locked" in str(answer.why)


def test_what_crosses_between_cpus_carries_a_claim_about_many() -> None:
    faster = "case = 'thread_spawn:tasks=24'\npercent = 15\nunit = 'ops/s'\nbetter = 'higher'\ncores = 24\n"
    counts = columns(instructions=(4.9, "regressed"), transfers=(-20.0, "improved"), waits=(-60.0, "improved"))
    answer = judged(faster, before=100.0, after=104.9, **counts)
    assert answer.call == "same direction" and "carried by transfers, waits (" in str(answer.why)


@pytest.mark.parametrize(
    ("locked", "call"), [(-5.8, "not measurable here"), (-12.0, "same direction"), (-100.0, "same direction")]
)
def test_counts_that_move_the_other_way_by_more_leave_a_claim_in_time_open(locked: float, call: str) -> None:
    """thread_spawn has 12 % more instructions on 7.0, and 6 % fewer locked ones: "20 % faster" was "same direction"."""
    faster = "case = 'thread_spawn'\npercent = 20\nunit = 'ops/s'\nbetter = 'higher'\n"
    counts = columns(instructions=(12.3, "regressed"), locked=(locked, "improved"))
    answer = judged(faster, before=100.0, after=112.3, **counts)
    assert answer.call == call
    assert ("instructions by as much or more the other way" in str(answer.why)) == (call != "same direction")


@pytest.mark.parametrize(("same_percent", "call"), [(1, "same direction"), (0.1, "not measurable here")])
def test_a_count_that_changes_does_not_carry_the_claim_that_nothing_does(same_percent: float, call: str) -> None:
    """0.64 % more instructions were "same direction" for "no more than 0.1 %", because other counts stayed."""
    stays = f"case = 'pipe'\nsame = true\nsame_percent = {same_percent}\nunit = 'ns'\n"
    counts = columns(instructions=(0.64, "regressed"), locked=(0.0, "same"))
    answer = judged(stays, before=627.0, after=631.0, **counts)
    assert answer.call == call
    assert ("do by more than 0.1 %: instructions (instructions +0.64 %" in str(answer.why)) == (same_percent == 0.1)


def test_what_stayed_undecided_is_not_measurable_rather_than_refuted() -> None:
    answer = judged(SLOWER, before=100.0, after=120.0, verdict="inconclusive", why="more --blocks")
    assert (answer.call, answer.why) == ("not measurable here", "more --blocks")


def test_a_rate_that_rises_is_the_sign_of_a_time_that_falls() -> None:
    rate = "case = 'path_lookup'\nbefore = 21619\nafter = 22536\nbetter = 'higher'\n"
    assert judged(rate, before=100.0, after=96.0, verdict="improved").call == "reproduced"
    assert judged(rate, before=96.0, after=100.0, verdict="regressed").call == "opposite"


@pytest.mark.parametrize(
    ("after", "call"), [(0.0, "reproduced"), (0.4, "reproduced"), (2.0, "not reproduced"), (6.0, "opposite")]
)
def test_a_function_that_is_said_to_vanish_must_be_gone(after: float, call: str) -> None:
    vanish = "case = 'path_lookup'\nfunction = 'step_into'\nbefore = 4.9\nafter = 0\n"
    assert judged(vanish, before=5.0, after=after, verdict="improved").call == call


def test_a_function_that_was_not_there_before_cannot_vanish() -> None:
    vanish = "case = 'path_lookup'\nfunction = 'step_into'\nbefore = 4.9\nafter = 0\n"
    assert judged(vanish, before=0.0, after=0.0, verdict="same").call == "not measurable here"


def test_what_comes_from_zero_is_compared_by_amount() -> None:
    memory = "case = 'pidfd_open'\nmetric = 'slab_per_process'\nbefore = 0\nafter = 1000\nunit = 'B'\n"
    assert judged(memory, before=200.0, after=1400.0, verdict="regressed").call == "reproduced"
    assert judged(memory, before=200.0, after=210.0, verdict="regressed").call == "same direction"
    assert judged(memory, before=200.0, after=100.0, verdict="improved").call == "opposite"


def test_a_leak_check_takes_zero_only() -> None:
    leak = "case = 'pidfd_open'\nmetric = 'objects_left'\nbefore = 0\nafter = 0\n"
    assert judged(leak, before=0.0, after=0.0, verdict="same").call == "reproduced"
    assert judged(leak, before=0.0, after=1.0, verdict="regressed").call == "not reproduced"


def test_no_difference_can_be_the_claim() -> None:
    same = "case = 'pidfd_open'\nsame = true\nsame_percent = 2\n"
    assert judged(same, before=100.0, after=101.9, verdict="regressed").call == "reproduced"
    assert judged(same, before=100.0, after=103.0, verdict="regressed").call == "not reproduced"
    assert judged(same, before=100.0, after=103.0, verdict="same").call == "reproduced"


NOTHING = (
    {"percent": 0.0},
    {"percent": 1e-15},
    {"percent": -0.0, "better": "higher"},
    {"before": 0.4, "after": 0.4},
    {"before": 0.4, "after": 0.5, "percent": 0.0},
)


@pytest.mark.parametrize("figures", NOTHING)
def test_a_claim_whose_figures_do_not_differ_is_refused_with_what_to_write(figures: dict[str, object]) -> None:
    lines = "".join(f"{key} = {value!r}\n" for key, value in figures.items())
    with pytest.raises(UserError, match=r"x\.toml: claim 1 \('c'\): .*same = true"):
        recipe_with(f"case = 'pipe'\n{lines}")
    assert recipe_with(f"case = 'pipe'\nsame = true\n{lines}").claims[0].same


@pytest.mark.parametrize("figures", NOTHING)
def test_such_a_claim_is_judged_as_no_difference(figures: dict[str, Any]) -> None:
    recipe, claim = recipe_with(SLOWER), Claim(text="c", case="pipe", unit="us", **figures)

    def call(**measured: Any) -> claims.Call:
        return claims.judge(claim, recipe, Measured(unit="us", **measured)).call

    assert call(before=100.0, after=103.0, verdict="regressed") == "not reproduced"
    assert call(before=100.0, after=100.2, verdict="same", interval_percent=(-0.4, 0.8)) == "reproduced"
    counted = {"before": 100.0, "after": 100.0}
    assert call(**counted, **columns(instructions=(0.0, "same"))) == "same direction"
    assert call(**counted, **columns(instructions=(3.0, "regressed"))) == "not measurable here"
    assert call(**counted, **columns(instructions=(3.0, "inconclusive"))) == "not measurable here"


def test_a_guest_that_failed_answers_nothing() -> None:
    answer = judged(SLOWER, before=None, after=None, state="panicked", why="panicked: Kernel panic")
    assert (answer.call, answer.why) == ("not measurable here", "panicked: Kernel panic")


@given(
    percent=st.floats(-90, 900).filter(lambda p: abs(p) > 0.1),
    effect=st.floats(-90, 900).filter(lambda p: abs(p) > 0.1),
)
def test_the_answer_does_not_depend_on_which_way_is_better(percent: float, effect: float) -> None:
    recipe = recipe_with(SLOWER)
    calls = set()
    ways: tuple[Better, ...] = ("lower", "higher")
    for better in ways:
        claim = Claim(text="c", case="pidfd_open", percent=percent, better=better)
        word: Word = "improved" if (effect > 0) == (better == "higher") else "regressed"
        measured = Measured(before=100.0, after=100.0 + effect, unit="", better=better, verdict=word)
        calls.add(claims.judge(claim, recipe, measured).call)
    assert len(calls) == 1
    same_sign = (percent > 0) == (effect > 0)
    assert (calls == {"opposite"}) == (not same_sign)
    times = math.log1p(effect / 100) / math.log1p(percent / 100)
    if same_sign and not math.isclose(max(times, 1 / times), 2, rel_tol=1e-6):
        assert calls == {"reproduced" if 0.5 < times < 2 else "same direction"}


@pytest.mark.parametrize(
    ("figures", "carries"),
    [
        ("before = 0\nafter = 5\n", "regressed"),
        ("before = 0\nafter = 5\nbetter = 'higher'\n", "improved"),
        ("before = 5\nafter = 0\n", "improved"),
        ("before = 5\nafter = 0\nbetter = 'higher'\n", "regressed"),
    ],
)
def test_a_change_from_or_to_nothing_has_the_sign_of_what_is_better(figures: str, carries: Word) -> None:
    """Of a throughput that comes from nothing it was a slower kernel that agreed."""
    words: tuple[Word, ...] = ("improved", "regressed")
    for word in words:
        counted = columns(instructions=(3.0 if word == "regressed" else -3.0, word))
        call = judged(f"case = 'pipe'\nunit = 'ops/s'\n{figures}", before=100.0, after=100.0, **counted).call
        assert call == ("same direction" if word == carries else "not measurable here")


HERE = Setting(mode="exact", cores=2, accel="tcg")


@pytest.mark.parametrize(
    ("claim", "setting", "why"),
    [
        (SLOWER, HERE, ""),
        (SLOWER + "cores = 24\n", HERE, "needs 24 cores: --exact --smp 24 counts"),
        (SLOWER + "cores = 24\n", replace(HERE, smp=8), ""),
        (SLOWER + "cores = 24\n", replace(HERE, arch="arm64"), "needs 24 cores; this machine has 2"),
        (
            SLOWER + "cores = 24\n",
            replace(HERE, mode="timed", smp=8),
            "needs 24 cores; this machine has 2: --exact --smp 24 counts",
        ),
        (SLOWER + "cores = 2\n", replace(HERE, mode="timed"), "needs 2 cores under KVM"),
        (SLOWER + "cores = 2\n", Setting(mode="timed", cores=2, accel="kvm"), ""),
        (SLOWER + "cores = 2\n", Setting(mode="exact", cores=2, accel="kvm", arch="arm64"), "add --timed"),
        (SLOWER + "exact = false\n", HERE, "add --timed"),
        (SLOWER + "arch = 'arm64'\n", HERE, "needs arm64 kernels"),
        (SLOWER + "needs = 'a tape drive'\n", HERE, "needs a tape drive"),
        (SLOWER, Setting(mode="exact", cores=2, accel="tcg", patched=False), "needs a patch: give it with --patch"),
        (
            "case = 'pipe'\nfunction = 'f'\nbefore = 1\nafter = 2\n",
            Setting(mode="timed", cores=2, accel="tcg"),
            "exact",
        ),
        ("selftests = 'pidfd'\n", HERE, "built from source"),
    ],
)
def test_what_cannot_be_measured_says_why(claim: str, setting: Setting, why: str) -> None:
    recipe = recipe_with(claim)
    got = recipes.obstacle(recipe.claims[0], recipe, setting)
    assert (why in got) if why else not got


def test_the_shipped_recipes_hold_the_five_published_claims() -> None:
    found = [recipes.parse(p.read_text(), str(p)) for p in sorted(paths.shipped("recipes").glob("*.toml"))]
    assert {r.name for r in found} >= {
        "pidfs",
        "pidfd-dentry",
        "path-walk",
        "pipe-prealloc",
        "fork-names",
        "thread-exit",
    }
    assert [p.stem for p in sorted(paths.shipped("recipes").glob("*.toml"))] == [r.name for r in found]
    pipe = next(r for r in found if r.name == "pipe-prealloc")
    percents = [recipes.published_percent(c) or 0.0 for c in pipe.claims]
    plain = [p for p, c in zip(percents, pipe.claims, strict=True) if not c.pressure]
    pressed = [p for p, c in zip(percents, pipe.claims, strict=True) if c.pressure]
    # the ranges that the publication gives for its own table
    assert (len(plain), len(pressed)) == (9, 9)
    assert 5.5 <= min(plain) < 6.5
    assert 27.5 <= max(plain) < 29.0
    assert 20.5 <= min(pressed) < 21.5
    assert 47.5 <= max(pressed) < 48.5


def test_every_case_of_a_shipped_recipe_is_in_the_catalogue() -> None:
    from kdelta.spec.cases import parse_case
    from kdelta.spec.workloads import catalogue

    known = catalogue()
    for path in paths.shipped("recipes").glob("*.toml"):
        for claim in recipes.parse(path.read_text(), str(path)).claims:
            for text in filter(None, (claim.case, claim.from_case)):
                (case,) = parse_case(text, known)
                metrics = {metric.name for metric in known[case.workload].metrics}
                assert claim.metric in metrics | {""}


def test_the_summary_counts_each_answer() -> None:
    answers = tuple(
        claims.Answer(claim=Claim(text="c", case="pipe"), call=call, why="")
        for call in ("reproduced", "reproduced", "opposite")
    )
    assert claims.summary(answers) == "3 claims: 2 reproduced, 1 opposite"
    assert claims.summary(answers[2:]) == "1 claim: 1 opposite"
