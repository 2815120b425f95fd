# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions behind a row: only where it is significant, of the right kernels, and only what moved beyond noise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import exact_metrics
from kdelta.errors import UserError
from kdelta.model import Because, CallCount, CellResult, Definition, MovedLine, Profile
from kdelta.report import causes
from kdelta.report.sentences import sentence
from kdelta.results import explain, layout
from kdelta.results.warnings import Carried, Layout, NoNames
from kdelta.store.store import Store
from kdelta.verdict.warnings import CallsBeside, MixedCalls, Strings
from unit.attribution import counts
from unit.serve import serve_store

MADE = serve_store.experiment("one", ("6.12", "7.0", "7.1"))
OLD, NEW, NAMELESS = counts.profile({"read": 900, "lock": 100}), counts.profile({"read": 950}), counts.profile({})


def row(**more: Any) -> CellResult:
    fields: dict[str, Any] = {
        "case": "pidfd_open", "params": {}, "cgroup": "root", "mitigations": "default", "metric": "instructions",
        "unit": "instructions/op", "better": "lower", "primary": True, "baseline_label": "6.12",
        "patched_label": "7.1", "state": "ok", "verdict": "improved", "effect_percent": -5.0,
        "baseline": 1000.0, "patched": 950.0, "interval_percent": (-5.0, -5.0),
    }  # fmt: skip
    return CellResult(**{**fields, **more})


def seeds(first: list[Profile], last: list[Profile]) -> explain.Seeds:
    return {(0, "default"): {0: first, 1: [counts.profile({"other": 5})], 2: last}}


def test_a_significant_row_names_the_functions_of_its_own_two_kernels() -> None:
    found = explain.Explainer(MADE, seeds([OLD], [NEW])).explained(row())
    assert {d.function: d.delta for d in found.because} == {"lock": -100.0, "read": 50.0}
    assert found.because_line == Because(gone=("lock",), gone_delta=-100.0, changed=(("read", 50.0),))


def test_all_counts_of_a_case_fall_where_its_calls_are_what_changed() -> None:
    def made(calls: int) -> Profile:
        spent = {"access": CallCount(calls=calls, instructions=40 * calls, rep_bytes=0)}
        return replace(counts.profile({"f": 40 * calls}), ops=1, system_calls=spent)

    whole = row(baseline=800.0, patched=4040.0, effect_percent=405.0, interval_percent=(404.0, 405.0))
    rows = [whole, row(metric="locked"), row(metric="locked", case="pipe"), row(metric="locked", patched_label="7.0")]
    experiment = replace(MADE, cases=(*MADE.cases[:1], replace(MADE.cases[0], workload="pipe", label="")))
    given = {(0, "default"): {0: [made(20), made(20)], 2: [made(101), made(102)]}}
    found = explain.Explainer(experiment, given).held(rows)
    assert [one.verdict for one in found] == ["inconclusive", "inconclusive", "improved", "improved"]
    assert [type(w) for one in found for w in one.warnings] == [MixedCalls, CallsBeside]


def test_of_a_loop_without_end_what_its_interval_holds_is_no_evidence() -> None:
    def made(unmapped: int) -> Profile:
        spent = {"munmap": CallCount(calls=unmapped, instructions=30_000 * unmapped, rep_bytes=0)}
        return replace(counts.profile({"f": 30_000 * unmapped}), ops=369, system_calls=spent)

    whole = row(baseline=60_000 / 369, patched=30_000 / 369, effect_percent=-50.0)
    given = seeds([made(2)] * 2, [made(1)] * 2)
    told = {}
    for endless in (False, True):
        known = {MADE.cases[0].workload: exact_metrics(endless=endless)}
        definition = Definition(metrics=known[MADE.cases[0].workload])
        experiment = replace(MADE, definitions={MADE.cases[0].workload: definition})
        told[endless] = explain.Explainer(experiment, given).held([whole])[0].verdict
    assert told == {False: "improved", True: "inconclusive"}


def inlined(pairs: int) -> tuple[Profile, Profile]:
    """So many functions, each of which is inlined into its caller."""
    walks, steps = ([f"{name}{number}" for number in range(pairs)] for name in ("walk", "step"))
    calls = dict(zip(walks, steps, strict=True)) | dict.fromkeys(steps, "dput lookup")
    old = counts.profile(dict.fromkeys(walks, 400) | dict.fromkeys(steps, 200), calls=calls)
    return old, counts.profile(dict.fromkeys(walks, 500), calls=dict.fromkeys(walks, "dput lookup"))


