# SPDX-License-Identifier: GPL-2.0-or-later
"""What stands beside the figures: labels, REP bytes, memory pressure, and what holds for the whole experiment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.attribution import exact
from kdelta.model import Annotations, Case, CellResult, Definition, Effort, Experiment, MachineOptions, Remark, plans
from kdelta.results import answer, remarks
from kdelta.results.warnings import (
    Carried,
    ExactLabel,
    FewerCpus,
    FolderLacking,
    Follows,
    Grows,
    IsolatedCpus,
    KernelComplained,
    NoCounters,
    OneTask,
    Pressure,
    Reclaim,
    SameKernel,
    TakenOver,
    UnknownParameters,
)
from kdelta.store.rows import BootRow, FactRow
from kdelta.store.store import Store
from unit.results.test_explain import row
from unit.store.store_builders import boot, experiment, kernel, run

PIPE = Definition(metrics=(), exact_label="with several tasks: one CPU")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


@pytest.fixture
def stored(store: Store) -> Store:
    """The store, with an experiment that stated nothing about itself."""
    store.create(made())
    return store


def made(mode: str = "exact", **more: Any) -> Experiment:
    return experiment(mode=mode, cases=(Case(workload="pipe"),), definitions={"pipe": PIPE}, **more)


def boots(**machine: str) -> BootRow:
    return BootRow(block=0, slot=1, kernel=1, mitigations="default", cases=(0,), state="ok", machine=machine)


def test_a_label_stands_on_the_primary_row_of_exact_experiments_alone(stored: Store) -> None:
    rows = [row(case="pipe"), row(case="pipe", metric="loads", primary=False), row(case="pipe", params={"tasks": "1"})]
    assert [one.warnings for one in remarks.on_rows(made(), stored, rows)] == [(ExactLabel("one CPU"),), (), ()]
    assert all(not one.warnings for one in remarks.on_rows(made("timed"), stored, rows))


def test_counts_that_change_by_much_more_than_instructions_are_named_on_their_row(stored: Store) -> None:
    def side(metric: str, percent: float, verdict: str = "regressed") -> CellResult:
        return row(
            case="pipe", metric=metric, primary=False, baseline=10.0, patched=10.0 + percent / 10.0,
            effect_percent=percent, verdict=verdict,
        )  # fmt: skip

    first = row(case="pipe", effect_percent=0.9, primary=False)
    beside = [side("data_lines", 14.3), side("locked", 23.6), side("loads", 50.0), side("code_lines", 1.9)]
    found, *_ = remarks.on_rows(made(), stored, [first, *beside])
    assert found.warnings == (Carried(0.9, (("locked", 23.6), ("data_lines", 14.3))),)
    large = replace(first, effect_percent=9.0)
    assert not remarks.on_rows(made(), stored, [large, side("locked", 23.6)])[0].warnings
    new = replace(side("locked", 0.0), baseline=0.0, patched=1.0, effect_percent=None)
    assert remarks.on_rows(made(), stored, [first, new])[0].warnings == (Carried(0.9, (), new=(("locked", 1.0),)),)
    tick = replace(side("locked", 2075.0), baseline=0.0004, patched=0.0087)  # one in thousands of operations
    one_line = replace(side("data_lines", -10.2), baseline=2.0, patched=1.797)  # of identical kernels
    assert not remarks.on_rows(made(), stored, [first, tick, one_line])[0].warnings
    undecided = [first, side("locked", 23.6, "inconclusive")]
    assert not remarks.on_rows(made(), stored, undecided)[0].warnings


def test_that_a_case_has_one_task_stands_where_transfers_were_counted(stored: Store) -> None:
    several = replace(made(machine=MachineOptions(smp=4)), definitions={"pipe": replace(PIPE, one_task=True)})
    rows = [row(case="pipe", metric="transfers"), row(case="pipe")]
    assert [one.warnings for one in remarks.on_rows(several, stored, rows)] == [(OneTask(4),), ()]
    busy = replace(several, definitions={"pipe": PIPE})
    assert not any(one.warnings for one in remarks.on_rows(busy, stored, rows))


def test_rep_bytes_stand_beside_the_instructions_that_hide_them(stored: Store) -> None:
    side = row(case="pipe", metric="rep_bytes", baseline=0.0, patched=512.0, primary=False)
    nothing = row(case="pipe", metric="rep_executions", baseline=0.0, patched=0.0, primary=False)
    first, *_ = remarks.on_rows(made(), stored, [row(case="pipe", primary=False), side, nothing])
    assert first.extra == {"rep_bytes_baseline": 0.0, "rep_bytes_patched": 512.0}
    hung = [replace(one, state="hung", patched=None) for one in (row(case="pipe", primary=False), side)]
    assert remarks.on_rows(made(), stored, hung)[0].extra == {}  # not "0 B" of a kernel that was not measured
    unknown = replace(side, verdict="inconclusive")  # of identical kernels, say: nobody knows whether they differ
    assert remarks.on_rows(made(), stored, [row(case="pipe", primary=False), unknown])[0].extra == {}
    alone = [replace(one, patched_label="", patched=None) for one in (row(case="pipe", primary=False), side)]
    alone[1] = replace(alone[1], baseline=512.0)
    assert remarks.on_rows(made(), stored, alone)[0].extra == {"rep_bytes_baseline": 512.0}  # no other side of 0 B


def test_reclaim_is_told_by_kernel_as_the_median_of_its_runs(store: Store) -> None:
    one = replace(made("timed"), cases=(Case(workload="pipe", pressure="reclaim"),))
    store.create(one)
    for block, scanned in enumerate((10.0, 30.0, 20.0)):
        facts = {"reclaim_pgscan": scanned, "reclaim_pgsteal": 4.0, "reclaim_allocstall": 1.0}
        store.save_boot(one.id, boot(block, 0, runs=(run(0, facts=facts),)))
    (found,) = remarks.on_rows(one, store, [row(case=one.cases[0].name, patched_label="7.0")])
    assert found.warnings == (Pressure((Reclaim("6.12", 20.0, 4.0, 1.0),)),)


def test_boots_of_another_experiment_are_counted_by_where_they_are_from() -> None:
    taken = [boots(taken_from="a 1.0"), boots(taken_from="a 2.0"), boots(taken_from="b 1.0"), boots()]
    assert remarks.on_experiment(made(), taken) == (TakenOver(2, 4, "a"), TakenOver(1, 4, "b"))


def test_only_words_that_the_user_wrote_are_unknown_parameters() -> None:
    one = made(kernels=(kernel("6.12"), kernel("7.0", cmdline='"slub_debug" nosuch=1')))
    told = remarks.on_experiment(one, [boots(unknown="nosuch=1 kdelta.jobs=x"), boots(unknown="nosuch=1")])
    assert told == (UnknownParameters("7.0", "nosuch=1"),)


def test_guests_that_had_fewer_cpus_than_asked_for_are_told() -> None:
    """Counted on one CPU beside four, a pipe was told to be 40 % cheaper, without a word."""
    one = replace(made(), machine=MachineOptions(smp=4))
    had = [replace(boots(nproc=cpus), kernel=0) for cpus in ("4", "3", "4")]
    others = [boots(nproc="1"), boots()]
    told = remarks.on_experiment(one, [*had, *others])
    assert told == (FewerCpus("6.12", 3, 4, 1, 3), FewerCpus("7.0", 1, 4, 1, 1))
    assert remarks.on_experiment(made(), [boots(nproc="8")]) == (), "a machine of a lab has what it has"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("isolcpus=1 quiet", "isolcpus=1"),
        ("isolcpus=nohz,domain,1-3", "isolcpus=nohz,domain,1-3"),
        ("isolcpus=nohz,1", ""),
        ("isolcpus=all", "isolcpus=all"),
        ("nohz_full=1", ""),
    ],
)
def test_cpus_that_get_no_tasks_are_told(words: str, told: str) -> None:
    """Beside one with isolcpus=1 a pipe on two CPUs crossed 100 % less, and no word said that it had one."""
    kernels = (kernel("6.12"), kernel("7.0", cmdline=words))
    expected = (IsolatedCpus("7.0", told),) if told else ()
    assert remarks.on_experiment(made(kernels=kernels), []) == ()
    assert remarks.on_experiment(replace(made(kernels=kernels), machine=MachineOptions(smp=4)), []) == expected


def test_counts_of_a_kernel_beside_itself_are_said_to_show_no_noise() -> None:
    image = replace(kernel("6.12"), image_sha256="1")
    kernels = (image, replace(image, label="again"), replace(image, label="longer", cmdline="x"))
    assert remarks.on_experiment(made(kernels=kernels), []) == (SameKernel("again", "6.12"),)
    assert remarks.on_experiment(made("timed", kernels=kernels), []) == ()
    assert remarks.on_experiment(replace(made(kernels=kernels), cases=()), []) == (), "a patch that changes no code"


def test_what_a_kernel_complained_of_is_told_with_its_boots() -> None:
    def booted(index: int, text: str = "") -> BootRow:
        return replace(boots(**({"complaints": text} if text else {})), kernel=index)

    rows = [booted(0), booted(0), booted(1, "WARNING: a"), booted(1, "BUG: b\nWARNING: a\nUBSAN: c"), booted(1)]
    assert remarks.on_experiment(made(), rows) == (KernelComplained("7.0", 2, 3, ("WARNING: a", "BUG: b"), 1),)


def test_what_was_found_out_around_it_comes_first() -> None:
    note = Remark("selftests", "pidfd: 3 skipped")
    one = made(plan=plans.Compare(follows="first"), annotations=Annotations(notes=(note,)))
    assert remarks.on_experiment(one, []) == (Follows("first"), note)


def test_counters_that_were_asked_for_in_vain_are_told_by_kernel_and_reason(store: Store) -> None:
    one = replace(made("timed", effort=Effort(pmu_windows=8)), cases=(Case(workload="pipe"), Case(workload="getppid")))
    store.create(one)
    for block in range(2):
        refused = tuple(run(case, facts={"pmu_errno": 2.0}) for case in (0, 1))
        store.save_boot(one.id, boot(block, 0, runs=refused))
        counted = (run(0, facts={"pmu_kernel_instructions": 300.0}), run(1, facts={"pmu_errno": 95.0}))
        store.save_boot(one.id, boot(block, 1, runs=counted))
    assert remarks.on_counters(one, store) == (
        NoCounters("6.12", ("pipe", "getppid"), 2),
        NoCounters("7.0", ("getppid",), 95),
    )
    assert remarks.on_counters(replace(one, effort=Effort()), store) == ()


def test_a_boot_that_ended_badly_says_where_if_there_were_several_hosts() -> None:
    timed = experiment(mode="timed")
    bad = replace(boots(host="a"), state="panicked", why="it panicked", started_at="t")
    good = replace(boots(host="b"), block=1, started_at="t")
    assert ", slot 1 on a: panicked: it panicked (" in answer._faulty(timed, (bad, good), ())[0]
    assert ", slot 1: panicked:" in answer._faulty(timed, (bad,), ())[0]
    assert ", slot 1: panicked:" in answer._faulty(made(), (bad, good), ())[0], "counts are the bytes of one machine's"


def test_a_count_that_grows_with_each_repetition_says_so(store: Store) -> None:
    """A kernel that loops as often as it was called before was "+110.46 % exact"."""
    told = replace(made(), kernels=(kernel("6.12"), kernel("7.1")))
    rows = [row(case="pipe"), row(case="pipe", metric="loads", primary=False)]

    def facts(*grown: float | None) -> list[FactRow]:
        return [
            FactRow(block, side, side, "default", 0, {} if one is None or not side else {exact.GROWS: one})
            for block, one in enumerate(grown)
            for side in (0, 1)
        ]

    first, other = remarks.growing(told, rows, facts(13.0, 12.0, 13.0))
    assert first.warnings == (Grows((("7.1", 13.0),)),) and not other.warnings
    assert remarks.growing(told, rows, facts(13.0, None, 13.0)) == rows


@pytest.mark.parametrize(
    ("costs", "percent"),
    [
        ((100, 110, 121), 10.0),
        ((1267, 1429, 1591), 12.06),
        ((100, 110), None),
        ((110, 100, 100), None),
        ((100, 101, 101), None),
        ((0, 1, 2), None),
        ((11310.875, 11631.25, 13215.1875), None),  # a batch of pages was freed in the last: it does not grow
    ],
)
def test_repetitions_grow_where_each_costs_more_than_the_one_before(costs: tuple[float, ...], percent: float) -> None:
    assert exact.growth_percent(costs) == (None if percent is None else pytest.approx(percent, abs=0.01))


def test_a_directory_that_the_guests_lack_is_told_with_the_result() -> None:
    """``find /usr/share`` has a verdict, and it is not of /usr/share."""
    found = "/work: 3 files and directories, 0.0 MiB; of /usr/share only what it runs with: it is more than 32 MiB or"
    case = Case(workload="program", label="find /usr/share", found=found)
    whole = replace(case, found="/work: 3 files and directories, 0.0 MiB")
    told, untold = (remarks.on_experiment(replace(made(), cases=(one,)), []) for one in (case, whole))
    assert told == (FolderLacking(case.name, "/usr/share"),) and untold == ()
