# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes that are those of how often a program calls the kernel, and not of what a call costs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.model import CallCount, CellResult, Profile
from kdelta.report.sentences import sentence
from kdelta.results import calls
from kdelta.verdict.warnings import BelowDelta, MixedCalls, OtherCalls
from unit.attribution import counts


def side(*seeds: dict[str, tuple[int, int]]) -> list[Profile]:
    """A profile for each seed, of one operation; ``seeds[name]`` is (calls, instructions)."""
    return [
        replace(
            counts.profile({"f": sum(cost for _, cost in one.values())}),
            ops=1,
            system_calls={name: CallCount(calls=n, instructions=cost, rep_bytes=0) for name, (n, cost) in one.items()},
        )
        for one in seeds
    ]


def row(baseline: float, patched: float, **more: Any) -> CellResult:
    effect = 100.0 * (patched / baseline - 1.0)
    fields: dict[str, Any] = {
        "case": "access", "params": {}, "cgroup": "root", "mitigations": "default", "metric": "instructions",
        "unit": "instructions/op", "better": "lower", "primary": True, "state": "ok",
        "baseline_label": "6.12", "patched_label": "6.16", "baseline": baseline, "patched": patched,
        "effect_percent": effect, "interval_percent": (effect, effect), "p_value": 0.001,
        "verdict": "regressed" if effect > 0 else "improved",
    }  # fmt: skip
    return CellResult(**{**fields, **more})


SPUN = {"read": (1, 1000), "access": (100, 5000), "[timer interrupt]": (2, 60)}
FEW = {"read": (1, 1000), "access": (20, 1000), "[timer interrupt]": (1, 30)}


def test_more_calls_of_the_same_cost_are_no_regression_where_their_number_varies() -> None:
    after = side(SPUN, {**SPUN, "access": (101, 5050)})
    told = calls.held(row(2030, 6060, warnings=(BelowDelta(1.0),)), side(FEW, FEW), after)
    (warning,) = told.warnings
    assert isinstance(warning, MixedCalls) and (told.verdict, told.p_value) == ("inconclusive", None)
    assert warning.calls == (("access", 20.0, 100.5),) and warning.more == 0
    assert warning.same_calls_percent == pytest.approx(0.25, abs=0.3)  # an interrupt more
    assert told.extra["effect_same_calls_percent"] == warning.same_calls_percent
    assert "access 20 -> 100.5 per operation" in sentence(warning) and "+198.52 %" in sentence(warning)
    assert (told.baseline, told.patched, told.effect_percent) == (2030, 6060, row(2030, 6060).effect_percent)


def test_calls_that_are_the_same_under_all_seeds_leave_the_verdict_with_a_word() -> None:
    """A kernel that hands out less at a time makes a program call more often, and costs it that."""
    told = calls.held(row(2030, 6060), side(FEW, FEW), side(SPUN, SPUN))
    (warning,) = told.warnings
    assert told.verdict == "regressed" and type(warning) is OtherCalls
    assert "the same under all seeds" in sentence(warning)


def test_a_sign_that_is_that_of_the_calls_alone_is_none() -> None:
    """Fewer calls, of which each costs more: stress-ng poll was 45 % "better" on 6.12 than on 6.1, and is 7 % worse."""
    dear = {"read": (1, 1000), "access": (20, 1200), "[timer interrupt]": (1, 30)}
    told = calls.held(row(6060, 2230), side(SPUN, {**SPUN, "access": (99, 4950)}), side(dear, dear))
    assert told.verdict == "inconclusive" and told.extra["effect_same_calls_percent"] > 0


def test_what_each_call_costs_decides_whatever_their_number() -> None:
    dear = {"read": (1, 3000), "access": (21, 1050), "[timer interrupt]": (1, 30)}
    told = calls.held(row(2030, 4080), side(FEW, FEW), side(dear, {**dear, "access": (22, 1100)}))
    assert told.verdict == "regressed" and not told.warnings
    assert told.extra["effect_same_calls_percent"] == pytest.approx(98.5, abs=2)


def test_a_call_that_one_side_alone_makes_counts_at_its_own_cost() -> None:
    spun = {**FEW, "futex": (7, 7000)}
    told = calls.held(row(2030, 9030), side(FEW, FEW), side(spun, {**spun, "futex": (8, 8000)}))
    assert told.verdict == "inconclusive" and told.extra["effect_same_calls_percent"] == pytest.approx(-24.6, abs=0.1)
    back = calls.held(row(9030, 2030), side(spun, {**spun, "futex": (8, 8000)}), side(FEW, FEW))
    assert back.verdict == "inconclusive"


@pytest.mark.parametrize(
    "more",
    [
        {"metric": "rep_bytes"},
        {"verdict": "same"},
        {"verdict": "inconclusive"},
        {"verdict": None},
        {"effect_percent": None},
    ],
)
def test_other_rows_stay_as_they_are(more: dict[str, Any]) -> None:
    given = row(2030, 6060, **more)
    assert calls.held(given, side(FEW, FEW), side(SPUN, {**SPUN, "access": (90, 4500)})) == given


def test_without_system_calls_by_name_a_row_stays_as_it_is() -> None:
    bare = [replace(one, system_calls={}) for one in side(SPUN)]
    assert calls.held(row(2030, 6060), side(FEW), bare) == row(2030, 6060)
    assert calls.held(row(2030, 6060), [], []) == row(2030, 6060)
    assert calls.held(row(2030, 2060), side(FEW), side(FEW)) == row(2030, 2060)
