# SPDX-License-Identifier: GPL-2.0-or-later
"""Where vanished functions live on, on call graphs as real kernels have them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.attribution.inlining import Host, Side, hosts


def side(counts: Mapping[str, float], calls: Mapping[str, str]) -> Side:
    return Side(counts, {name: frozenset(callees.split()) for name, callees in calls.items()})


def found(old: Side, new: Side) -> dict[str, tuple[str, bool]]:
    return {name: (host.name, host.sure) for name, host in hosts(old, new).items()}


def test_a_caller_that_took_over_the_calls_of_what_vanished_holds_it_surely() -> None:
    old = side({"d_add": 40, "__d_add": 30}, {"d_add": "__d_add", "__d_add": "__d_rehash d_flags fsnotify"})
    new = side({"d_add": 64}, {"d_add": "__d_rehash d_flags"})
    assert hosts(old, new) == {"__d_add": Host("d_add", sure=True, others=False)}


def test_one_call_taken_over_is_a_maybe() -> None:
    old = side({"path": 40, "new_inode": 3}, {"path": "new_inode", "new_inode": "alloc_inode"})
    new = side({"path": 31}, {"path": "alloc_inode"})
    assert found(old, new) == {"new_inode": ("path", False)}


def test_a_caller_that_shrank_by_more_than_a_call_holds_nothing() -> None:
    old = side({"path": 60, "new_inode": 30}, {"path": "new_inode", "new_inode": "alloc_inode init"})
    new = side({"path": 45}, {"path": "alloc_inode init"})
    assert found(old, new) == {}


def test_who_never_called_it_holds_nothing_however_well_its_growth_fits() -> None:
    old = side({"cond_resched": 42, "map_id_range_down": 10, "mmput": 9}, {"mmput": "cond_resched"})
    new = side({"map_id_range_down": 52, "mmput": 9}, {"mmput": ""})
    assert found(old, new) == {}


def test_who_still_calls_it_holds_nothing() -> None:
    old = side({"alloc": 100, "slow": 60}, {"alloc": "slow", "slow": "pages policy"})
    new = side({"alloc": 150}, {"alloc": "slow pages policy"})
    assert found(old, new) == {}


@pytest.mark.parametrize(("growth", "holds"), [(-5, False), (23, False), (24, True), (88, True), (89, False)])
def test_a_function_that_called_nobody_is_maybe_where_its_caller_grew_by_about_as_much(
    growth: float, holds: bool
) -> None:
    old = side({"fault": 200, "access_error": 80}, {"fault": "access_error", "access_error": ""})
    new = side({"fault": 200 + growth}, {"fault": ""})
    assert found(old, new) == ({"access_error": ("fault", False)} if holds else {})


def test_growth_says_nothing_while_somebody_still_calls_the_function() -> None:
    old = side({"a": 10, "b": 10, "resched": 20}, {"a": "resched", "b": "resched"})
    new = side({"a": 30, "b": 10}, {"a": "", "b": "resched"})
    assert found(old, new) == {}


def test_growth_says_nothing_of_a_function_whose_own_calls_nobody_makes_any_more() -> None:
    old = side({"a": 10, "f": 20}, {"a": "f", "f": "x y"})
    new = side({"a": 30}, {"a": "z"})
    assert found(old, new) == {}


def test_a_function_with_a_new_name_was_not_inlined() -> None:
    old = side({"wake": 100, "__lock": 22}, {"wake": "__lock", "__lock": ""})
    new = side({"wake": 120, "___lock": 24}, {"wake": "___lock", "___lock": ""})
    assert found(old, new) == {}
    assert found(new, old) == {}


def test_a_rewrite_that_makes_the_same_calls_was_not_inlined() -> None:
    old = side({"madvise": 100, "zap": 160}, {"madvise": "zap", "zap": "start end lru"})
    new = side({"madvise": 110, "zap_batched": 150}, {"madvise": "start end zap_batched", "zap_batched": "start end"})
    assert found(old, new) == {}


def test_what_is_split_into_its_caller_and_a_rare_part_is_maybe_held_by_the_caller() -> None:
    old = side(
        {"link_path_walk": 400, "walk": 143, "step_into": 270},
        {"link_path_walk": "walk", "walk": "dput lookup_fast step_into", "step_into": "dput pick_link security"},
    )
    new = side(
        {"link_path_walk": 552, "slowpath": 30},
        {"link_path_walk": "dput lookup_fast slowpath", "slowpath": "pick_link security"},
    )
    assert found(old, new) == {"walk": ("link_path_walk", True), "step_into": ("link_path_walk", False)}


def test_nothing_is_reached_through_a_function_that_is_not_held() -> None:
    old = side({"destroy": 100, "free": 50, "section": 10}, {"destroy": "free", "free": "section lock x"})
    new = side({"destroy": 110}, {"destroy": ""})
    assert found(old, new) == {}


def test_calls_that_the_caller_made_through_what_it_holds_anyway_prove_nothing() -> None:
    old = side({"copy": 100, "dup": 90, "expected": 30}, {"copy": "dup", "dup": "a b expected", "expected": "a count"})
    new = side({"copy": 180}, {"copy": "a b"})
    assert found(old, new) == {"dup": ("copy", True)}


def test_of_several_callers_the_one_that_grew_most_is_named() -> None:
    old = side({"a": 10, "b": 10, "f": 40}, {"a": "f", "b": "f", "f": "x y"})
    new = side({"a": 20, "b": 30}, {"a": "x y", "b": "x y"})
    assert hosts(old, new) == {"f": Host("b", sure=True, others=True)}


def test_functions_that_call_each_other_end() -> None:
    old = side({"a": 10, "f": 40, "g": 20}, {"a": "f", "f": "g x y", "g": "f x y"})
    new = side({"a": 60}, {"a": "x y"})
    assert found(old, new)["f"] == ("a", True)


def test_unknown_calls_on_either_side_claim_nothing() -> None:
    old = side({"a": 10, "f": 40}, {"a": "f", "f": "x y"})
    new = side({"a": 40}, {"a": "x y"})
    assert hosts(old, side(new.counts, {})) == {}
    assert hosts(side(old.counts, {}), new) == {}


NAMES = st.sampled_from("abcdefgh")
SIDES = st.builds(
    Side,
    st.dictionaries(NAMES, st.floats(0.01, 1e6), max_size=8),
    st.dictionaries(NAMES, st.frozensets(NAMES, max_size=5), max_size=8),
)


@given(SIDES, SIDES)
def test_only_a_vanished_function_has_a_host_and_that_runs_in_both_kernels(old: Side, new: Side) -> None:
    for name, host in hosts(old, new).items():
        assert name in old.counts and name not in new.counts
        assert host.name in old.counts and host.name in new.counts
        assert name not in new.calls.get(host.name, frozenset())
