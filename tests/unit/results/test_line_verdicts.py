# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on single cache lines: a lock that is left alone is told where all transfers stay the same."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import exact_metrics
from kdelta.model import Case, Definition, MachineOptions, MovedLine, Profile, RunResult, Series, plans
from kdelta.report import functions, json_, mail, view
from kdelta.results import answer, line_verdicts
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment, kernel

VECTOR = (100, 0, 0, 0, 0, 0, 0)
OPS = 100
SEEDS = 12

Sides = Callable[[random.Random, int], dict[str, float]]  # of a side: transfers per operation by line


def _profile(lines: dict[str, float]) -> Profile:
    moved = tuple(MovedLine(name=name, reads=0, writes=round(OPS * level)) for name, level in lines.items())
    return Profile(ops=OPS, functions={"do_exit": VECTOR}, total=VECTOR, moved=moved)


def _run(lines: dict[str, float]) -> RunResult:
    profile = _profile(lines)
    total = sum(line.transfers for line in profile.moved) / OPS
    figures = {"instructions": 50.0, "transfers": total, "waits": 0.5}
    series = tuple(Series(metric=m, unit=f"{m}/op", better="lower", values=(v,)) for m, v in figures.items())
    return RunResult(case=0, state="ok", series=series, profile=profile)


def _store(folder: Path, side: Sides, seeds: int = SEEDS, seed: int = 1) -> Store:
    store = Store(f"sqlite:///{folder / 'store.sqlite'}")
    made = experiment(
        "e1",
        mode="exact",
        plan=plans.Compare(),
        kernels=(kernel("old"), kernel("new")),
        cases=(Case(workload="spawn", label="spawn"),),
        blocks=seeds,
        looks=(5, 8, 12),
        machine=MachineOptions(smp=8),
        definitions={"spawn": Definition(metrics=exact_metrics(cpus=8), moved_floor_percent=5.0)},
    )
    store.create(made)
    chance = random.Random(seed)
    for block in range(seeds):
        for kernel_index in (0, 1):
            run = _run(side(chance, kernel_index))
            store.save_boot(made.id, boot(block, kernel_index, kernel_index=kernel_index, runs=(run,)))
    return store


def _lock_falls(chance: random.Random, side: int) -> dict[str, float]:
    """Ten lines that vary a little, one of which moves a fifth as often on the second kernel."""
    rest = {f"line{n}": 10.0 * chance.uniform(0.98, 1.02) for n in range(10)}
    return {"tasklist_lock": (3.0, 0.6)[side] * chance.uniform(0.9, 1.1), "rare": 0.1 + 0.1 * side, **rest}


def test_a_lock_that_moves_less_is_told_where_all_transfers_are_the_same(tmp_path: Path) -> None:
    with _store(tmp_path, _lock_falls) as store:
        result, detail = answer.result(store, "e1")
    total = next(row for row in result.results if row.metric == "transfers")
    assert total.verdict == "same", "2.4 of 103 transfers are within the floor"
    (line,) = result.counts
    assert (line.metric, line.verdict) == ("transfers of tasklist_lock", "improved")
    assert line.interval_percent is not None and line.interval_percent[1] < -70
    rows = {row.line: row for row in detail.moved[0].rows}
    assert rows["tasklist_lock"].verdict == "improved" and rows["line3"].verdict == "same"
    assert rows["rare"].verdict == "", "it doubled, and is a thousandth of all: not judged"
    text = str(mail.FORMAT.render(view.build(result, detail)))
    assert "transfers of tasklist_lock" in text and "-80" in text
    assert " moves about as many cache lines between CPUs. " in " ".join(text.split())
    told = " ".join(text.split()).partition("Of single lines ")[2]
    assert told.startswith("tasklist_lock moves less often: "), told[:99]
    before, after = (_profile(line) for line in ({"tasklist_lock": 3.0}, {"tasklist_lock": 0.6}))
    why = functions.render(result.results[0], before, after, detail, everything=False)
    assert why.startswith("spawn: old -> new: instructions: "), "lines below it moved"
    assert "over all seeds: tasklist_lock -79.98 % [" in why and "] improved; same: line" in " ".join(why.split())
    document = json.loads(json_.FORMAT.render(view.build(result, detail)))
    told = next(row for row in document["lines"][0]["rows"] if row["line"] == "tasklist_lock")
    assert told["verdict"] == "improved" and told["interval_percent"][1] < -70


