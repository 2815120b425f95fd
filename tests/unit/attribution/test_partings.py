# SPDX-License-Identifier: GPL-2.0-or-later
"""Where two trees of calls part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta.attribution import stack_diff
from kdelta.attribution.inlining import Host
from kdelta.attribution.partings import Parting, partings
from kdelta.model import Profile
from kdelta.report import parted
from unit.attribution import counts


def _profile(*lines: str, ops: int = 1) -> Profile:
    return replace(counts.profile({"read": 1}, ops=ops), stacks="\n".join(["0 0 0 [kernel]", *lines]))


def _host(name: str, others: bool = False) -> Host:
    return Host(name=name, sure=True, others=others)


def _found(before: Profile, after: Profile, homes: dict[str, Host] | None = None) -> tuple[Parting, ...]:
    return partings(stack_diff.compared(before, after, homes))


def _told(found: tuple[Parting, ...]) -> dict[str, tuple[float, str, str]]:
    return {one.name: (one.delta, parted.calls(one), parted.where(one, {})) for one in found}


# one allocation an area less, as vm_area_struct holds its lock since Linux 6.15; what stays clears less memory
FORK = _profile("1 9 1 fork", "2 90 1 copy", "3 80 8 alloc", "4 800 8 memset", "3 30 3 store")
FORK_SINCE = _profile("1 9 1 fork", "2 95 1 copy", "3 40 4 alloc", "4 400 4 memset", "3 30 3 store", "4 6 2 mark")


def test_what_is_called_less_often_is_told_with_all_that_it_called() -> None:
    assert _told(_found(FORK, FORK_SINCE)) == {
        "alloc": (-440.0, "8->4", "called less often by fork > copy"),
        "mark": (6.0, "0->2", "now called by fork > copy > store"),
        "copy": (5.0, "1", "itself in fork"),
    }
    assert _told(_found(FORK_SINCE, FORK))["mark"] == (-6.0, "2->0", "no longer called by fork > copy > store")


def test_what_a_call_costs_is_looked_for_within_it() -> None:
    after = _profile("1 9 1 fork", "2 90 1 copy", "3 90 9 alloc", "4 90 9 memset", "3 30 3 store")
    assert _told(_found(FORK, after)) == {  # more calls, and yet cheaper
        "memset": (-710.0, "8->9", "itself in fork > copy > alloc"),
        "alloc": (10.0, "8->9", "itself in fork > copy"),
    }


def test_what_parts_at_several_places_is_one_line_with_their_sum() -> None:
    before = _profile("1 9 1 a", "2 5 1 resched", "1 9 1 b", "2 7 2 resched")
    (one,) = _found(before, _profile("1 9 1 a", "1 9 1 b"))
    assert (one.delta, one.places, parted.calls(one)) == (-12.0, 2, "3->0")
    assert parted.where(one, {}) == "no longer called by b and at 1 other place"


def test_code_that_moved_into_another_function_is_counted_with_it() -> None:
    before = _profile("1 9 1 fork", "2 900 1 copy_process", "3 4 1 lock")
    after = _profile("1 9 1 fork", "2 20 1 copy_process", "3 850 1 dup_mmap", "4 4 1 lock")
    (one,) = _found(before, after, {"dup_mmap": _host("copy_process")})
    assert (one.name, one.delta, one.joined) == ("copy_process", -30.0, ("dup_mmap",))
    assert parted.where(one, {}) == "itself in fork; with dup_mmap"
    assert {one.name for one in _found(before, after)} == {"copy_process", "dup_mmap"}


def test_code_that_a_function_jumps_to_at_its_end_is_counted_with_it_too() -> None:
    before = _profile("1 9 1 do_mmap", "2 211 1 mmap_region", "3 166 1 mmap_file")
    after = _profile("1 9 1 do_mmap", "2 21 1 mmap_region", "2 180 1 __mmap_region", "3 160 1 mmap_file")
    assert _told(_found(before, after, {"__mmap_region": _host("mmap_region")})) == {
        "mmap_region": (-10.0, "1", "itself in do_mmap; with __mmap_region"),
        "mmap_file": (-6.0, "1", "itself in do_mmap > mmap_region"),
    }
    others = {"__mmap_region": _host("mmap_region", others=True)}  # who else holds it may be who calls it here
    assert {one.name for one in _found(before, after, others)} == {"mmap_region", "__mmap_region", "mmap_file"}


def test_a_function_under_another_name_is_compared_by_what_it_costs() -> None:
    before = _profile("1 9 1 wait", "2 31 1 wait_queue", "3 82 1 queue", "3 7 1 unlock", "3 2835 1 schedule")
    after = _profile("1 9 1 wait", "2 18 1 do_wait", "3 3237 1 schedule")
    found = _found(before, after)
    assert {one.name: (one.was, one.delta) for one in found} == {
        "schedule": ("", 402.0),
        "queue": ("", -82.0),
        "do_wait": ("wait_queue", -13.0),
        "unlock": ("", -7.0),
    }
    often = replace(after, stacks=after.stacks.replace("18 1 do_wait", "18 3 do_wait"))
    assert {"wait_queue", "do_wait"} <= {one.name for one in _found(before, often)}  # called thrice: another thing


def test_a_function_that_stands_for_one_of_nearly_its_name_is_compared_with_that() -> None:
    before = _profile("1 9 1 map_pages", "2 100 48 do_set_pte", "2 50 48 get_flags")
    after = _profile("1 9 1 map_pages", "2 80 48 set_pte_range", "2 50 48 nr_to_section")
    assert {one.name: (one.was, one.delta) for one in _found(before, after)} == {
        "get_flags": ("", -50.0),
        "nr_to_section": ("", 50.0),
        "set_pte_range": ("do_set_pte", -20.0),
    }
    elsewhere = _profile("1 9 1 map_pages", "2 80 48 set_pte_range", "1 50 48 do_set_pte")
    assert {one.was for one in _found(before, elsewhere)} == {""}
    before, after = _profile("1 9 1 unmap", "2 90 9 __mod"), _profile("1 9 1 unmap", "2 75 5 mod")
    (one,) = _found(before, after)
    assert (one.was, one.delta, parted.where(one, {})) == ("__mod", -15.0, "called less often by unmap; __mod before")


def test_the_system_call_in_which_counting_begins_is_no_new_one() -> None:
    before = _profile("1 9 0 entry", "2 50 1 read")
    assert _told(_found(before, _profile("1 9 0 entry", "2 40 1 read"))) == {"read": (-10.0, "1", "itself in entry")}


NODES = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 300), st.integers(0, 5), st.sampled_from("abcdef")),
    min_size=1,
    max_size=12,
)


def _drawn(nodes: list[tuple[int, int, int, str]], ops: int) -> Profile:
    lines, depth, siblings = [], 0, {0: set[str]()}
    for wanted, instructions, calls, name in nodes:
        depth = min(wanted, depth + 1)
        if name in siblings.setdefault(depth, set()):
            continue
        siblings[depth].add(name)
        siblings[depth + 1] = set()
        lines.append(f"{depth} {instructions} {calls} {name}")
    return _profile(*lines, ops=ops)


@given(
    before=NODES,
    after=NODES,
    ops=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    homes=st.dictionaries(
        st.sampled_from("abcdef"), st.builds(_host, st.sampled_from("abcdef"), st.booleans()), max_size=3
    ),
)
def test_the_places_add_up_to_the_whole_difference(before, after, ops, homes) -> None:  # type: ignore[no-untyped-def]
    root = stack_diff.compared(_drawn(before, ops[0]), _drawn(after, ops[1]), homes)
    found = partings(root)
    assert sum(one.delta for one in found) == pytest.approx(root.whole[1] - root.whole[0], abs=1e-6)
    assert all(one.delta or one.places > 1 for one in found)
