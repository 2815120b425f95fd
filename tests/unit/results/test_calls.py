# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes that are those of how often a program calls the kernel, and not of what a call costs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import exact_metrics
from kdelta.model import CallCount, CellResult, Profile
from kdelta.report.cause import at_same_calls
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
    assert "varies with the seed, so the count gives no verdict" in sentence(warning)
    assert (told.baseline, told.patched, told.effect_percent) == (2030, 6060, row(2030, 6060).effect_percent)


def test_many_calls_are_told_without_an_exponent() -> None:
    """A loop of 20 ms had "getppid 5.013e+04 -> 5.324e+04 per operation"."""
    few, many = {"getppid": (50135, 15295933)}, {"getppid": (53240, 14963147)}
    told = OtherCalls(-2.09, -7.46, (("getppid", 50134.6, 53240.0),), 0, "seed", False)
    assert "getppid 50135 -> 53240 per operation" in sentence(told)
    (warning,) = calls.held(row(15295933, 14963147), side(few, few), side(many, many)).warnings
    assert "getppid 50135 -> 53240 per operation" in sentence(warning)


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


def test_a_call_for_which_the_kernel_has_another_function_is_the_same_call() -> None:
    """A patch renamed sys_newuname(), or had getppid(2) come to sys_getpid(): +24 % "would be 0.00 %"."""
    before = {**FEW, "getppid": (3, 600), "uname": (1, 300)}
    after = {**FEW, "getpid": (3, 500), "uname2": (1, 381)}
    assert calls.held(row(2930, 2911), side(before, before), side(after, after)) == row(2930, 2911)
    (warning,) = calls.held(row(2930, 5000), side(before), side({**after, "access": (80, 3000)})).warnings
    assert isinstance(warning, OtherCalls) and [name for name, *_ in warning.calls] == ["access"]
    once = {**after, "getpid": (2, 400)}
    (warning,) = calls.held(row(2930, 2311), side(before), side(once)).warnings  # less often: it is another one
    assert isinstance(warning, OtherCalls) and len(warning.calls) == 4


def test_one_call_that_varies_says_that_all_hang_on_time() -> None:
    """stress-ng pthread: futex(2) was as often under each of five seeds, and rt_sigpending(2) 2.3 or 2.4 times."""
    after = {**FEW, "access": (100, 5000), "a": (3, 90), "b": (3, 60), "c": (3, 30), "futex": (1, 9)}
    told = calls.held(row(2030, 6219), side(FEW, FEW), side(after, {**after, "futex": (2, 18)}))
    (warning,) = told.warnings
    assert told.verdict == "inconclusive" and isinstance(warning, MixedCalls)
    assert "futex" not in [name for name, *_ in warning.calls] and warning.more == 1


LOOP = {"madvise": (369, 738_000), "munmap": (2, 60_000)}
LATER = {"madvise": (369, 745_000), "munmap": (1, 45_000)}


def test_what_an_interval_of_a_loop_holds_one_more_of_is_no_verdict() -> None:
    """tlb_flush2 unmaps once in 256 operations: 369 held two on 6.1 and one on 7.3, which was "improved by 1.2 %"."""
    before, after = ([replace(one, ops=369) for one in side(loop, loop)] for loop in (LOOP, LATER))
    given = row(798_000 / 369, 790_000 / 369)
    told = calls.held(given, before, after, endless=True)
    (warning,) = told.warnings
    assert told.verdict == "inconclusive" and isinstance(warning, MixedCalls) and warning.why == "interval"
    assert told.extra["effect_same_calls_percent"] > 0 and "one of them more or fewer" in sentence(warning)
    of_a_run = calls.held(given, before, after)  # which is whole, and has no edges
    assert of_a_run.verdict == "improved" and "the same under all seeds" in sentence(of_a_run.warnings[0])


def test_a_loop_that_makes_a_call_more_often_than_its_edges_could_does_so() -> None:
    before = [replace(one, ops=369) for one in side(LOOP, LOOP)]
    after = [replace(one, ops=369) for one in side(*[{**LOOP, "munmap": (9, 270_000)}] * 2)]
    told = calls.held(row(798_000 / 369, 1_008_000 / 369), before, after, endless=True)
    (warning,) = told.warnings
    assert told.verdict == "regressed" and isinstance(warning, OtherCalls) and warning.why == "kernel"


