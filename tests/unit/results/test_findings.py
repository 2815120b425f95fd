# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings: the largest steps of stored sweeps, each told once."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel.rewrites import Rewrite
from kdelta.model import Annotations, FunctionDelta, Word
from kdelta.report import findings as report
from kdelta.report import rewritten
from kdelta.results.findings import Swept, largest, swept, with_changes, with_rewrites
from kdelta.results.types import CellName, Sweep, SweepPoint, SweepStep
from kdelta.results.warnings import StepDetectable
from kdelta.store.store import Store
from unit.kernel.git_history import kernel_history
from unit.kernel.source_texts import Texts
from unit.store.store_builders import experiment, kernel

LABELS = ("6.1", "6.12", "7.0", "7.1")


def _step(place: int, effect: float, function: str, verdict: Word = "regressed") -> SweepStep:
    delta = FunctionDelta(function=function, baseline=0, patched=1, delta=1.0)
    return SweepStep(
        last=LABELS[place], first=LABELS[place + 1], baseline=100, patched=100 + effect, effect_percent=effect,
        verdict=verdict, because=(delta,),
    )  # fmt: skip


def _swept(ident: str, compilers: tuple[str, ...] = (), /, **cases: tuple[SweepStep, ...]) -> Swept:
    kernels = tuple(replace(kernel(label), image_sha256=label * 8) for label in LABELS)
    sweeps = tuple(
        Sweep(
            cell=CellName(case=case, metric="instructions", cgroup="root", mitigations="default"),
            unit="count", better="lower", points=(), steps=steps,
        )
        for case, steps in cases.items()
    )  # fmt: skip
    made = replace(experiment(ident), kernels=kernels, mode="exact", annotations=Annotations(compilers=compilers))
    return Swept(experiment=made, sweeps=sweeps)


def _told(*swept: Swept, most: int = 20) -> list[tuple[str, str, float]]:
    return [(f.experiment, f.cell.case, f.step.effect_percent) for f in largest(swept, most)]


def test_the_largest_change_comes_first_whichever_way_it_goes() -> None:
    one = _swept("a", read=(_step(0, 50.0, "x"), _step(1, -45.0, "y", "improved")), pipe=(_step(2, 3.0, "z"),))
    assert _told(one) == [("a", "read", -45.0), ("a", "read", 50.0), ("a", "pipe", 3.0)]
    assert _told(one, most=1) == [("a", "read", -45.0)]


def test_a_step_that_two_sweeps_show_is_told_once() -> None:
    new, old = _swept("new", read=(_step(0, 50.0, "x"),)), _swept("old", read=(_step(0, 49.0, "x"),))
    assert _told(new, old) == [("new", "read", 50.0)]


def test_a_step_that_a_newer_sweep_of_the_same_images_does_not_show_is_no_finding() -> None:
    old = _swept("old", read=(_step(0, 49.0, "x"), _step(1, 30.0, "y")))
    (sweep,) = _swept("new", read=()).sweeps
    points = (SweepPoint(kernel="6.1", value=100.0), SweepPoint(kernel="6.12", value=100.0))
    new = replace(_swept("new", read=()), sweeps=(replace(sweep, points=points),))
    assert _told(new, old) == [("old", "read", 30.0)]
    undecided = replace(points[1], unseen=StepDetectable(5.0))
    told = replace(new, sweeps=(replace(sweep, points=(points[0], undecided)),))
    assert [percent for _, _, percent in _told(told, old)] == [49.0, 30.0]


def test_cases_led_by_the_same_function_are_one_finding_unless_far_smaller() -> None:
    one = _swept("a", read=(_step(0, 50.0, "x"),), write=(_step(0, 40.0, "x"),), pipe=(_step(0, 2.0, "x"),))
    found = largest([one], 20)
    assert [(f.cell.case, [(cell.case, effect) for cell, effect in f.alike]) for f in found] == [
        ("read", [("write", 40.0)]),
        ("pipe", []),
    ]


def test_a_timer_that_one_side_alone_waits_for_does_not_lead() -> None:
    slept = [
        FunctionDelta(function=name, baseline=200, patched=0, delta=-200.0) for name in ("__schedule", "do_nanosleep")
    ]
    step = replace(_step(0, -80.0, "x", "improved"), because=tuple(slept))
    woken = replace(_step(1, -70.0, "x", "improved"), because=(slept[0],))  # fewer waits of another kind are a saving
    one = _swept("a", nanosleep=(step,), pipe=(woken,), read=(_step(0, 3.0, "y"),))
    assert [case for _, case, _ in _told(one)] == ["pipe", "read", "nanosleep"]
    page = report.markdown(largest([one], 20), [one])
    assert page.index("read: 6.1") < page.index("nanosleep: 6.1") < page.index("wait for a timer on one")