def test_lines_have_no_verdict_where_the_program_makes_other_calls(tmp_path: Path) -> None:
    """Of a program that called five times as often by chance, the lines of those calls "move more often"."""

    def calls(chance: random.Random, side: int) -> dict[str, float]:
        return {"tasklist_lock": (2.0, 10.0)[side] + 0.1 * chance.random(), "line": 9.0}

    def counted(run: RunResult, side: int, block: int) -> RunResult:
        made = (20, 100)[side] + (side and block % 2)
        instructions = replace(run.series[0], values=(50.0 * made / 20,))
        spent = (50 * made * OPS // 20, 0, 0, 0, 0, 0, 0)
        assert run.profile is not None
        profile = replace(run.profile, functions={"do_exit": spent}, total=spent, called={"access": made})
        return replace(run, series=(instructions, *run.series[1:]), profile=profile)

    with _store(tmp_path, calls, seeds=0) as store:
        chance = random.Random(1)
        for block in range(SEEDS):
            for side in (0, 1):
                run = counted(_run(calls(chance, side)), side, block)
                store.save_boot("e1", boot(block, side, kernel_index=side, runs=(run,)))
        assert line_verdicts.changed(line_verdicts.of(store.experiment("e1"), store)), "by themselves they have one"
        result, detail = answer.result(store, "e1")
    assert {row.verdict for row in result.results if row.metric in ("instructions", "transfers")} == {"inconclusive"}
    assert result.counts == ()
    assert "improved" not in str(detail.moved) and "regressed" not in str(detail.moved)


def _noise(chance: random.Random, side: int) -> dict[str, float]:
    """Lines that vary by a fifth, whichever the side."""
    return {f"line{n}": (9 + 0 * side) * chance.lognormvariate(0, 0.2) for n in range(12)}


def test_lines_of_a_kernel_against_itself_are_not_called(tmp_path: Path) -> None:
    called = 0
    for trial in range(10):
        folder = tmp_path / str(trial)
        folder.mkdir()
        with _store(folder, _noise, seed=trial) as store:
            called += len(line_verdicts.changed(line_verdicts.of(store.experiment("e1"), store)))
    assert called <= 1, "120 comparisons of lines that vary by a fifth"


def test_one_kernel_or_one_cpu_has_no_verdicts_on_lines(tmp_path: Path) -> None:
    with _store(tmp_path, _lock_falls, seeds=5) as store:
        made = store.experiment("e1")
        assert len(line_verdicts.of(made, store)) == 11
        assert line_verdicts.of(replace(made, machine=MachineOptions(smp=1)), store) == ()
        assert line_verdicts.of(replace(made, kernels=made.kernels[:1]), store) == ()


def test_the_lines_that_are_judged_are_the_hottest_whatever_changed() -> None:
    before = {0: {f"l{n}": 100.0 - n for n in range(20)}}
    after = {0: {f"l{n}": (100.0 - n) * (0.1 if n == 19 else 1) for n in range(20)}}
    found = line_verdicts.hottest(before, after, 20.0)
    assert list(found) == [f"l{n}" for n in range(line_verdicts.JUDGED)], "not l19, which changed most"
    assert line_verdicts.hottest({0: {"big": 1000.0, "small": 20.0}}, {}, 20.0)["small"] > 50, (
        "a hundredth of all is its floor"
    )


def test_floors_of_lines_are_the_same_bytes_whatever_the_order_of_lines() -> None:
    """One report had a floor of 10.106433677521839 or ...842 %, as a set of names came to be in this order or that."""
    found = line_verdicts.hottest({0: {f"l{n}": 0.1 for n in range(10)}}, {}, 1.0)
    assert set(found.values()) == {100.0 * (line_verdicts.PART * 1.0) / 0.1}, "not of 0.9999999999999999 transfers"


def test_memory_whose_functions_were_renamed_is_neither_gone_nor_new(tmp_path: Path) -> None:
    """From 6.12 to 7.0 pipe_read became anon_pipe_read: of one line there was an improvement and a regression."""
    names = ("memory: pipe_read, pipe_write", "memory: anon_pipe_read, anon_pipe_write")

    def side(chance: random.Random, which: int) -> dict[str, float]:
        return {names[which]: 28.75, "memory: copy": 9.0 + chance.random() / 10, "file.f_count": 5.0 * (1 - which)}

    with _store(tmp_path, side) as store:
        rows = {line_verdicts.line_of(row.metric): row for row in line_verdicts.of(store.experiment("e1"), store)}
    assert names[1] not in rows
    assert (rows[names[0]].verdict, rows[names[0]].baseline, rows[names[0]].patched) == ("same", 28.75, 28.75)
    assert rows["file.f_count"].verdict == "improved", "what has a name of its own is gone"
    assert line_verdicts.renamed({0: {names[0]: 28.75}}, {0: {names[1]: 31.0}}) == {}, "it moves more often"
    assert line_verdicts.renamed({0: {names[0]: 28.75}}, {0: {names[1]: 28.7, names[0]: 1.0}}) == {}


def test_a_number_alone_does_not_tell_which_memory_it_is() -> None:
    """Of a futex between two CPUs the memory of a waiter moves half as often in 7.0: it "moved no longer" (-100 %).

    What is left of it had as many transfers as the hash bucket, which has a name in 7.0. Of a pipe 12 transfers came
    to 8, and one of three memories was told as -50 %.
    """
    waiter, bucket = "memory: __futex_wait, futex_wait_queue", "memory: futex_wake"
    old, new = line_verdicts.alike({0: {waiter: 7.97, bucket: 3.97}}, {0: {"memory: __futex_wait, plist_del": 3.98}})
    assert old == {0: {waiter: pytest.approx(11.94)}} and new == {0: {waiter: 3.98}}
    woken = "memory: __wake_up_common, prepare_to_wait_event"
    before = {woken: 7.97, "memory: __wake_up_common, pipe_read": 3.99}
    after = {"memory: __wake_up_common, autoremove_wake_function": 3.98, "memory: finish_wait, rw_verify_area": 3.97}
    old, new = line_verdicts.alike({0: before}, {0: after})
    assert old == {0: {woken: pytest.approx(11.96)}} and new == {0: {woken: pytest.approx(7.95)}}


def test_memory_that_goes_by_other_functions_in_other_parts_is_neither_gone_nor_new(tmp_path: Path) -> None:
    """From 6.1 to 7.3 the pages of a pipe were -100 % of one name and new by two: 1,113 transfers, then 1,152."""
    parts = (
        {"memory: copy_user_generic_string": 1035.0, "memory: copy_user_generic_string, get_page_from_freelist": 78.0},
        {
            "memory: _copy_to_iter": 770.0,
            "memory: _copy_from_iter, _copy_to_iter": 339.0,
            "memory: _copy_to_iter, x": 43.0,
        },
    )

    def side(chance: random.Random, which: int) -> dict[str, float]:
        return {name: level * chance.uniform(0.98, 1.02) for name, level in parts[which].items()}

    with _store(tmp_path, side) as store:
        (row,) = line_verdicts.of(store.experiment("e1"), store)
    assert line_verdicts.line_of(row.metric) == "memory: copy_user_generic_string"
    assert row.verdict == "same" and row.baseline is not None and abs(row.baseline - 1113) < 10

    def gone(chance: random.Random, which: int) -> dict[str, float]:
        return {"memory: copy": 500 * chance.uniform(0.98, 1.02)} if not which else {"file.f_count": 3.0}

    (folder := tmp_path / "gone").mkdir()
    with _store(folder, gone) as store:
        rows = {line_verdicts.line_of(row.metric): row for row in line_verdicts.of(store.experiment("e1"), store)}
    assert rows["memory: copy"].verdict == "improved", "the other kernel has no memory of which names differ"


def test_memory_that_went_to_another_name_is_neither_more_nor_less(tmp_path: Path) -> None:
    """From 6.12 to 7.0 "_copy_from_iter, _copy_to_iter" doubled, half of which "_copy_to_iter" alone had lost."""
    both, one = "memory: _copy_from_iter, _copy_to_iter", "memory: _copy_to_iter"
    parts = ({both: 127.0, one: 960.0}, {both: 254.0, one: 896.0})

    def side(chance: random.Random, which: int) -> dict[str, float]:
        return {name: level * chance.uniform(0.99, 1.01) for name, level in parts[which].items()}

    with _store(tmp_path, side) as store:
        (row,) = line_verdicts.of(store.experiment("e1"), store)
    assert line_verdicts.line_of(row.metric) == one and row.verdict == "same"
    grew, fell = ({0: {both: 127.0, one: 960.0}}, {0: {both: 254.0, one: 950.0}})
    assert line_verdicts.alike(grew, fell) == (grew, fell), "the other lost much less than this got"
    apart = ({0: {"memory: a, b": 127.0, one: 960.0}}, {0: {"memory: a, b": 254.0, one: 896.0}})
    assert line_verdicts.alike(*apart) == apart, "other functions, other memory"
