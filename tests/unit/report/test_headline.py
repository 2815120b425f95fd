# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer in a sentence: it says what the verdicts say, and never calls a count time."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta.model import Because, CellResult
from kdelta.report import html as page
from kdelta.report import mail, markdown, terminal
from kdelta.report.headline import of_cells
from kdelta.report.view import Options, build
from kdelta.results.warnings import Carried
from kdelta.units import size
from kdelta.verdict.warnings import OtherCalls, Strings
from unit.report.report_samples import cell, exact, gaps, several, timed
from unit.report.sweep_samples import sweep

WORDS = ("improved", "regressed", "same", "inconclusive", None)
STATES = ("ok", "lost", "unsupported", "failed")
EXACT = {"metric": "instructions", "unit": "instructions/op"}


def hidden(instructions: float, locked: float, code_lines: float) -> Carried:
    return Carried(instructions, (("locked", locked), ("code_lines", code_lines)), "f")


@st.composite
def rows(draw: st.DrawFn, kernels: int = 2) -> list[tuple[str, CellResult]]:
    found = []
    for number in range(draw(st.integers(1, 6))):
        for patched in range(draw(st.integers(1, kernels))):
            word, state = draw(st.sampled_from(WORDS)), draw(st.sampled_from(STATES))
            percent = draw(st.floats(-90, 900) | st.sampled_from([float("nan"), float("inf")]))
            one = cell(
                f"case{number}", verdict=word if state == "ok" else None, state=state, effect_percent=percent,
                patched_label=f"7.{patched}", **(EXACT if draw(st.booleans()) else {}),
            )  # fmt: skip
            found.append((one.case, one))
    return found


@given(rows(), st.booleans())
def test_it_says_faster_only_of_times_that_improved(found: list[tuple[str, CellResult]], is_exact: bool) -> None:
    told = of_cells(found, is_exact, unfinished=False)
    text = told.text.replace("it is undecided whether", "").replace("It is undecided whether", "")
    words = {one.verdict for _, one in found if one.state == "ok"}
    undecided = text != told.text
    for better, worse in (("is faster than", "is slower than"), ("fewer instructions", "more instructions")):
        assert "improved" in words or undecided or better not in text
        assert "regressed" in words or undecided or worse not in text
    if is_exact:
        assert "faster" not in text and "slower" not in text
    else:
        assert "executes" not in text
    assert ("Largest" in text or ": " in text) <= bool(words & {"improved", "regressed"})


@given(rows(kernels=1))
def test_every_cell_is_counted_once(found: list[tuple[str, CellResult]]) -> None:
    told = of_cells(found, exact=True, unfinished=False)
    assert sum(tally.cases for tally in told.tallies) == len(found)
    for word in ("improved", "regressed", "same", "inconclusive"):
        wanted = sum(one.verdict == word and one.state == "ok" for _, one in found)
        assert sum(getattr(tally, word) for tally in told.tallies) == wanted
    assert sum(tally.missing for tally in told.tallies) == sum(one.state != "ok" for _, one in found)


@given(rows(), st.booleans())
def test_the_largest_is_of_a_case_that_changed(found: list[tuple[str, CellResult]], is_exact: bool) -> None:
    largest = of_cells(found, is_exact, unfinished=False).largest
    changed = [c.effect_percent or 0 for _, c in found if c.verdict in ("improved", "regressed") and c.state == "ok"]
    finite = [size(percent) for percent in changed if math.isfinite(percent)]
    assert (largest is None) == (not finite)
    assert largest is None or (largest.percent is not None and size(largest.percent) == max(finite))


def sentence(*cells: CellResult, is_exact: bool = True, unfinished: bool = False) -> str:
    return of_cells([(one.case, one) for one in cells], is_exact, unfinished).text