def test_a_change_that_keeps_its_verdict_says_what_it_is_at_the_same_calls_where_that_is_far_from_it() -> None:
    """poll on 7.0: -16.7 %, of which -9.9 % is what calls cost; fallocate1 on 6.16: +21.0 %, where it is +13.2 %."""
    dear = {"read": (1, 1000), "access": (26, 2080), "[timer interrupt]": (1, 30)}
    told = calls.held(row(2030, 3110), side(FEW, FEW), side(dear, {**dear, "access": (27, 2160)}))
    (warning,) = told.warnings
    assert told.verdict == "regressed" and type(warning) is OtherCalls
    assert warning.same_calls_percent == pytest.approx(27.6, abs=0.1)
    assert "varies with the seed" in sentence(warning) and "no verdict" not in sentence(warning)


@pytest.mark.parametrize(("made", "told"), [(2658, "-8.20 %"), (2615, "")])
def test_a_loop_that_runs_by_time_says_what_it_would_be_at_the_same_calls(made: int, told: str) -> None:
    """``while monotonic() < 0.1: open()`` made 50 of 2,608 calls more under every seed: -6.36 % without a word."""
    before, after = {"openat": (2608, 2_608_000)}, {"openat": (made, 918 * made)}
    found = calls.held(row(2_608_000, 918 * made), side(*[before] * 5), side(*[after] * 5))
    texts = [sentence(warning) for warning in found.warnings]
    assert [told in text for text in texts] == ([True] if told else []) and found.verdict == "improved"


def test_where_other_kinds_of_a_call_were_left_out_it_is_told_what_both_prices_say() -> None:
    """Threads of Python, 6.12 to 7.0: 302 calls of futex(2) for 448,319, then 83 for 301,202, of which more wait."""
    before = {"read": (1, 8_865_879), "futex": (302, 448_319)}
    after = {"read": (1, 9_131_286), "futex": (83, 301_202)}
    told = calls.held(row(9_314_198, 9_432_488), side(*[before] * 5), side(*[after] * 5))
    (warning,) = told.warnings
    assert isinstance(warning, OtherCalls) and told.verdict == "regressed"
    assert [warning.same_calls_percent, warning.then_percent] == pytest.approx([9.8, 4.76], abs=0.01)
    assert "would be +9.80 % at what each costs now, +4.76 % at what it cost there;" in sentence(warning)
    alike = {"read": (1, 9_131_286), "futex": (83, 123_214)}
    (warning,) = calls.held(row(9_314_198, 9_254_500), side(*[before] * 5), side(*[alike] * 5)).warnings
    assert isinstance(warning, OtherCalls) and warning.then_percent is None


def test_more_calls_that_do_less_each_have_no_count_at_as_many() -> None:
    """A pipe read by 8 KiB in place of 64: +18.03 % was "at as many system calls -314.10 % to -39.62 %"."""
    before, after = {"read": (1, 8800), "write": (1, 10_000)}, {"read": (8, 12_200), "write": (1, 10_000)}
    told = calls.held(row(18_800, 22_200), side(*[before] * 5), side(*[after] * 5))
    (warning,) = told.warnings
    assert type(warning) is OtherCalls and warning.less_each and told.verdict == "regressed"
    assert "read 1 -> 8 per operation): they are the same under all seeds, and each does less" in sentence(warning)
    assert not at_same_calls(told.warnings) and not told.extra


@pytest.mark.parametrize(("cost", "told"), [(1100, True), (1005, False)])
def test_the_same_of_fewer_and_dearer_calls_says_so(cost: int, told: bool) -> None:
    """stress-ng udp: -0.1 % from 6.16 to 7.0, and +1.4 % at the same number of sendto(2)."""
    before = {"sendto": (100, 100_000), "read": (1, 1000)}
    fewer = 101_000 // cost
    after = {"sendto": (fewer, fewer * cost), "read": (1, 1000)}
    sides = (side(*[one] * 5) for one in (before, after))
    held = calls.held(row(101_000, 101_000, verdict="same", effect_percent=0.0), *sides)
    said = [round(w.same_calls_percent) for w in held.warnings if type(w) is OtherCalls]
    assert held.verdict == "same" and said == [10] * told


