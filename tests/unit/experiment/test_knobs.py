# SPDX-License-Identifier: GPL-2.0-or-later
"""Which knobs are chosen for instructions that the chosen cases do not run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.experiment import knobs
from kdelta.experiment.reach import Setup
from kdelta.model import Case, Kernel, Quiet
from kdelta.spec.workloads import catalogue

KNOWN = catalogue()
MISSING = {("write", at): "write" for at in range(8)} | {("fast", at): "fast" for at in range(4)}
NONE = range(0)


def case(name: str) -> Case:
    return Case(workload="pipe", label=name)


class Counting:
    """What each case runs, by offsets of two functions, and which cases were counted."""

    def __init__(self, **runs: tuple[range, range]) -> None:
        self.runs = runs
        self.counted: list[list[str]] = []

    def __call__(self, kernel: Kernel, cases: Sequence[Case]) -> Mapping[str, frozenset[knobs.Place] | None]:
        self.counted.append([kernel.label, *(one.name for one in cases)])
        return {one.name: self.places(kernel.label, one.name) for one in cases}

    def places(self, kernel: str, name: str) -> frozenset[knobs.Place] | None:
        if name in ("both fail", "fails") and (kernel == "new" or name == "both fail"):
            return None
        both = zip(("write", "fast"), self.runs.get(name, (NONE, NONE)), strict=True)
        return frozenset((function, at) for function, side in both for at in side)


def kernel(label: str) -> Kernel:
    return Kernel(label=label, spec="src:x", release="6.12", image_path="x", image_sha256="0")


KERNELS = (kernel("old"), kernel("new"))


def chosen(counting: Counting, *turned: str) -> list[tuple[str, tuple[str, ...]]]:
    found = knobs.chosen(KERNELS, MISSING, [case("plain")], {"plain": [case(name) for name in turned]}, counting)
    return [(one.case.name, one.functions) for one in found]


def test_the_knob_that_runs_most_of_what_is_left_comes_first_and_one_that_adds_nothing_is_not_taken() -> None:
    counting = Counting(plain=(range(2), NONE), a=(range(4), NONE), b=(range(6), range(4)), c=(range(3, 8), NONE))
    assert chosen(counting, "a", "b", "c") == [("b", ("fast", "write")), ("c", ("write",))]
    assert counting.counted == [["new", "plain"], ["new", "a", "b", "c"]]


def test_where_all_that_differs_runs_no_knob_is_tried() -> None:
    counting = Counting(plain=(range(8), range(4)), a=(range(8), range(4)))
    assert chosen(counting, "a") == [] and counting.counted == [["new", "plain"]]


def test_knobs_of_a_case_that_executes_no_changed_function_are_not_tried() -> None:
    counting = Counting(plain=(NONE, NONE), a=(range(8), NONE))
    assert chosen(counting, "a") == [] and counting.counted == [["new", "plain"]]


def test_a_single_instruction_may_be_an_interrupts_chance() -> None:
    assert chosen(Counting(plain=(range(2), NONE), a=(range(3), NONE)), "a") == []


def test_a_knob_that_the_patched_kernel_alone_does_not_come_through_comes_first() -> None:
    counting = Counting(plain=(range(2), NONE), a=(range(8), NONE))
    assert chosen(counting, "both fail", "a", "fails") == [("fails", ()), ("a", ("write",))]
    assert counting.counted[2:] == [["old", "both fail", "fails"]]


def test_no_more_cases_are_added_than_a_reader_follows() -> None:
    runs = {name: (range(2 * at, 2 * at + 2), NONE) for at, name in enumerate("abcd")}
    counting = Counting(plain=(NONE, range(1)), **runs)
    assert [name for name, _ in chosen(counting, *"abcd")] == ["a", "b", "c"]


def test_a_case_that_takes_another_way_is_tried_like_a_knob_and_told_apart() -> None:
    """A cost in fdget() of shared tables alone: twelve cases of one task were "the same", pipe has threads."""
    counting = Counting(plain=(range(2), NONE), a=(range(4), NONE), other=(range(8), NONE))
    asked: list[list[str]] = []

    def others(names: Collection[str]) -> list[Case]:
        asked.append(sorted(names))
        return [case("other"), case("a")]

    found = knobs.chosen(KERNELS, MISSING, [case("plain")], {"plain": [case("a")]}, counting, others=others)
    assert [(one.case.name, one.functions, one.other) for one in found] == [("other", ("write",), True)]
    assert counting.counted == [["new", "plain"], ["new", "a", "other"]] and asked == [["fast", "write"]]
    everything = Counting(plain=(range(8), range(4)))
    assert knobs.chosen(KERNELS, MISSING, [case("plain")], {"plain": []}, everything, others=others) == ()
    assert len(asked) == 1  # where all of it runs, no other is asked for


def test_a_kernel_that_cannot_be_looked_at_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring it goes on, or says what is wrong."""

    notes: list[str] = []

    class Noting(Quiet):
        def note(self, text: str) -> None:
            notes.append(text)

    def refuse(*_: object) -> None:
        raise UserError("no machine code")

    monkeypatch.setattr(knobs, "differing", refuse)
    (pipe,) = [KNOWN["pipe"].case({})]
    assert knobs.search(KERNELS, (), [pipe], Setup(workloads=KNOWN), Noting(), lambda: False) == ()
    assert notes == ["knobs were not tried: no machine code"]


def test_no_knob_is_tried_that_needs_what_the_kernels_are_not_known_to_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a case on ext4 those on xfs, btrfs and f2fs were tried, failed, and stood for what the patch broke."""
    given: list[Mapping[str, Sequence[Case]]] = []

    def taken(_: object, __: object, ___: object, turned: Mapping[str, Sequence[Case]], *____: object) -> tuple[()]:
        given.append(turned)
        return ()

    monkeypatch.setattr(knobs, "differing", lambda *_: {("f", 0): "f"})
    monkeypatch.setattr(knobs, "chosen", taken)
    files = KNOWN["files"].case({"on": "ext4"})
    config = {"BLK_DEV_RAM": "y", "EXT4_FS": "y"}
    kernels = [replace(kernel, config=config) for kernel in KERNELS]
    knobs.search(kernels, (), [files], Setup(workloads=KNOWN), Quiet(), lambda: False)
    on = {one.params["on"] for one in given[0][files.name]}
    assert on == {"ext4", "tmpfs"}