GONE = Because(gone=("step_into", "walk_component"), gone_delta=-404.0, changed=(("memset_orig", 200.0),))


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (
            sentence(cell("a", **EXACT, baseline=1000.0, because_line=GONE), cell("b", verdict="same", **EXACT)),
            "7.0 executes fewer instructions than 6.12 in 1 of 2 cases, more in none; the same in 1. "
            "Largest: a -28.60 %, because step_into and walk_component are gone (-404).",
        ),
        (sentence(cell("a", **EXACT)), "7.0 executes fewer instructions than 6.12 in a: -28.60 %."),
        (sentence(cell("a"), is_exact=False), "7.0 is faster than 6.12 in a: -28.60 %."),
        (
            sentence(cell("a", metric="mb_per_s", unit="MB/s", better="higher", effect_percent=9.0), is_exact=False),
            "7.0 is faster than 6.12 in a: +9.00 %.",
        ),
        (
            sentence(cell("a", metric="transfers", unit="transfers/op", effect_percent=9.0, verdict="regressed")),
            "7.0 moves more cache lines between CPUs than 6.12 in a: +9.00 %.",
        ),
        (
            sentence(cell("a", verdict="same"), cell("b", verdict="same"), is_exact=False),
            "7.0 is as fast as 6.12 in both cases.",
        ),
        (
            sentence(cell("a", verdict="inconclusive"), is_exact=False),
            "It is undecided whether 7.0 is faster than 6.12 in a.",
        ),
        (
            sentence(
                cell("a", **EXACT, verdict=None), cell("a", metric="transfers", unit="transfers/op", verdict=None)
            ),
            "a has no verdict on 7.0.",
        ),
        (
            sentence(cell("a", **EXACT), cell("a", metric="transfers", unit="transfers/op", verdict=None)),
            "7.0 executes fewer instructions than 6.12 in a; a has no verdict in transfers on 7.0. "
            "Largest: a, instructions -28.60 %.",
        ),
        (
            sentence(cell("a", verdict=None, state="lost", baseline=None, patched=None)),
            "a could be measured neither on 6.12 nor on 7.0.",
        ),
        (sentence(cell("a", verdict=None, state="failed", baseline=None)), "6.12 fails in a, which 7.0 runs."),
        (
            sentence(*(cell(name, verdict=None, state="unsupported", baseline=None) for name in "ab")),
            "6.12 does not support both cases, which 7.0 runs.",
        ),
        (
            sentence(cell("a", verdict="same"), cell("b", verdict=None, state="hung", baseline=None), is_exact=False),
            "7.0 is as fast as 6.12 in 1 of 2 cases; 6.12 hangs in 1.",
        ),
        (sentence(cell("a", verdict=None, state="hung")), "7.0 hangs in a, which 6.12 runs."),
        (
            sentence(*(cell(name, verdict=None, state="panicked") for name in "abc")),
            "7.0 panics in all 3 cases, which 6.12 runs.",
        ),
        (
            sentence(
                cell("a", verdict=None, state="unsupported"),
                cell("b", verdict=None, state="hung"),
                cell("c", verdict=None, state="lost", baseline=None, patched=None),
                cell("d", verdict="same"),
                is_exact=False,
            ),
            "7.0 hangs in 1 of 4 cases, which 6.12 runs; it is as fast as 6.12 in 1 of 4 cases; "
            "does not support 1, not measured in 1.",
        ),
        (
            sentence(cell("a", **EXACT, verdict="same", effect_percent=0.1, warnings=(hidden(0.1, 24.0, 9.0),))),
            "7.0 executes about as many instructions as 6.12 in a. More locked operations: +24.00 %, most of it in f.",
        ),
        (
            sentence(
                cell("a", **EXACT, verdict="same", effect_percent=0.1, warnings=(hidden(0.1, 4.0, 9.0),)),
                cell("b", **EXACT, verdict="same", effect_percent=0.1, warnings=(hidden(0.1, 20.0, 9.0),)),
            ),
            "7.0 executes about as many instructions as 6.12 in both cases. "
            "More locked operations in 2 cases, up to +20.00 % in b, most of it in f.",
        ),
        (  # hidden in one case: told with all that have it
            sentence(
                cell("a", **EXACT, verdict="same", effect_percent=0.1, warnings=(hidden(0.1, 3.0, 9.0),)),
                cell("b", **EXACT, verdict="regressed", effect_percent=2.5, warnings=(hidden(2.5, 48.0, 9.0),)),
            ),
            "7.0 executes more instructions than 6.12 in 1 of 2 cases, fewer in none; the same in 1. "
            "Largest: b +2.50 %. More locked operations in 2 cases, up to +48.00 % in b, most of it in f.",
        ),
        (
            of_cells(
                [("a", cell("a", verdict=None, state="failed"))], True, False, {"7.0": "kernel BUG at a.c:1!"}
            ).text,
            "7.0 fails in a, which 6.12 runs. On its console: kernel BUG at a.c:1.",
        ),
        (
            sentence(cell("tar c .", **EXACT, verdict="same", effect_percent=0.0, interval_percent=(0.0, 0.0))),
            '7.0 executes as many instructions as 6.12 in "tar c .".',
        ),
        (
            sentence(cell("a (memcg)", **EXACT)),
            "7.0 executes fewer instructions than 6.12 in a (memcg): -28.60 %.",
        ),
        (  # along with the instructions: nothing is hidden
            sentence(cell("a", **EXACT, warnings=(hidden(-28.6, -90.0, 0.0),))),
            "7.0 executes fewer instructions than 6.12 in a: -28.60 %.",
        ),
        (
            sentence(cell("a", **EXACT), unfinished=True),
            "So far: 7.0 executes fewer instructions than 6.12 in a: -28.60 %.",
        ),
        (
            sentence(cell("a", patched_label="", verdict=None)),
            "Figures of 6.12 alone: there is nothing to compare them with.",
        ),
        (sentence(), ""),
    ],
)
def test_what_it_says(told: str, wanted: str) -> None:
    assert told == wanted