def test_where_code_went_is_looked_up_where_that_is_shown() -> None:
    old, new = inlined(2)
    whole, told = explain.between("instructions", [old], [new])
    assert [d.note for d in whole] == ["gone, inlined into walk0", "gone, inlined into walk1", "", ""]
    without, same = explain.between("instructions", [old], [new], placed=False)
    assert [d.note for d in without] == ["gone", "gone", "", ""] and same == told is not None
    many = [[one] for one in inlined(60)]  # each too little for a word: the functions themselves are shown
    assert explain.between("instructions", *many, placed=False) == explain.between("instructions", *many)
    assert explain.between("instructions", *many)[1] is None


def test_whose_string_instructions_move_more_is_named() -> None:
    """A call that clears 64 KiB by one instruction was told "because" of the ticks that came into it."""
    counted = {"read": (950, 0, 0, 0, 0, 0, 65536), "tick": (50, 0, 0, 0, 0, 0, 8)}
    new = replace(OLD, functions=counted)
    (told,) = explain.Explainer(MADE, seeds([OLD], [new])).explained(row(warnings=(Strings(779.8),))).warnings
    assert told == Strings(779.8, "read")
    assert sentence(told).endswith("with one for each 8 bytes: +779.80 %, most of it in read")


def test_where_a_count_that_carries_an_effect_changed_most_is_named() -> None:
    old, new = (replace(p, data_lines=lines) for p, lines in ((OLD, {"lock": 9, "read": 4}), (NEW, {"read": 60})))
    warned = row(warnings=(Carried(0.9, (("data_lines", 14.0),)),))
    found = explain.Explainer(MADE, seeds([old], [new])).explained(warned)
    assert found.warnings == (Carried(0.9, (("data_lines", 14.0),), "read"),)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"clear_page_rep": 2164, "walk": 9}, {"kernel_init_pages": 2622, "walk": 9}, ""),  # one name for another
        ({"a": 10, "b": 10, "c": 10}, {"a": 13, "b": 13, "c": 13}, ""),  # a third each
        ({"a": 10, "b": 10}, {"a": 90, "b": 5}, "a"),
        ({"a": 10, "b": 10}, {"a": 60, "b": 50}, "a"),
        ({"a": 10}, {"a": 10}, ""),
        ({"__a": 100, "b": 5}, {"a": 190, "b": 6}, "a"),  # as mod_memcg_lruvec_state() of 7.0
    ],
)
def test_most_of_a_count_is_in_a_function_without_which_little_is_left(
    before: dict[str, int], after: dict[str, int], told: str
) -> None:
    """Of +288 lines "most" was in kernel_init_pages, +2622: clear_page_rep, which it has inlined since, was -2164."""
    old, new = (replace(p, data_lines=lines) for p, lines in ((OLD, before), (NEW, after)))
    warned = row(warnings=(Carried(0.9, (("data_lines", 14.0),)),))
    (found,) = explain.Explainer(MADE, seeds([old], [new])).explained(warned).warnings
    assert isinstance(found, Carried) and found.function == told


def test_what_is_most_of_one_count_is_not_said_of_the_others() -> None:
    told = Carried(-1.3, (("locked", -16.8), ("data_lines", 5.5)), "filemap_map_pages")
    assert "but locked -16.8 % (most of it in filemap_map_pages), data lines +5.5 %; time" in sentence(told)


def laid(lines: dict[str, int], **spent: int) -> Profile:
    return replace(counts.profile(spent), code_lines=lines)


def test_lines_of_code_of_functions_that_only_moved_carry_no_effect() -> None:
    old = laid({"filldir64": 4, "iterate_dir": 3, "cond_resched": 1}, filldir64=900, iterate_dir=90, cond_resched=8)
    new = laid({"filldir64": 4, "iterate_dir": 4, "cond_resched": 2}, filldir64=880, iterate_dir=90, cond_resched=16)
    mix = {"filldir64": (880, 200, *new.functions["filldir64"][2:])}
    new = replace(new, functions=new.functions | mix)
    told = explain.Explainer(MADE, seeds([old], [new]))
    both = row(warnings=(Carried(-1.5, (("locked", 20.0), ("code_lines", 25.0)), ""),))
    assert [w.columns for w in told.explained(both).warnings] == [(("locked", 20.0),)]  # type: ignore[attr-defined]
    assert not told.explained(row(warnings=(Carried(-1.5, (("code_lines", 25.0),)),))).warnings
    (said,) = told.explained(row(metric="code_lines")).warnings
    assert said == Layout(2 / old.ops, 0.0)
    assert sentence(said).startswith("layout: +")
    assert layout.changes(old, new) == ({"filldir64": 0.0}, {"iterate_dir": 1 / old.ops, "cond_resched": 1 / old.ops})
    assert not told.explained(row(metric="data_lines")).warnings
    assert not told.explained(row(metric="code_lines", verdict="same")).warnings


