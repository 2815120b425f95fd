# SPDX-License-Identifier: GPL-2.0-or-later
"""From changed functions to cases: the specific ones first, within a budget, and nothing is left out silently."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.attribution.changes import Change
from kdelta.attribution.reach import Reach, Row
from kdelta.attribution.selection import choose, other_ways
from unit.attribution.test_reach import row


def change(*names: str) -> list[Change]:
    return [Change(name=name, kind="code", hosts=(name,)) for name in names]


def picked(changes: list[Change], *rows: Row, budget_s: float = 100.0, cost_s: float = 1.0) -> list[str]:
    chosen = choose(changes, Reach(kernel="k", rows=rows), lambda _: cost_s, budget_s)
    return [one.case for one in chosen.picked]


def test_the_one_case_of_eighty_that_executes_a_function_is_found() -> None:
    rows = [row(f"c{i}", common=(1, 100)) for i in range(79)]
    assert picked(change("rare"), *rows, row("only", common=(1, 100), rare=(1, 5))) == ["only"]


def test_the_most_specific_case_comes_first_and_every_change_has_one() -> None:
    rows = (
        row("broad", f=(1, 1), g=(1, 1), rest=(1, 998)),
        row("of_f", f=(1, 50), rest=(1, 50)),
        row("of_g", g=(1, 30), rest=(1, 70)),
    )
    assert picked(change("f", "g"), *rows, cost_s=50.0) == ["of_f", "of_g"]
    assert picked(change("f", "g"), *rows) == ["of_f", "of_g", "broad"]  # time is left for the broad one


def test_what_the_budget_leaves_out_is_named_and_one_case_runs_always() -> None:
    rows = (row("a", f=(1, 50), rest=(1, 50)), row("b", g=(1, 40), rest=(1, 60)))
    chosen = choose(change("f", "g"), Reach(kernel="k", rows=rows), lambda _: 60.0, 70.0)
    assert [one.case for one in chosen.picked] == ["a"]
    assert [one.name for one in chosen.left_out] == ["g"]
    assert picked(change("f"), *rows, budget_s=0.1, cost_s=60.0) == ["a"]


def test_what_no_case_executes_is_named_and_a_change_counts_through_its_hosts() -> None:
    rows = (row("a", caller=(1, 5), rest=(1, 5)),)
    new = Change(name="new", kind="new", hosts=("caller",))
    lost = Change(name="lost", kind="new", hosts=())
    chosen = choose([new, lost, *change("driver")], Reach(kernel="k", rows=rows), lambda _: 1.0, 10.0)
    assert [one.changes for one in chosen.picked] == [("new",)]
    assert [one.name for one in chosen.unreached] == ["lost", "driver"]
    assert choose(change("driver"), Reach(kernel="k", rows=rows), lambda _: 1.0, 10.0).picked == ()


def test_a_given_case_comes_first_and_is_looked_at_where_it_executes_a_change() -> None:
    rows = (row("suite", f=(1, 50), rest=(1, 50)), row("mine", g=(1, 1), rest=(1, 99)))
    reach = Reach(kernel="k", rows=rows)
    chosen = choose(change("f", "g"), reach, lambda _: 1.0, 10.0, given=["mine"])
    assert [one.case for one in chosen.picked] == ["mine", "suite"] and not chosen.unreached
    chosen = choose(change("f"), reach, lambda _: 1.0, 10.0, given=["mine"])  # measured, but it looks at nothing of it
    assert [one.case for one in chosen.picked] == ["suite"]
    chosen = choose(change("f", "g"), reach, lambda _: 60.0, 100.0, given=["mine"])
    assert ([one.case for one in chosen.picked], [one.name for one in chosen.left_out]) == (["mine"], ["f"])


def test_cases_whose_counts_vary_are_no_further_ones_where_others_are() -> None:
    """stress-ng/vfork took 40 boots beside eleven cases of fork that 10 decided: "undecided in 1" was the answer."""
    rows = (row("a", f=(1, 50), rest=(1, 50)), row("b", f=(1, 20), rest=(1, 80)), row("noisy", f=(1, 40), g=(1, 60)))

    def chosen(names: str, *of: Row) -> list[str]:
        found = choose(change(*names), Reach(kernel="k", rows=of), lambda _: 1.0, 100.0, varying={"noisy", "other"})
        return [one.case for one in found.picked]

    assert chosen("f", *rows) == ["a", "b"]
    assert "noisy" in chosen("fg", *rows), "nothing else executes g"
    assert chosen("f", rows[2], row("other", f=(1, 9), rest=(1, 99))) == ["noisy", "other"]


def test_a_case_whose_counts_vary_is_not_the_first_where_another_spends_a_tenth_as_much() -> None:
    """Of 61 cases that copy names from user space stress-ng/utime alone was measured: +181.68 %."""

    def chosen(*rows: Row) -> list[str]:
        reach = Reach(kernel="k", rows=(*rows, row("utime", copy=(18, 432), rest=(1, 568))))
        found = choose(
            change("copy"), reach, lambda one: 300.0 if one.case == "utime" else 5.0, 200.0, varying={"utime"}
        )
        return [one.case for one in found.picked]

    assert chosen(row("prctl", copy=(1, 165), rest=(1, 835)), row("stat", copy=(1, 25), rest=(1, 975))) == [
        "prctl",
        "stat",
    ]
    assert chosen(row("mount", copy=(1, 4), rest=(1, 996))) == ["utime"]


def test_controls_execute_nothing_that_changed() -> None:
    rows = [row(f"c{i}", rest=(1, 10)) for i in range(9)] + [row("hit", f=(1, 1))]
    lost = Row(case="lost", state="unsupported")
    chosen = choose(change("f"), Reach(kernel="k", rows=(*rows, lost)), lambda _: 1.0, 10.0, controls=True)
    assert chosen.controls == ("c0", "c3", "c6")


def test_further_cases_that_take_another_way_through_it_come_before_those_that_take_the_same() -> None:
    """Twenty that copy a page, and one that copies a word, and spends less there: another path of the function."""
    long = [row(f"long{i:02}", copy=(1, 500 - i), rest=(1, 500)) for i in range(20)]
    short, hardly = row("short", copy=(2, 20), rest=(1, 980)), row("hardly", copy=(1, 50), rest=(1, 50_000))
    chosen = choose(change("copy"), Reach(kernel="k", rows=(*long, short, hardly)), lambda _: 1.0, 100.0)
    names = [one.case for one in chosen.picked]
    assert (names[0], names[-1], len(names)) == ("long00", "short", 12)
    assert "hardly" not in names, "a change of so small a share would not be seen"
    assert chosen.executing == 22


def test_other_ways_are_told_apart_by_single_instructions_and_the_quickest_case_stands_for_one() -> None:
    """fdget() takes 21 instructions of its own, and 18 where threads share the table, before it calls what looks."""
    rows = (
        row("chosen", fdget=(10, 210), rest=(1, 90)),
        row("same", fdget=(100, 2100), rest=(1, 90)),
        replace(row("slow", fdget=(5, 90), rest=(1, 10)), elapsed_s=9.0),
        row("threads", fdget=(5, 90), rest=(1, 90)),
        row("other", fdget=(5, 60), rest=(1, 10)),
        row("unseen", fdget=(5, 65), rest=(1, 50_000)),  # too little of it to be seen
        row("jumped", fdget=(0, 60), rest=(1, 10)),
    )
    reach = Reach(kernel="k", rows=rows)
    others = [row.case for row in rows[1:]]
    assert other_ways(reach, {"fdget"}, ["chosen"], others, 8) == ["other", "threads"]
    assert other_ways(reach, {"fdget"}, ["chosen"], others, 1) == ["other"]
    assert other_ways(reach, {"fdget"}, ["chosen"], ["same", "slow"], 8) == ["slow"]
    assert not other_ways(reach, {"g"}, ["chosen"], others, 8)