def test_a_tick_that_one_side_alone_stops_does_not_lead() -> None:
    stopped = FunctionDelta(function="tick_nohz_stop_tick", baseline=0, patched=90, delta=90.0)
    one = _swept("a", futex=(replace(_step(0, 80.0, "x"), because=(stopped,)),), read=(_step(0, 3.0, "y"),))
    assert [case for _, case, _ in _told(one)] == ["read", "futex"]
    page = report.markdown(largest([one], 20), [one])
    assert page.index("futex: 6.1") < page.index("stops its timer tick on one of the two alone")


def test_a_step_counts_by_the_smaller_account_of_string_instructions() -> None:
    """A loop in the place of one REP MOVS is 90 % more instructions, and hardly more work."""
    loop = replace(_step(0, 90.0, "memcpy"), effect_rep8_percent=4.0)
    one = _swept("a", write=(loop,), read=(_step(1, 20.0, "y"),))
    assert [case for _, case, _ in _told(one)] == ["read", "write"]


def test_a_step_counts_by_what_it_is_at_the_same_calls_and_says_so() -> None:
    """fallocate1 was +21.0 % on 6.16 and is +13.2 % at the same number of ftruncate(2)."""
    more = replace(_step(0, 21.0, "shmem"), effect_same_calls_percent=13.2)
    one = _swept("a", fallocate=(more,), read=(_step(1, 15.0, "y"),))
    assert [case for _, case, _ in _told(one)] == ["read", "fallocate"]
    read, fallocate = largest([one], 20)
    assert report.strings(fallocate) == "with as many system calls as before the change is +13.20 %"
    assert report.strings(read) == ""


def test_what_string_instructions_moved_is_told_where_the_change_hangs_on_it() -> None:
    points = tuple(
        SweepPoint(kernel=label, value=1.0, rep_bytes=moved) for label, moved in (("6.1", 65536.0), ("6.12", 0.0))
    )
    loop = replace(_step(0, 90.0, "memcpy"), effect_rep8_percent=4.0)
    one = _swept("a", write=(loop,))
    (sweep,) = one.sweeps
    (found,) = largest([replace(one, sweeps=(replace(sweep, points=points),))], 20)
    assert report.strings(found).startswith("REP bytes 64.00 KiB before, 0 B from here on; with one instruction")
    assert report.strings(found).endswith("the change is +4.00 %")
    assert report.strings(replace(found, step=replace(loop, effect_rep8_percent=89.0))) == ""
    assert report.strings(largest([one], 20)[0]) == ""


def test_a_function_that_ran_on_one_side_alone_is_no_diff() -> None:
    """It is there in both: what calls it changed, and a change within it explains nothing."""
    body = "int vfs_read(int a)\n{\n\tcheck(a);\n}\n"
    sources = {"6.1": Texts({"a.c": body}), "6.12": Texts({"a.c": body.replace("(a);", "(a, 2);")})}
    step = _step(0, 50.0, "vfs_read")
    for note, became in (("new", "both"), ("", "changed")):
        told = replace(step, because=(replace(step.because[0], note=note),))
        (found,) = with_rewrites(largest([_swept("a", read=(told,))], 20), lambda kernel: sources[kernel.release])
        assert [(one.became, bool(one.diff)) for one in found.rewrites] == [(became, became == "changed")]


def test_a_diff_stands_once_on_a_page() -> None:
    body = "int vfs_read(int a)\n{\n\tcheck(a);\n}\n"
    sources = {"6.1": Texts({"a.c": body}), "6.12": Texts({"a.c": body.replace("(a);", "(a, 2);")})}
    cases = {"read": (_step(0, 50.0, "vfs_read"),), "write": (_step(0, 9.0, "vfs_read"),)}
    found = with_rewrites(largest([_swept("a", **cases)], 20), lambda kernel: sources[kernel.release])
    page = report.markdown(found, [])
    assert page.count("check(a, 2)") == 1 and page.count("1 line out, 1 in, as above") == 1


def test_commits_behind_a_finding_are_told_where_a_tree_has_its_releases(tmp_path: Path) -> None:
    tree = kernel_history(tmp_path / "linux")
    found = largest([_swept("a", read=(_step(0, 50.0, "vfs_read"), _step(1, 40.0, "vfs_read")))], 20)
    told: list[str] = []
    changed = with_changes(found, str(tree), told.append)
    assert [[commit.subject for commit in one.commits] for one in changed[0].changes] == [["fs: check twice"]]
    assert told == ["vfs_read, v6.1..v6.12"] and changed[1].changes == ()  # v7.0 is not in the tree
    page = report.markdown(changed, [])
    assert "vfs\\_read was changed between v6.1 and v6.12 by " in page and '("fs: check twice")' in page


