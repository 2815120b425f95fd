# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions behind a difference, and the line that names them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.attribution import because
from kdelta.attribution.because import changes, cumulative_shares, differences, line, placed, significant
from kdelta.attribution.profiles import kernel_vector
from kdelta.model import Because
from unit.attribution import counts

# access(2) from 6.18 to 7.0, FEASIBILITY.md
OLD = counts.profile(
    {"step_into": 270, "walk_component": 143, "memset_orig": 723, "link_path_walk": 400, "same": 9},
    calls={
        "link_path_walk": "inode_permission walk_component",
        "walk_component": "dput handle_dots lookup_fast step_into",
    },
)
NEW = counts.profile(
    {"memset_orig": 52, "link_path_walk": 533, "same": 9},
    calls={"link_path_walk": "dput handle_dots inode_permission lookup_fast"},
)


def test_functions_are_sorted_by_the_size_of_their_difference() -> None:
    found = [(d.function, d.baseline, d.patched, d.delta) for d in differences(OLD, NEW)]
    assert found == [
        ("memset_orig", 723, 52, -671),
        ("step_into", 270, 0, -270),
        ("walk_component", 143, 0, -143),
        ("link_path_walk", 400, 533, 133),
    ]


def test_a_vanished_function_names_the_caller_that_holds_it() -> None:
    notes = {d.function: d.note for d in differences(OLD, NEW)}
    assert notes["walk_component"] == "gone, inlined into link_path_walk"
    assert notes["step_into"] == "gone, maybe inlined into link_path_walk"
    assert notes["memset_orig"] == ""


def test_the_other_way_round_a_new_function_names_the_one_that_it_was_split_from() -> None:
    notes = {d.function: d.note for d in differences(NEW, OLD)}
    assert notes["walk_component"] == "new, split out of link_path_walk"
    assert notes["step_into"] == "new, maybe split out of link_path_walk"
    told = line(differences(NEW, OLD))
    assert told is not None and (told.new, told.new_delta) == (("step_into", "walk_component"), 413)


def test_whom_functions_call_is_asked_only_of_what_came_or_went(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = differences(OLD, NEW)
    plain = [d for d in changes(OLD, NEW) if d.note == ""]
    assert list(placed(changes(OLD, NEW), OLD, NEW)) == list(whole)
    monkeypatch.setattr(because, "hosts", pytest.fail)
    assert list(placed(plain, OLD, NEW)) == plain == [d for d in whole if d.note == ""]


def test_without_calls_a_function_is_gone_or_new_and_nothing_more() -> None:
    without = counts.profile({"memset_orig": 52, "link_path_walk": 533, "same": 9})
    assert {d.note for d in differences(OLD, without)} == {"gone", ""}
    assert {d.note for d in differences(without, OLD)} == {"new", ""}


def test_one_of_several_callers_is_named_as_one_of_several() -> None:
    calls = {"first": "small", "second": "small", "small": "x y"}
    before = counts.profile({"first": 10, "second": 10, "small": 40}, calls=calls)
    after = counts.profile({"first": 20, "second": 25}, calls={"first": "x y", "second": "x y"})
    assert {d.function: d.note for d in differences(before, after)}["small"] == "gone, inlined into second among others"


def test_counts_are_per_operation_and_user_space_is_left_out() -> None:
    before, after = counts.profile({"f": 30}, ops=10, user=500), counts.profile({"f": 15}, ops=2, user=100)
    (delta,) = differences(before, after)
    assert (delta.baseline, delta.patched, delta.delta) == (3.0, 7.5, 4.5)


functions = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(0, 10**6), max_size=10)


@given(functions, functions, st.integers(1, 64), st.integers(1, 64))
def test_swapping_the_kernels_negates_every_difference(
    before: dict[str, int], after: dict[str, int], ops: int, other_ops: int
) -> None:
    a, b = counts.profile(before, ops=ops), counts.profile(after, ops=other_ops)
    there, back = differences(a, b), differences(b, a)
    assert [(d.function, d.baseline, d.patched, d.delta) for d in there] == [
        (d.function, d.patched, d.baseline, -d.delta) for d in back
    ]


@given(functions, functions)
def test_the_differences_add_up_to_the_whole(before: dict[str, int], after: dict[str, int]) -> None:
    a, b = counts.profile(before, user=3), counts.profile(after, user=99)
    deltas = differences(a, b)
    net = kernel_vector(b)[0] - kernel_vector(a)[0]
    assert math.fsum(d.delta for d in deltas) == net
    shares = cumulative_shares(deltas)
    if net and deltas:
        assert shares[-1] == pytest.approx(1.0)
    else:
        assert all(share is None for share in shares)


def test_equal_profiles_have_no_differences_and_no_line() -> None:
    assert differences(OLD, OLD) == ()
    assert line(()) is None


def test_the_line_names_what_is_gone_first_then_what_changed() -> None:
    assert line(differences(OLD, NEW), 3) == Because(
        gone=("step_into", "walk_component"), gone_delta=-413, changed=(("memset_orig", -671),)
    )


def test_the_line_names_what_is_new() -> None:
    before = counts.profile({"close": 100})
    after = counts.profile({"close": 104, "path_from_stashed": 101, "call_rcu": 264, "tiny": 1})
    assert line(differences(before, after), 9) == Because(new=("call_rcu", "path_from_stashed"), new_delta=365)


def test_a_function_that_varies_by_more_than_it_changed_explains_nothing() -> None:
    before = [counts.profile({"steady": 100, "wild": 500}), counts.profile({"steady": 100, "wild": 560})]
    after = [counts.profile({"steady": 110, "wild": 540}), counts.profile({"steady": 110, "wild": 590})]
    deltas = differences(before[0], after[0])
    assert {d.function for d in deltas} == {"steady", "wild"}
    assert [d.function for d in significant(deltas, before, after)] == ["steady"]
    gone = differences(before[0], counts.profile({"steady": 100}))
    assert [d.function for d in significant(gone, before, [counts.profile({"steady": 100})] * 2)] == ["wild"]
    assert significant(deltas, [], []) == deltas


def test_a_function_that_lost_or_got_underscores_is_told_by_what_it_changed() -> None:
    """mod_memcg_lruvec_state for __mod_memcg_lruvec_state: "+61877, new" where all of a run is 49,800 more."""
    before = counts.profile({"__mod_state": 40808, "_lru": 34800, "lru": 416, "same": 9, "__gone": 700})
    after = counts.profile({"mod_state": 61877, "lru": 34392, "same": 9, "other": 650})
    told = line(differences(before, after))
    assert told == Because(changed=(("mod_state", 21069.0), ("lru", -824.0)), gone=("__gone",), gone_delta=-700.0,
                           new=("other",), new_delta=650.0)  # fmt: skip
    assert line(differences(after, before)) is not None


def test_what_goes_the_same_way_under_two_names_is_told_twice() -> None:
    before, after = counts.profile({"__free": 100, "free": 50}), counts.profile({"free": 20})
    assert line(differences(before, after)) == Because(gone=("__free",), gone_delta=-100.0, changed=(("free", -30.0),))


def test_a_function_that_moved_into_one_of_its_name_whole_is_worth_no_word() -> None:
    before, after = counts.profile({"__free": 100, "x": 1}), counts.profile({"free": 100, "x": 5})
    assert line(differences(before, after)) == Because(changed=(("x", 4.0),))