def test_a_cause_that_goes_the_other_way_is_none() -> None:
    told = sentence(cell("a", **EXACT, because_line=Because(changed=(("memset_orig", 200.0),))))
    assert "because" not in told


def test_a_renamed_function_is_no_more_than_what_it_changed() -> None:
    renamed = Because(gone=("eventfd_write",), gone_delta=-60.0, new=("eventfd_do_write",), new_delta=125.0)
    slower: dict[str, Any] = {"verdict": "regressed", "baseline": 1000.0, "effect_percent": 14.9}
    told = sentence(cell("a", **EXACT, **slower, because_line=renamed))
    assert told.endswith("because eventfd_do_write is new (+125), eventfd_write is gone (-60).")
    other = replace(renamed, changed=(("memset_orig", 70.0),))
    assert sentence(cell("a", **EXACT, **slower, because_line=other)).endswith("because of memset_orig (+70 of +149).")
    mostly = replace(renamed, gone_delta=-10.0)
    told = sentence(cell("a", **EXACT, **slower, because_line=mostly))
    assert told.endswith("because eventfd_do_write is new (+125).")


def test_where_no_function_is_much_of_it_the_first_are_told_together() -> None:
    """A second mutex_lock() in pipe_write(): "because of __cond_resched (+13 of +42)"."""
    twice = Because(changed=(("__cond_resched", 13.0), ("mutex_lock", 11.0), ("mutex_unlock", 7.0), ("rcu", 7.0)))
    told: dict[str, Any] = {"effect_percent": 2.5, "baseline": 1680.0, "patched": 1722.0, "verdict": "regressed"}
    assert sentence(cell("a", **EXACT, **told, because_line=twice)).endswith(
        "because of __cond_resched, mutex_lock and mutex_unlock (+31 of +42)."
    )


