# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases with one knob otherwise."""

from __future__ import annotations

from kdelta.spec.cases import parse_case
from kdelta.spec.variants import variants
from kdelta.spec.workloads import catalogue

KNOWN = catalogue()


def names(text: str) -> list[str]:
    (case,) = parse_case(text, KNOWN)
    return [one.name for one in variants(case, KNOWN[case.workload])]


def test_each_other_choice_and_numbers_on_both_sides() -> None:
    assert names("pipe:message=4K") == [
        "pipe:writers=4,message=4K", "pipe:readers=4,message=4K", "pipe:message=1", "pipe:message=256", "pipe",
        "pipe:message=4K,pipe_bytes=4K", "pipe:message=4K,pipe_bytes=64K", "pipe:message=4K,pipe_bytes=16M",
        "pipe:message=4K,mode=processes", "pipe:message=4K,pattern=small_after_big",
    ]  # fmt: skip


def test_a_knob_comes_with_the_other_without_which_it_has_no_effect_and_bounds_are_kept() -> None:
    alone, turned = names("path_lookup"), names("path_lookup:paths=depth")
    for found in (alone, turned):
        assert {"path_lookup:paths=depth,depth=1", "path_lookup:paths=depth,depth=16"} <= set(found)
        assert len(found) == len(set(found))
    assert "path_lookup" in turned
    assert "fork_vmas:vmas=262144" not in names("fork_vmas:vmas=65536")
    assert {"fork_vmas:pages=16", "thread_spawn:stack=64K"} <= {*names("fork_vmas"), *names("thread_spawn")}


def test_a_case_without_knobs_has_no_others() -> None:
    assert names("syscalls/dup_close") == []
