# SPDX-License-Identifier: GPL-2.0-or-later
"""What crosses between CPUs over their number: read from the store, the lines that grow, turns that disagree."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import exact_metrics
from kdelta.model import Case, Definition, MachineOptions, MovedLine, Profile, RunResult, Series, plans
from kdelta.report import crossing as layout
from kdelta.report import crossing_page
from kdelta.results import crossing
from kdelta.results.crossing import Step
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment, kernel

VECTOR = (100, 0, 0, 0, 0, 0, 0)


def _run(transfers: int) -> RunResult:
    figures = {"instructions": 50.0, "transfers": transfers / 2, "waits": 0.5}
    assert set(figures) == set(crossing.SHOWN)
    series = tuple(Series(metric=m, unit=f"{m}/op", better="lower", values=(v,)) for m, v in figures.items())
    moved = (
        MovedLine(name="dentry.d_lockref", reads=0, writes=transfers - 2),
        MovedLine(name="jiffies", reads=2, writes=0),
    )
    functions: dict[str, tuple[int, ...]] = {
        "do_dentry_open": (90, *VECTOR[1:]),
        "queued_write_lock_slowpath": (10, *VECTOR[1:]),
    }
    profile = Profile(ops=2, functions=functions, total=VECTOR, moved=moved)
    return RunResult(case=0, state="ok", series=series, profile=profile)


def _store(folder: Path) -> Store:
    """Two experiments of two kernels: on 2 CPUs with 6 and 10 transfers, on 4 with 8 and 30."""
    store = Store(f"sqlite:///{folder / 'store.sqlite'}")
    for cpus, counts in ((2, (6, 10)), (4, (8, 30))):
        made = experiment(
            f"on{cpus}",
            mode="exact",
            plan=plans.Compare(),
            kernels=(kernel("old"), kernel("new")),
            cases=(Case(workload="open", params={"tasks": str(cpus)}, label=f"open:tasks={cpus},mode=threads"),),
            blocks=5,
            machine=MachineOptions(smp=cpus),
            definitions={"open": Definition(metrics=exact_metrics(cpus=cpus))},
        )
        store.create(made)
        for seed in range(5):
            for side, count in enumerate(counts):
                store.save_boot(made.id, boot(seed, side, kernel_index=side, runs=(_run(count),)))
    return store


def test_the_figures_of_each_number_of_cpus_are_those_of_its_experiment(tmp_path: Path) -> None:
    with _store(tmp_path) as store:
        found = crossing.steps(store, ("on2", "on4"))
    assert [(s.case, s.kernel, s.cpus, s.figures["transfers"]) for s in found] == [
        ("open:mode=threads", "old", 2, 3.0),
        ("open:mode=threads", "old", 4, 4.0),
        ("open:mode=threads", "new", 2, 5.0),
        ("open:mode=threads", "new", 4, 15.0),
    ]
    assert {s.waiting for s in found} == {5.0} and found[0].figures["waits"] == 0.5
    assert not found[0].verdicts and found[3].verdicts["transfers"] == "regressed"
    assert [(g.kernel, g.line, g.transfers) for g in crossing.growing(found)] == [
        ("old", "dentry.d_lockref", (2.0, 3.0)),
        ("new", "dentry.d_lockref", (4.0, 14.0)),
    ]
    text = "\n".join(layout.text(found, crossing.growing(found), ()))
    assert "open:mode=threads: new, per operation" in text
    assert "transfers regressed (+275.0 %)" in text
    assert "dentry.d_lockref" in text and "turn ns" not in text
    assert "  CPUs     transfers         waits  instructions   waiting" in text


def test_the_picture_has_a_curve_for_each_kernel_and_each_line_that_grows(tmp_path: Path) -> None:
    with _store(tmp_path) as store:
        found = crossing.steps(store, ("on2", "on4"))
    grows = crossing.growing(found)
    drawn = {figure.title: figure for figure in crossing_page.figures(found, grows)}
    transfers = drawn["open:mode=threads: transfers per operation"]
    assert transfers.series == ("old", "new")
    assert transfers.rows == (("2", "3", "5"), ("4", "4", "15"))
    assert transfers.markup.count("<circle") == 4
    assert drawn["open:mode=threads: lines that grow, new"].rows == (("2", "4"), ("4", "14"))
    page = crossing_page.render("old & <new>", "text <b>", found, grows)
    assert "old &amp; &lt;new&gt;" in page and "text &lt;b&gt;" in page and "<script" not in page
    assert "Nothing was measured" in crossing_page.render("t", "", (), ())


def test_of_several_lengths_of_turns_the_first_is_drawn() -> None:
    pair = (STEP, replace(STEP, turn_ns=800, figures={"transfers": 99.0}))
    (figure,) = crossing_page.figures(pair, ())
    assert figure.rows == (("4", "50"),)


STEP = Step(kernel="k", case="c", cpus=4, turn_ns=200, figures={"transfers": 50.0})


@pytest.mark.parametrize(("other", "spread", "agree"), [(52.0, 0.0, True), (60.0, 0.0, False), (60.0, 0.2, True)])
def test_lengths_of_turns_agree_within_what_seeds_differ_by(other: float, spread: float, agree: bool) -> None:
    pair = (replace(STEP, spread=spread), replace(STEP, turn_ns=800, figures={"transfers": other}))
    apart = crossing.disagreeing(pair)
    assert (apart == ()) == agree
    text = layout.text(pair, (), apart)
    assert ("All lengths of turns agree on the transfers." in text) == agree
    if not agree:
        assert "c on 4 CPUs, k: transfers depend on the length of turns (200 ns: 50.00, 800 ns: 60.00)" in text


def test_a_number_of_cpus_without_figures_says_why() -> None:
    lost = Step(kernel="k", case="c", cpus=8, turn_ns=200, why="hung: silent")
    assert "     8  hung: silent" in layout.text((STEP, lost), (), ())