def test_what_changed_by_more_than_the_whole_is_no_cause() -> None:
    inlined = Because(changed=(("do_syscall_64", 28671.0), ("mod_memcg_state", 1251.0)))
    slower: dict[str, Any] = {"verdict": "regressed", "baseline": 1396342.0, "effect_percent": 0.15}
    assert sentence(cell("a", **EXACT, **slower, because_line=inlined)).endswith("in a: +0.15 %.")
    larger = slower | {"effect_percent": 2.1}
    assert sentence(cell("a", **EXACT, **larger, because_line=inlined)).endswith("because of do_syscall_64 (+28671).")


@pytest.mark.parametrize(("percent", "about"), [(0.0, ""), (0.48, "about ")])
def test_a_small_difference_that_is_no_chance_is_not_called_none(percent: float, about: str) -> None:
    one = cell("a", **EXACT, verdict="same", effect_percent=percent, interval_percent=(percent, percent))
    assert (
        of_cells([("a", one)], True, unfinished=False).text == f"7.0 executes {about}as many instructions as 6.12 in a."
    )
    moved = replace(one, metric="transfers", unit="transfers/op")
    told = of_cells([("a", moved)], True, unfinished=False).text
    assert told == f"7.0 moves {about}as many cache lines between CPUs as 6.12 in a."
    timed_ = cell("a", verdict="same", effect_percent=percent, interval_percent=(percent, percent))
    assert "about" not in of_cells([("a", timed_)], False, unfinished=False).text


@pytest.mark.parametrize(("percents", "word"), [((13.6,), "more"), ((-2.0,), "fewer"), ((13.6, -2.0), "fewer")])
def test_it_asks_on_the_side_of_the_estimates(percents: tuple[float, ...], word: str) -> None:
    found = [
        (f"c{n}", cell(f"c{n}", **EXACT, verdict="inconclusive", effect_percent=p)) for n, p in enumerate(percents)
    ]
    told = of_cells(found, True, unfinished=False).text
    assert told.startswith(f"It is undecided whether 7.0 executes {word} instructions than 6.12 in ")


def test_other_system_calls_of_a_program_are_part_of_the_answer() -> None:
    other = OtherCalls(28.72, 1.34, (("read", 1722.0, 2189.0),), 0, "kernel")
    row = cell("a", **EXACT, verdict="regressed", effect_percent=28.72, because_line=GONE, warnings=(other,))
    assert sentence(row).endswith("in a: +28.72 %, at as many system calls +1.34 %.")
    evened = replace(row, verdict="same", effect_percent=0.01, warnings=(replace(other, same_calls_percent=-1.46),))
    assert sentence(evened) == (
        "7.0 executes about as many instructions as 6.12 in a. At as many system calls: -1.46 %."
    )
    assert ". At as many system calls: -1.46 % in a." in sentence(evened, cell("b", **EXACT, verdict="same"))


@pytest.mark.parametrize("sample", [timed, exact, gaps, several, sweep])
def test_it_stands_on_top_of_every_report_for_people(sample: object) -> None:
    view = build(*sample())  # type: ignore[operator]
    start = view.headline.text.split(";")[0]
    assert start
    for made in (terminal.render(view), mail.render(view), markdown.render(view).replace("\\", "")):
        body = made.partition("\n\n")[2] if view.gate else made
        assert " ".join(body.split()).replace("**", "").startswith(start)
    text = page.render(view)
    assert text.index('class="answer"') < text.index("<table")


def test_causes_are_told_to_those_who_ask() -> None:
    few, many = (build(*exact(), Options(causes=causes)) for causes in (False, True))
    for render in (terminal.render, mail.render):
        assert "walk_component gone" not in render(few).split("\n\n", 2)[2]
        assert "step_into and walk_component gone" in " ".join(render(many).split())
        assert "REP bytes: 6.12 0 B, 7.0 512.0 B" in render(few), "what a count hides is no cause"
    assert "--causes" in terminal.render(few) and "--causes" not in terminal.render(many)
    assert "<summary>Causes</summary>" in markdown.render(few) and "<details" not in markdown.render(many)
    assert '<details class="why">' in page.render(few) and '<details class="why" open>' in page.render(many)