@pytest.mark.parametrize(("filled", "told"), [(2 * 4096, ()), (64, (("data_lines", 3.0),))])
def test_lines_of_data_in_other_pages_carry_no_effect(filled: int, told: tuple[tuple[str, float], ...]) -> None:
    """One page more of 32 that clear_page() filled was told as "more data lines" of a scheduler's patch."""
    vector = {"clear_page": (90, 10, 0, 0, 4, 2, filled), "read": (9, 3, 0, 0, 1, 0, 0)}
    old, new = (
        replace(counts.profile({}), functions=vector, data_lines={"clear_page": lines, "read": 4})
        for lines in (64, 128)
    )
    warned = row(warnings=(Carried(0.0, (("data_lines", 3.0),)),))
    found = explain.Explainer(MADE, seeds([old], [new])).explained(warned)
    assert tuple(column for w in found.warnings for column in w.columns) == told  # type: ignore[attr-defined]


def test_lines_of_code_of_what_runs_besides_carry_it_and_are_named() -> None:
    old = laid({"read": 2, "walk": 9}, read=100, walk=500)
    new = laid({"read": 5, "walk": 7, "refill": 6}, read=100, walk=510, refill=60)
    warned = row(warnings=(Carried(0.5, (("code_lines", 63.0),)),))
    explainer = explain.Explainer(MADE, seeds([old], [new]))
    assert explainer.explained(warned).warnings == (Carried(0.5, (("code_lines", 63.0),), "refill"),)
    assert not explainer.explained(row(metric="code_lines")).warnings


def test_a_significant_row_of_transfers_names_the_lines_that_move() -> None:
    def moving(profile: Profile, tasklist: int) -> Profile:
        lines = (
            MovedLine(name="tasklist_lock", reads=0, writes=tasklist),
            MovedLine(name="init_pid_ns", reads=7, writes=0),
        )
        return replace(profile, moved=lines)

    found = explain.Explainer(MADE, seeds([moving(OLD, 58)], [moving(NEW, 46)])).explained(row(metric="transfers"))
    assert {d.function: d.delta for d in found.because} == {"tasklist_lock": -12.0 / OLD.ops}
    assert found.because_line == Because(changed=(("tasklist_lock", -12.0 / OLD.ops),))


@pytest.mark.parametrize("more", [{"verdict": "same"}, {"verdict": None}, {"metric": "loads"}])
def test_nothing_else_has_causes(more: dict[str, Any]) -> None:
    found = explain.Explainer(MADE, seeds([OLD], [NEW])).explained(row(**more))
    assert (found.because, found.because_line) == ((), None)


def test_a_function_that_varies_by_more_than_it_changed_is_left_out() -> None:
    wild = [counts.profile({"read": 900, "lock": n}) for n in (100, 900)]
    deltas, told = explain.between("instructions", wild, [counts.profile({"read": 950, "lock": 300})] * 2)
    assert [d.function for d in deltas] == ["read"]
    assert told == Because(changed=(("read", 50.0),), others=1, others_delta=200.0), "but it is part of the whole"
    assert causes.because(told) == "read +50, 1 other +200"
    assert causes.because(replace(told, others_delta=10.0)) == "read +50", "what is named is nearly all of it"


def test_without_names_the_row_says_so() -> None:
    bare = Profile(ops=1, functions={"[unknown 0x1]": (9,) + (0,) * 6}, total=(9,) + (0,) * 6)
    found = explain.Explainer(MADE, seeds([OLD], [bare])).explained(row())
    assert found.because == () and found.warnings == (NoNames(()),)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        opened.create(MADE)
        yield opened


def test_profiles_are_read_by_cell_and_kernel_one_for_each_seed(store: Store) -> None:
    for block in range(3):
        store.save_boot("one", serve_store.boot(block, 0, cost=1000 + block))
    found = explain.seeds_of(MADE, store)[0, "default"]
    assert [p.total[0] for p in found[0]] == [16000, 16016, 16032] and 1 not in found
    assert explain.chosen(explain.seeds_of(MADE, store))[0, "default"][0].total[0] == 16016, "the median seed's"


def test_a_row_without_stored_profiles_is_refused_in_one_line(store: Store) -> None:
    store.save_boot("one", serve_store.boot(0, 0))
    with pytest.raises(UserError, match=r"^pidfd_open: no profile is stored for 6\.12 or 7\.1$"):
        explain.profiles_of(MADE, store, row())
    store.save_boot("one", serve_store.boot(0, 2))
    before, after = explain.profiles_of(MADE, store, row())
    assert "kernel_0" in before.functions and "kernel_2" in after.functions
