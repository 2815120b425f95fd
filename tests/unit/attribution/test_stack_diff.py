# SPDX-License-Identifier: GPL-2.0-or-later
"""Two trees of calls as one, and the picture of it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from msgspec.structs import replace

from kdelta.attribution import stack_diff
from kdelta.model import Profile
from kdelta.report import flame
from unit.attribution import counts


def _profile(*lines: str, ops: int = 1) -> Profile:
    return replace(counts.profile({"read": 1}, ops=ops), stacks="\n".join(["0 0 0 [kernel]", *lines]))


OLD = _profile("1 10 1 access", "2 4 1 path_at", "3 30 1 lookup", "3 6 1 getname", "4 50 1 memset", "4 2 1 copy")
NEW = _profile("1 12 2 access", "2 30 1 lookup", "2 5 1 do_get<name", "3 1 1 memset", "3 2 1 copy")

JUMPS = _profile("1 50 1 syscall", "2 7 1 access", "2 80 1 do_access", "3 30 1 path_at", "4 90 1 lookup", "2 9 1 exit")
CALLS = _profile("1 60 1 syscall", "2 9 1 access", "3 80 1 do_access", "4 70 1 lookup", "4 3 1 exit", "2 9 1 exit")


def test_what_one_kernel_inlined_does_not_hide_what_both_have() -> None:
    root = stack_diff.compared(OLD, NEW)
    access = root.children["access"]
    assert root.whole == [102.0, 50.0]
    assert access.own == [10.0, 12.0]
    found = {name: (child.was, child.whole) for name, child in access.children.items()}
    assert found == {
        "do_get<name": ("getname", [58.0, 8.0]),
        "lookup": ("", [30.0, 30.0]),
        "path_at": ("", [4.0, 0.0]),
    }
    assert root.width == 12 + 30 + 4 + 6 + 50 + 2


def test_the_sums_of_both_kernels_are_kept_whatever_is_put_beside_what() -> None:
    for before, after in ((OLD, NEW), (NEW, OLD), (OLD, OLD), (JUMPS, CALLS), (CALLS, JUMPS), (OLD, CALLS)):
        root = stack_diff.compared(before, after)
        for side, profile in enumerate((before, after)):
            assert root.whole[side] == sum(int(line.split()[1]) for line in profile.stacks.splitlines())
    assert stack_diff.compared(OLD, replace(OLD, ops=2)).whole == [102.0, 51.0]


def test_what_is_jumped_to_on_one_kernel_is_compared_with_what_is_called_on_the_other() -> None:
    for before, after, way in ((JUMPS, CALLS, slice(None)), (CALLS, JUMPS, slice(None, None, -1))):
        syscall = stack_diff.compared(before, after).children["syscall"]
        found = {name: child.whole[way] for name, child in syscall.children.items()}
        assert found == {"access": [7.0, 9.0], "do_access": [200.0, 153.0], "exit": [9.0, 9.0]}
        did = syscall.children["do_access"].children
        assert {name: child.whole[way] for name, child in did.items()} == {
            "path_at": [30.0, 0.0],
            "lookup": [90.0, 70.0],
            "exit": [0.0, 3.0],
        }


def test_jumps_are_found_through_what_one_kernel_inlined_and_by_their_number() -> None:
    inlined = _profile("1 7 1 access", "2 2 1 do_access", "3 70 1 lookup", "1 1 1 lookup")
    root = stack_diff.compared(_profile("1 7 1 access", "1 90 2 lookup"), inlined)
    assert root.children["lookup"].whole == [90.0, 71.0]
    assert root.children["access"].whole == [7.0, 9.0]
    anew = _profile("1 7 1 access", "2 70 1 lookup", "1 90 1 lookup")  # one call more, and none of the others less
    root = stack_diff.compared(_profile("1 7 1 access", "1 90 1 lookup"), anew)
    assert root.children["lookup"].whole == [90.0, 90.0]
    assert root.children["access"].whole == [7.0, 77.0]


def test_below_whom_an_interrupt_came_parts_no_calls() -> None:
    """One that came in a function of one kernel alone, and in its caller on the other: what it called was beside it."""
    tick = "asm_sysvec_apic_timer_interrupt"
    before = _profile("1 5 1 fork", "2 40 1 down_write", f"2 3 1 {tick}", "3 9 1 rb_erase", "2 1 1 error_return")
    after = _profile(
        "1 5 1 fork",
        "2 7 2 vma_start_write",
        "3 30 2 exclude_readers",
        f"4 3 1 {tick}",
        "5 9 1 rb_erase",
        "5 1 1 el1h_64_irq",
        "3 1 1 error_return",
    )
    root = stack_diff.compared(before, after)
    fork = root.children["fork"].children
    assert {name: child.whole for name, child in fork.items()} == {
        "down_write": [40.0, 0.0],
        "vma_start_write": [0.0, 37.0],
    }
    assert root.children[tick].whole == [12.0, 12.0] and root.children["el1h_64_irq"].whole == [0.0, 1.0]
    assert root.whole == [58.0, 56.0]


def test_callers_and_callees_hold_what_each_cost_recursion_once() -> None:
    one = _profile("1 1 1 a", "2 5 1 f", "3 7 1 f", "4 2 1 g", "1 3 1 b", "2 11 1 f")
    root = stack_diff.compared(one, one)
    callers, callees = stack_diff.neighbours(root, "f")
    assert callers == {"a": [14.0, 14.0], "b": [11.0, 11.0]}
    assert callees == {"g": [2.0, 2.0]}


def test_a_frame_is_coloured_by_its_change_and_found_by_its_name() -> None:
    root = stack_diff.compared(OLD, NEW)
    text, narrow = flame.markup([root], lambda path: f"?at={';'.join(path)}&q=<", "MEMS")
    image = ET.fromstring(text)
    boxes = {link.get("href"): link.find("rect") for link in image.iter("a")}
    states = {href: box.get("class") for href, box in boxes.items() if href and box is not None}
    assert states["?at=access;do_get<name;memset&q=<"] == "frame down found"
    assert states["?at=access;lookup&q=<"] == "frame even"
    titles = [title.text or "" for title in image.iter("title")]
    assert any(title.startswith("do_get<name (before: getname): 58 to 8") for title in titles)
    assert narrow == 0
    enlarged = ET.fromstring(flame.markup(stack_diff.at(root, ["access", "lookup", "nowhere"]), None)[0])
    assert [float(box.get("width", 0)) for box in enlarged.iter("rect")] == [flame.WIDTH] * 3
    assert not list(enlarged.iter("a"))


def test_a_search_says_what_it_found_also_by_the_former_name_and_what_that_costs() -> None:
    root = stack_diff.compared(OLD, NEW)
    assert "frame down found" in flame.markup([root], None, "getname")[0]
    assert flame.searched(root, "getname") == (
        "1 frame with getname in the name: with all that was called there 58 to 8 instructions per operation, -50."
    )
    assert flame.searched(root, "e").startswith(
        "4 frames with e in the name: with all that was called there 102 to 50 "
    )
    assert flame.searched(root, "nosuch") == "No frame here has nosuch in its name."
    assert flame.searched(root, "") == ""


def test_frames_are_drawn_from_the_left_and_all_that_are_too_narrow_are_counted() -> None:
    wide = _profile("1 0 1 a", "2 9000 1 b", "1 0 1 c", "2 9000 1 d", "1 1 1 e", "2 1 1 f", "3 1 1 g")
    root = stack_diff.compared(wide, wide)
    text, narrow = flame.markup([root], lambda path: ";".join(path) or "all")
    assert [link.get("href") for link in ET.fromstring(text).iter("a")] == ["all", "a", "a;b", "c", "c;d"]
    assert narrow == 3
    assert flame.searched(root, "f").startswith("1 frame with f in the name, 1 of them too narrow to be drawn: ")