def test_what_the_baseline_has_none_of_is_told_with_what_it_is_now() -> None:
    """``locked 0 -> 1`` was told nowhere, beside "more data lines"; transfers from 0 were no answer at all."""
    told = Carried(0.1, (("data_lines", 5.9),), "sys_getppid", new=(("locked", 1.0),))
    same = cell("a", **EXACT, verdict="same", effect_percent=0.1, warnings=(told,))
    assert "More locked operations: 0 -> 1, most of it in sys_getppid" in sentence(same)
    transfers = {"metric": "transfers", "unit": "transfers/op", "verdict": "regressed"}
    new = cell("a", **transfers, effect_percent=None, baseline=0.0, patched=1.85)
    slower = cell("b", **EXACT, verdict="regressed", effect_percent=48.0)
    assert "Largest: a, transfers now 1.85" in sentence(slower, new)
    little = cell("a", **transfers, effect_percent=None, baseline=0.0, patched=0.06)
    assert "Largest: b, instructions +48.00 %" in sentence(slower, little)


def test_a_fall_is_as_large_as_the_rise_that_undoes_it() -> None:
    fell = cell("a", **EXACT, verdict="improved", effect_percent=-60.0)
    assert "Largest: a -60.00 %" in sentence(fell, cell("b", **EXACT, verdict="regressed", effect_percent=70.0))


def test_the_largest_is_told_by_what_string_instructions_move_too() -> None:
    one = cell("a", **EXACT, verdict="regressed", effect_percent=2.0, warnings=(Strings(53.2),))
    assert "+2.00 % (+53.20 % with string instructions by what they move)" in sentence(one)


def test_of_one_case_what_changed_comes_first_and_is_told_of_each_kernel_once() -> None:
    transfers: dict[str, Any] = {"metric": "transfers", "unit": "transfers/op", "effect_percent": 9.0}
    alike = cell("a", **EXACT, verdict="same", effect_percent=0.0, interval_percent=(0.0, 0.0))
    rows = [
        alike,
        cell("a", **EXACT, verdict="improved", patched_label="7.1"),
        cell("a", **transfers, verdict="regressed"),
        cell("a", **transfers, verdict="regressed", patched_label="7.1"),
    ]
    assert sentence(*rows).partition(". ")[0] == (
        "7.0 moves more cache lines between CPUs than 6.12 in a, but executes as many instructions; "
        "7.1 executes fewer instructions than 6.12 in a, but moves more cache lines between CPUs"
    )
    undecided = cell("a", **transfers, verdict="inconclusive")
    assert sentence(alike, undecided) == (
        "7.0 executes as many instructions as 6.12 in a; "
        "it is undecided whether 7.0 moves more cache lines between CPUs than 6.12 in a."
    )
    slower = cell("a", verdict="same"), cell("a", metric="waits", unit="waits/op", verdict="regressed")
    assert sentence(*slower, is_exact=False).startswith("7.0 is as fast as 6.12 in a, but is higher in waits. ")


def test_a_line_that_begins_to_move_is_not_new() -> None:
    lines = Because(new=("tasklist_lock",), new_delta=0.98)
    rises = cell("a", metric="transfers", unit="transfers/op", verdict="regressed", baseline=1.0, effect_percent=98.0)
    assert sentence(replace(rises, because_line=lines)).endswith("because tasklist_lock now moves (+0.98).")
    falls = replace(rises, verdict="improved", effect_percent=-98.0)
    gone = Because(gone=("a_lock", "b_lock"), gone_delta=-0.98)
    assert sentence(replace(falls, because_line=gone)).endswith("because a_lock and b_lock no longer move (-0.98).")


