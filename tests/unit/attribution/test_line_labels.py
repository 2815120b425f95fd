# SPDX-License-Identifier: GPL-2.0-or-later
"""A field whose line goes by another name on the other kernel moves there all the same."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.attribution import line_labels
from kdelta.attribution.because import moved_per_op
from kdelta.model import MovedLine, Profile, Waited


def _profile(lines: dict[str, tuple[int, dict[str, int]]]) -> Profile:
    moved = tuple(MovedLine(name=name, reads=0, writes=n, others=others) for name, (n, others) in lines.items())
    return Profile(ops=1, functions={}, total=(0,) * 7, moved=moved)


def test_a_line_that_goes_by_another_of_its_fields_is_the_same_line() -> None:
    """Of the four threads of a program cg_list moved 34 times on 6.12, and robust_list, beside it, 22 times on 7.0."""
    before = _profile({"cg_list": (34, {"robust_list": 8}), "mmap_lock": (21, {}), "clock": (5, {})})
    after = _profile({"robust_list": (22, {"cg_list": 9}), "mmap_lock": (3, {"count": 1}), "scx": (7, {"clock": 0})})
    old, new = (moved_per_op(side[0]) for side in line_labels.alike([before] * 5, [after] * 5))
    assert old == {"cg_list": 34, "mmap_lock": 21, "clock": 5}
    assert new == {"cg_list": 22, "mmap_lock": 3, "scx": 7}, "a lock that moves less is that; clock is gone"


def test_lines_that_became_one_are_held_against_that_together() -> None:
    before = _profile({"a": (10, {}), "b": (6, {}), "c": (4, {})})
    after = _profile({"a": (19, {"b": 5, "c": 4})})
    old, new = (moved_per_op(side[0]) for side in line_labels.alike([before], [after]))
    assert (old, new) == ({"a": 20}, {"a": 19})
    assert line_labels.mapping([after], [before]) == {"b": "a", "c": "a"}, "and where one became several"


def test_a_field_that_another_release_renamed_is_the_same() -> None:
    """dup by four threads: file.f_count -100 % of 8,710, and file.f_ref, as it is called since 6.13, now 6,237."""
    before, after = _profile({"file.f_count": (8710, {})}), _profile({"file.f_ref": (6237, {})})
    assert line_labels.mapping([before], [after]) == {"file.f_ref": "file.f_count"}
    assert line_labels.mapping([after], [before]) == {"file.f_ref": "file.f_count"}
    assert line_labels.mapping([after], [after]) == {}


def test_lines_at_other_places_of_the_same_cache_or_variable_are_held_against_each_other() -> None:
    """open by four threads: AppArmor's count was kmalloc-512+0x100, 3,402 times gone, and +0xc0, 3,549 times new."""
    before = _profile({"kmalloc-512+0x100": (3402, {}), "kmalloc-512+0x0": (50, {}), "init_user_ns": (9, {})})
    after = _profile({"kmalloc-512+0xc0": (3549, {}), "kmalloc-512+0x0": (40, {}), "init_user_ns+0x40": (8, {})})
    old, new = (moved_per_op(side[0]) for side in line_labels.alike([before], [after]))
    assert old == {"kmalloc-512+0xc0": 3402, "kmalloc-512+0x0": 50, "init_user_ns": 9}
    assert new == {"kmalloc-512+0xc0": 3549, "kmalloc-512+0x0": 40, "init_user_ns": 8}
    grown = _profile({"kmalloc-1k+0x100": (3402, {}), "kmalloc-512+0x0": (50, {}), "init_user_ns": (9, {})})
    assert line_labels.mapping([before], [grown]) == {}, "of another cache it may be anything"


def _moving(lines: dict[str, tuple[int, str]], waits: tuple[Waited, ...] = ()) -> Profile:
    moved = tuple(MovedLine(name=name, reads=0, writes=n, by={who: (0, n)}) for name, (n, who) in lines.items())
    return Profile(ops=1, functions={}, total=(0,) * 7, moved=moved, waits=waits)


def test_objects_that_kmalloc_takes_from_a_larger_cache_are_the_same() -> None:
    """A pipe's mutex was kmalloc-cg-192+0x0, 2.42 times gone, and kmalloc-cg-256+0x0, 3.08 times new: 27 % more."""
    lock = Waited(function="__mutex_lock_slowpath", caller="pipe_read", lock="kmalloc-cg-192+0x0", times=19, taken=99)
    before = _moving(
        {
            "kmalloc-cg-192+0x0": (242, "pipe_read"),
            "kmalloc-cg-192+0x80": (136, "buf_release"),
            "kmalloc-64+0x0": (9, "other"),
        },
        (lock,),
    )
    after = _moving(
        {
            "kmalloc-cg-256+0x0": (308, "anon_pipe_read"),
            "kmalloc-cg-256+0x80": (184, "buf_release"),
            "kmalloc-64+0x0": (9, "other"),
        }
    )
    assert line_labels.resized([before], [after]) == {"kmalloc-cg-192": "kmalloc-cg-256"}
    (one,), (other,) = line_labels.alike([before], [after])
    assert moved_per_op(one) == {"kmalloc-cg-256+0x0": 242, "kmalloc-cg-256+0x80": 136, "kmalloc-64+0x0": 9}
    assert moved_per_op(other) == {"kmalloc-cg-256+0x0": 308, "kmalloc-cg-256+0x80": 184, "kmalloc-64+0x0": 9}
    assert [wait.lock for wait in one.waits] == ["kmalloc-cg-256+0x0"]
    assert line_labels.resized([after], [before]) == {"kmalloc-cg-256": "kmalloc-cg-192"}


def test_of_caches_that_others_move_or_that_are_several_nobody_knows_which_is_which() -> None:
    before = _moving({"kmalloc-64+0x0": (100, "eventfd_write")})
    for lines in (
        {"kmalloc-128+0x0": (100, "signalfd_read")},  # somebody else's
        {"kmalloc-cg-128+0x0": (100, "eventfd_write")},  # what is charged is another kind
        {"kmalloc-128+0x0": (100, "eventfd_write"), "kmalloc-192+0x0": (9, "eventfd_write")},
        {"kmalloc-128+0x0": (100, "eventfd_write"), "kmalloc-64+0x0": (50, "eventfd_write")},  # it still moves
    ):
        assert line_labels.resized([before], [_moving(lines)]) == {}
    by_all = "__kmalloc_noprof (memset_orig)"  # it moves the memory of whatever is allocated
    zeroed = _moving({"kmalloc-64+0x0": (100, by_all)}), _moving({"kmalloc-128+0x0": (100, by_all)})
    assert line_labels.resized([zeroed[0]], [zeroed[1]]) == {}
    seldom = [replace(one, ops=10_000) for one in (before, _moving({"kmalloc-128+0x0": (100, "eventfd_write")}))]
    assert line_labels.resized([seldom[0]], [seldom[1]]) == {}, "chance moves as much"


def test_a_name_that_stays_is_left_alone() -> None:
    before = _profile({"a": (10, {"b": 3}), "b": (6, {})})
    assert line_labels.mapping([before], [before]) == {}
    assert line_labels.mapping([before], [_profile({"a": (10, {"b": 3}), "b": (4, {})})]) == {}