def test_what_became_of_the_functions_is_told_where_both_sources_are_at_hand() -> None:
    body = "\n".join(f"\tdo_{number}();" for number in range(30))
    old = f"static int vfs_read(int a)\n{{\n\tcheck(a); /* ``` */\n{body}\n}}\n"
    new = old.replace("check(a)", 'check(a, "```")').replace("do_1", "do_x")
    sources = {"6.1": Texts({"fs/a.c": old}), "6.12": Texts({"fs/a.c": new})}
    step = _step(0, 50.0, "vfs_read")
    other = FunctionDelta(function="line", baseline=0, patched=1, delta=1.0, where="vfs_read (_raw_spin_trylock)")
    two = replace(step, because=(*step.because, other, other))
    found = largest([_swept("a", read=(two, _step(1, 40.0, "vfs_read")))], 20)
    told = with_rewrites(found, lambda kernel: sources.get(kernel.release))
    assert [[(one.function, one.became) for one in f.rewrites] for f in told] == [[("vfs_read", "changed")], []]
    page = report.markdown(told, [])
    assert "vfs\\_read changed in fs/a.c: 12 lines out, 12 in" in page
    assert "\n````diff\n {\n-        check(a);\n" in page
    block = page.partition("````diff\n")[2].partition("\n````\n")[0].split("\n")
    assert len(block) == 20
    assert f"\n{len(told[0].rewrites[0].diff) - 20} more lines not shown\n" in page


@pytest.mark.parametrize(
    ("rewrite", "text"),
    [
        (Rewrite(function="f", became="new", after="b.c"), "f is new in b.c"),
        (Rewrite(function="f", became="gone", before="a.c"), "f is gone from a.c"),
        (Rewrite(function="f", became="renamed", before="a.c", other="g"), "f of a.c is now called g"),
        (Rewrite(function="f", became="renamed", after="a.c", other="g"), "f of a.c was called g"),
        (Rewrite(function="f", became="same", before="a.c", after="a.c"), "f reads the same in both (a.c)"),
        (Rewrite(function="f", became="same", before="a.c", after="b.c"), "f reads the same in both (a.c, then b.c)"),
        (
            Rewrite(function="f", became="same", before="a.c", after="a.c", beneath=("g", "h", "i", "j", "k")),
            "f reads the same in both (a.c); changed of what it calls there: g, h, i, j, 1 more",
        ),
        (
            Rewrite(function="f", became="same", before="a.S", after="a.S", other="g", diff=("-x", "+y", "+z")),
            "f reads the same in both; g, which leads to it in a.S, changed: 1 line out, 2 in",
        ),
        (
            Rewrite(function="f", became="changed", before="a.c", after="b.c", diff=("+y",)),
            "f moved from a.c to b.c and changed: 0 lines out, 1 in",
        ),
        (Rewrite(function="f", became="both", before="a.c", after="a.c"), "f is in both (a.c): what calls it changed"),
        (
            Rewrite(function="f", became="both", before="a.c", after="a.h", inline=(False, True)),
            "f is inline from here on (a.h)",
        ),
        (
            Rewrite(function="f", became="same", before="a.h", after="a.c", inline=(True, False)),
            "f was inline before (a.h)",
        ),
    ],
)
def test_each_thing_that_becomes_of_a_function_has_its_sentence(rewrite: Rewrite, text: str) -> None:
    (told,) = rewritten.told([rewrite])
    assert told.text.startswith(text) and told.diff == rewrite.diff and told.more == 0


def test_what_goes_with_the_compiler_or_was_not_called_is_no_finding() -> None:
    there, back = _step(0, 50.0, "x"), _step(1, -33.3, "x", "improved")
    back = replace(back, baseline=150.0, patched=100.0)
    one = _swept("a", ("12", "14", "12", "12"), read=(there, back), pipe=(_step(2, 9.0, "z", "inconclusive"),))
    assert _told(one) == []
    assert _told(_swept("a", ("12", "12", "12", "12"), read=(there, back))) == [
        ("a", "read", 50.0),
        ("a", "read", -33.3),
    ]


def test_the_page_names_kernels_figures_and_functions_and_escapes_what_is_foreign() -> None:
    one = _swept("a", (), **{"read_<b>": (_step(0, 50.0, "__x64_sys_read"),)})
    text = report.markdown(largest([one], 20), [one])
    assert "## 1. read\\_\\<b\\>: 6.1 to 6.12" in text
    assert "\\+50" in text and "150" in text
    assert "\\_\\_x64\\_sys\\_read" in text
    assert "- a: 1 case, 1 step; " in text  # of two that were asked for
    assert "No sweep in the store has a step" in report.markdown([], [])


def test_guests_of_another_kind_are_told() -> None:
    one = _swept("a", read=(_step(0, 50.0, "x"),))
    assert "Experiment a\n" in report.markdown(largest([one], 20), [one])
    e = one.experiment
    arm = tuple(replace(kernel, arch="arm64") for kernel in e.kernels)
    other = replace(one, experiment=replace(e, kernels=arm, machine=replace(e.machine, smp=4)))
    assert "Experiment a, arm64, 4 CPUs\n" in report.markdown(largest([other], 20), [other])


def test_what_is_no_sweep_has_no_findings(tmp_path: Path) -> None:
    """``kdelta findings last`` of a comparison wrote an empty page."""
    with Store(f"sqlite:///{tmp_path / 'k.sqlite'}") as store:
        store.create(made := experiment())
        with pytest.raises(UserError, match=f"{made.id} is a compare, not a sweep; kdelta sweep"):
            swept(store, [made.id])