def test_what_is_the_same_within_its_seeds_says_nothing() -> None:
    before = side(*({"sendto": (100 + n, 100_000 + 1000 * n)} for n in range(5)))
    after = side(*({"sendto": (98 + n, 100_000 + 9000 * (n - 2))} for n in range(5)))
    assert not calls.held(row(102_000, 102_000, verdict="same", effect_percent=0.0), before, after).warnings


@pytest.mark.parametrize("verdict", ["improved", "regressed", "same"])
def test_other_counts_of_calls_that_decide_nothing_decide_nothing(verdict: str) -> None:
    """access(2) in other numbers was "mixed" in instructions, and -86 % locked operations "improved"."""
    warning = MixedCalls(198.0, 0.2, (("access", 20.0, 100.5),), 2, "seed")
    locked = row(40, 200, metric="locked", primary=False, verdict=verdict, warnings=(BelowDelta(1.0),))
    told = calls.beside(locked, warning)
    assert (told.verdict, told.p_value, told.effect_percent) == ("inconclusive", None, locked.effect_percent)
    (said,) = told.warnings
    assert (
        "access 20 -> 100.5, 2 more per operation, the mean of all seeds), so this count gives no verdict"
        in sentence(said)
    )


def test_the_instructions_themselves_and_rows_without_a_verdict_stay_beside_them() -> None:
    warning = MixedCalls(198.0, 0.2, (("access", 20.0, 100.5),), 0, "seed")
    for given in (row(40, 200), row(40, 200, metric="locked", verdict=None)):
        assert calls.beside(given, warning) == given


def test_a_workload_whose_least_difference_is_that_of_edges_is_a_loop_without_end() -> None:
    assert calls.endless({"wis": exact_metrics(endless=True), "pipe": exact_metrics()}) == {"wis"}


def test_on_several_cpus_calls_have_the_average_price() -> None:
    """stress-ng access on two CPUs was "+59.7 %" on 6.16, of 300 access(2) an operation instead of 169."""

    def made(access: int) -> Profile:
        plain = counts.profile({"f": 3000 * (access + 319)})
        return replace(plain, ops=1, called={"access": access, "chmod": 319})

    before, after = [made(169), made(168)], [made(300), made(299)]
    told = calls.held(row(3000 * 488, 3000 * 619), before, after)
    (warning,) = told.warnings
    assert told.verdict == "inconclusive" and isinstance(warning, MixedCalls) and warning.averaged
    assert warning.same_calls_percent == pytest.approx(0, abs=0.3)
    assert "as many as on the baseline, each at the average cost, +26.84 %" in sentence(warning)
    assert calls.held(row(3000 * 488, 3000 * 619), [replace(one, called={}) for one in before], after).warnings == ()


@pytest.mark.parametrize(("row_of_none", "calls_of_none"), [("[unnamed system call]", 0), ("[not implemented]", 100)])
def test_a_call_that_one_kernel_does_not_have_is_told_as_that(row_of_none: str, calls_of_none: int) -> None:
    """setxattrat(2) came with 6.13: "the program made other calls" of one that made the same on both kernels."""
    lacks = {"openat": (100, 43000), row_of_none: (calls_of_none, 19000)}
    has = {"openat": (100, 33000), "setxattrat": (100, 51000)}
    (warning,) = calls.held(row(62000, 84000), side(lacks, lacks), side(has, has)).warnings
    assert isinstance(warning, OtherCalls) and (warning.refused, warning.by) == (("setxattrat",), "baseline")
    assert "; the baseline kernel does not have setxattrat, so the program asked in vain" in sentence(warning)
    (warning,) = calls.held(row(84000, 62000), side(has, has), side(lacks, lacks)).warnings
    assert isinstance(warning, OtherCalls) and warning.by == "patched"
    both = {"openat": (100, 43000), "write": (1, 19000)}
    (warning,) = calls.held(row(62000, 84000), side(both, both), side(has, has)).warnings
    assert isinstance(warning, OtherCalls) and warning.refused == (), "as far as is known the program chose"