def test_of_what_is_many_times_as_much_both_sides_are_told() -> None:
    transfers: dict[str, Any] = {"metric": "transfers", "unit": "transfers/op", "verdict": "regressed"}
    transfers["baseline"] = 0.02344
    many = cell("a", **transfers, patched=1.0, effect_percent=4166.2)
    assert sentence(many).endswith("in a: +4166.20 % (0.02344/op -> 1/op).")
    assert sentence(cell("a", **transfers, patched=0.2, effect_percent=753.2)).endswith("in a: +753.20 %.")


def test_of_single_lines_the_largest_is_told_where_all_transfers_have_no_verdict() -> None:
    figures: dict[str, Any] = {"unit": "transfers/op", "baseline": 4.7, "patched": 5.7, "effect_percent": 21.7}
    lock = cell("a", metric="transfers of its_lock", verdict="regressed", **figures)
    little = replace(lock, metric="transfers of count", baseline=0.0, patched=0.3, effect_percent=None)
    for total, is_told in (("regressed", False), ("improved", False), ("inconclusive", True), ("same", True)):
        rows = [("a", cell("a", metric="transfers", verdict=total, **figures))]
        told = of_cells(rows, exact=True, unfinished=False, beside=[("a", little), ("a", lock), *rows]).text
        assert ("Of single lines its_lock moves more often: from 4.700 to 5.700 an operation; 1 " in told) == is_told
    both = [*rows, ("b", cell("b", metric="transfers", verdict="same", **figures))]
    fell = ("b", replace(little, case="b", verdict="improved", baseline=1.3, patched=0.0, effect_percent=-100.0))
    told = of_cells(both, exact=True, unfinished=False, beside=[("a", lock), fell]).text
    assert told.endswith("Of single lines count moves less often in b: from 1.300 to 0 an operation; 1 more changed.")
    unnamed = replace(lock, metric="transfers of memory: copy_in, copy_out")
    told = of_cells(rows, True, False, beside=[("a", unnamed), *rows]).text
    assert "Of single lines the memory of copy_in and copy_out moves more often: from 4.700" in told


def test_that_a_lock_is_found_taken_more_often_is_part_of_the_answer() -> None:
    """Of a lock that was held for 200 instructions more it stood in no report but with --all-metrics."""
    waits = {"metric": "waits", "unit": "waits/op", "verdict": "regressed", "primary": False}
    found = [
        ("a", cell("a", **EXACT, verdict="regressed", effect_percent=47.4)),
        ("a", cell("a", **waits, baseline=0.07031, patched=0.5273, effect_percent=666.0)),  # type: ignore[arg-type]
        ("a", cell("a", **waits | {"metric": "retries", "verdict": "same"})),  # type: ignore[arg-type]
    ]
    told = of_cells(found[:1], exact=True, unfinished=False, beside=found).text
    assert told.endswith("in a: +47.40 %. Locks are found taken more often: from 0.07031 to 0.5273 an operation.")
    other = ("a", replace(found[2][1], verdict="improved", baseline=0.4, patched=0.1))
    told = of_cells(found[:1], exact=True, unfinished=False, beside=[other]).text
    assert told.endswith("Reads under sequence counters are in vain less often: from 0.4000 to 0.1000 an operation.")


def test_what_is_undecided_is_asked_as_the_estimate_goes() -> None:
    worse = cell("a", **EXACT, verdict="inconclusive", effect_percent=3.0)
    assert sentence(worse) == "It is undecided whether 7.0 executes more instructions than 6.12 in a."
    assert "fewer" in sentence(worse, cell("b", **EXACT, verdict="inconclusive", effect_percent=-3.0))
    slower = replace(worse, metric="mb_per_s", unit="MB/s", better="higher", effect_percent=-3.0)
    assert sentence(slower, is_exact=False) == "It is undecided whether 7.0 is slower than 6.12 in a."
