# SPDX-License-Identifier: GPL-2.0-or-later
"""The same kernels and cases measured twice: counts agree, or it says by how much and which functions differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.cli.main import run
from kdelta.errors import UserError
from kdelta.model import BootResult, Case, Experiment, Kernel, PlannedBoot, Profile, RunResult, Series, plans
from kdelta.report import agreement as layout
from kdelta.report.sentences import sentence
from kdelta.results import answer
from kdelta.results.agreement import agree
from kdelta.results.agreement.types import Agreement
from kdelta.store.store import Store
from kdelta.verdict.warnings import Noisy
from unit.store.store_builders import kernel

OLD, NEW = kernel("6.1", image_sha256="a" * 64), kernel("7.0", image_sha256="b" * 64)
PIPE = Case(workload="pipe", params={"writers": "1"})
LOOKUP = Case(workload="path_lookup", params={"depth": "2"})
Functions = Mapping[str, int]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    monkeypatch.setenv("KDELTA_STORE", url)
    monkeypatch.chdir(tmp_path)
    with Store(url) as opened:
        yield opened


def made(name: str, kernels: Sequence[Kernel] = (OLD, NEW), cases: Sequence[Case] = (PIPE,), **more: Any) -> Experiment:
    fields: dict[str, Any] = {
        "plan": plans.Compare(),
        "mode": "exact",
        "blocks": 2,
        "host": {"cpu": "one"},
        "tool_version": "0.1.0",
        **more,
    }
    return Experiment(id=name, kernels=tuple(kernels), cases=tuple(cases), created_at=f"2026-01-01 {name}", **fields)


def counted(case: int, functions: Functions, unit: str = "instructions/op") -> RunResult:
    vectors: dict[str, tuple[int, ...]] = {name: (count, 0, 0, 0, 0, 0, 0) for name, count in functions.items()}
    total = (sum(functions.values()), 0, 0, 0, 0, 0, 0)
    series = Series(metric="instructions", unit=unit, better="lower", values=(float(total[0]),) * 3)
    return RunResult(case=case, state="ok", series=(series,), profile=Profile(ops=1, functions=vectors, total=total))


def save(store: Store, e: Experiment, counts: Mapping[str, Sequence[Functions | str]], **machine: str) -> str:
    """``counts[label]``: for each seed its functions, or the state of the boot that has none."""
    store.create(e)
    for slot, item in enumerate(e.kernels):
        for seed, functions in enumerate(counts[item.label]):
            lost = isinstance(functions, str)
            runs = () if isinstance(functions, str) else tuple(counted(i, functions) for i in range(len(e.cases)))
            store.save_boot(
                e.id,
                BootResult(
                    plan=PlannedBoot(block=seed, slot=slot, kernel=slot),
                    state=functions if lost else "ok",  # type: ignore[arg-type]
                    why="no init" if lost else "",
                    argv=("qemu", "-cpu", "max,-erms", "-plugin", "/home/x/kdelta-1.so,out=/tmp/x"),
                    machine={"qemu": "7.2", "accel": "tcg", **machine},
                    runs=runs,
                ),
            )
    return e.id


QUIET = {"read": 900, "lock": 100}
SLAB = {"read": 900, "lock": 100, "___slab_alloc": 5}
TICK = {**QUIET, "irq_enter_rcu": 8, "hrtimer_interrupt": 92}
STEADY = {"6.1": (QUIET, QUIET), "7.0": (SLAB, SLAB)}


def calls(found: Agreement) -> list[str]:
    return [pair.call for pair in found.counts]


def test_counts_that_repeat_agree_exactly_whatever_host_and_qemu(store: Store) -> None:
    save(store, made("here"), STEADY)
    save(store, made("there", host={"cpu": "two"}), STEADY, qemu="10.0")
    found = agree.compare(store, "here", "there")
    assert calls(found) == ["exact", "exact"]
    assert {(fact.what, fact.here, fact.there) for fact in found.differences} == {
        ("QEMU", "7.2", "10.0"),
        ("host CPU", "one", "two"),
    }
    assert layout.summary(found) == "2 of 2 counts agree exactly"


def test_a_difference_is_named_by_function_and_held_against_the_spread_of_the_seeds(store: Store) -> None:
    save(store, made("here"), {"6.1": (QUIET, TICK), "7.0": (SLAB, SLAB)})
    save(store, made("there"), {"6.1": (QUIET, QUIET), "7.0": (QUIET, QUIET)})
    within, differs = agree.compare(store, "here", "there").counts
    assert (within.call, within.here.count, within.there.count) == ("within", 1050.0, 1000.0)
    assert within.here.spread_percent == pytest.approx(10.0)
    assert (differs.call, differs.here.spread_percent) == ("differs", 0.0)
    assert differs.percent == pytest.approx(-100 * 5 / 1005)
    assert [(f.function, f.here, f.there, f.delta) for f in differs.functions] == [("___slab_alloc", 5.0, 0.0, -5.0)]


def test_where_the_middle_seeds_are_alike_the_seeds_that_differ_are_explained(store: Store) -> None:
    save(store, made("here", blocks=3), {"6.1": (QUIET, QUIET, TICK), "7.0": (SLAB,) * 3})
    save(store, made("there", blocks=3), {"6.1": (QUIET,) * 3, "7.0": (SLAB,) * 3})
    pair = agree.compare(store, "here", "there").counts[0]
    assert (pair.call, pair.percent) == ("within", 0.0)
    assert [(f.function, f.functions) for f in pair.functions] == [("timer ticks", 2)]


def test_the_order_of_the_two_and_of_their_kernels_changes_only_the_sign(store: Store) -> None:
    save(store, made("here"), {"6.1": (QUIET, QUIET), "7.0": (SLAB, SLAB)})
    save(store, made("there", (NEW, OLD)), {"6.1": (TICK, TICK), "7.0": (SLAB, SLAB)})
    there, back = (agree.compare(store, *names) for names in (("here", "there"), ("there", "here")))
    assert {(p.kernel, p.call, p.here.count, p.there.count) for p in there.counts} == {
        (p.kernel, p.call, p.there.count, p.here.count) for p in back.counts
    }
    assert there.counts[0].functions[0].delta == -back.counts[1].functions[0].delta == 100.0


def test_kernels_are_the_same_by_image_and_command_line_and_cases_by_all_that_they_are(store: Store) -> None:
    renamed, other_line = replace(OLD, label="mine"), replace(NEW, cmdline="slub_debug")
    save(store, made("here", cases=(PIPE, LOOKUP)), {"6.1": (QUIET, QUIET), "7.0": (SLAB, SLAB)})
    wide = replace(PIPE, params={"writers": "2"}, label="pipe:writers=2")
    there = made("there", (other_line, renamed), (wide, replace(LOOKUP, cgroup="child"), PIPE))
    save(store, there, {"mine": (QUIET, QUIET), "7.0": (SLAB, SLAB)})
    found = agree.compare(store, "here", "there")
    assert [(p.case, p.kernel, p.kernel_there, p.call) for p in found.counts] == [("pipe", "6.1", "mine", "exact")]
    assert found.only_here == (f"kernel 7.0 (image {'b' * 12})", "case path_lookup")
    assert found.only_there == (
        f"kernel 7.0 (image {'b' * 12}, cmdline slub_debug)",
        "case pipe:writers=2",
        "case path_lookup (memcg)",
    )


def test_an_image_that_stands_twice_in_an_experiment_is_paired_in_order(store: Store) -> None:
    twins = (replace(OLD, label="a"), replace(OLD, label="b"))
    for name in ("here", "there"):
        save(store, made(name, twins), {"a": (QUIET, QUIET), "b": (QUIET, QUIET)})
    found = agree.compare(store, "here", "there")
    assert [(p.kernel, p.kernel_there) for p in found.counts] == [("a", "a"), ("b", "b")]


def test_what_was_not_measured_is_no_count_and_says_why(store: Store) -> None:
    save(store, made("here"), {"6.1": ("panicked", "panicked"), "7.0": (SLAB, SLAB)})
    save(store, made("there"), {"6.1": (QUIET, QUIET), "7.0": ()})
    found = agree.compare(store, "here", "there")
    assert calls(found) == ["not-comparable", "not-comparable"]
    assert [p.why for p in found.counts] == ["here: panicked: no init", "there: no boot yet"]
    assert all(p.percent is None for p in found.counts)
    assert layout.summary(found).endswith("0 differ, 2 not comparable")
    assert "there: 2 of 4 boots are done" in layout.render(found)


def test_counts_of_different_units_do_not_compare(store: Store) -> None:
    save(store, made("here"), STEADY)
    store.create(made("there"))
    plan = PlannedBoot(block=0, slot=0, kernel=0)
    store.save_boot("there", BootResult(plan=plan, state="ok", runs=(counted(0, QUIET, "instructions/lookup"),)))
    pair = agree.compare(store, "here", "there").counts[0]
    assert (pair.call, pair.percent) == ("not-comparable", None)
    assert pair.why == "counted in instructions/op here, in instructions/lookup there"


def test_boots_that_were_taken_over_are_no_second_measurement(store: Store) -> None:
    save(store, made("here", (OLD,)), {"6.1": (QUIET, QUIET)}, identity="x")
    store.create(made("there", (OLD,)))
    for seed in (0, 1):
        boot = store.boot("here", seed, 0)
        store.save_boot("there", replace(boot, machine={**boot.machine, "taken_from": f"here {seed}.0"}))
    found = agree.compare(store, "here", "there")
    assert calls(found) == ["same-boots"]
    assert "1 are the same boots" in layout.summary(found)


def test_boots_of_one_identity_that_differ_are_called_a_fault(store: Store) -> None:
    save(store, made("here", (OLD,)), {"6.1": (QUIET, QUIET)}, identity="x")
    save(store, made("there", (OLD,)), {"6.1": (SLAB, SLAB)}, identity="x")
    found = agree.compare(store, "here", "there")
    assert found.counts[0].same_identity
    assert "should repeat: a fault" in " ".join(layout.render(found).split())


def timed(name: str, kernels: Sequence[Kernel], factor: float, store: Store, blocks: int = 8) -> None:
    """A timed experiment: the second kernel takes ``factor`` times as long as the first, with a little noise."""
    e = made(name, kernels, mode="timed", blocks=blocks, cases=(Case(workload="pidfd_open"),))
    store.create(e)
    for block in range(blocks):
        for index in (0, 1):
            value = 100.0 * (factor if index else 1.0) * (1 + 0.001 * ((block * (3 + index)) % 5))
            values = Series(metric="ns_per_op", unit="ns", better="lower", values=(value,) * 3)
            result = RunResult(case=0, state="ok", series=(values,))
            plan = PlannedBoot(block=block, slot=(index + block) % 2, kernel=index)
            store.save_boot(name, BootResult(plan=plan, state="ok", runs=(result,)))


def test_timed_effects_stand_side_by_side_without_a_verdict(store: Store) -> None:
    timed("here", (OLD, NEW), 1.10, store)
    timed("near", (OLD, NEW), 1.1001, store)
    timed("far", (OLD, NEW), 1.30, store)
    near, far = (agree.compare(store, "here", name) for name in ("near", "far"))
    assert [p.call for p in (*near.effects, *far.effects)] == ["overlap", "apart"]
    text = layout.render(far)
    assert "No verdict comes of two experiments" in text
    assert text.endswith("0 of 1 intervals overlap\n")


def test_an_effect_that_was_measured_the_other_way_round_is_turned_round(store: Store) -> None:
    timed("here", (OLD, NEW), 1.25, store)
    timed("back", (NEW, OLD), 0.8, store)
    (pair,) = agree.compare(store, "here", "back").effects
    assert (pair.call, pair.reversed) == ("overlap", True)
    assert pair.there.effect_percent == pytest.approx(25.0, abs=0.3)
    assert pair.there.interval_percent and pair.there.interval_percent[0] < pair.there.interval_percent[1]
    assert (pair.here.verdict, pair.there.verdict) == ("regressed", "regressed")


def test_effects_of_too_few_blocks_are_only_described(store: Store) -> None:
    timed("here", (OLD, NEW), 1.1, store, blocks=3)
    timed("there", (OLD, NEW), 1.1, store, blocks=3)
    found = agree.compare(store, "here", "there")
    assert [p.call for p in found.effects] == ["descriptive"]
    assert layout.summary(found) == "1 without an interval on both sides"


def test_what_cannot_be_compared_is_one_line_that_says_why(store: Store) -> None:
    save(store, made("here"), STEADY)
    save(store, made("other-kernel", (kernel("5.0", image_sha256="c" * 64),)), {"5.0": (QUIET,)})
    save(store, made("other-case", cases=(LOOKUP,)), STEADY)
    timed("timed", (OLD, NEW), 1.1, store)
    timed("third", (OLD, kernel("6.6", image_sha256="d" * 64)), 1.1, store)
    store.create(made("leak", mode="timed", plan=plans.Leaks()))
    for names, word in (
        (("here", "here"), "the same experiment"),
        (("here", "other-kernel"), "no kernel (image and command line) in common"),
        (("here", "other-case"), "no case in common"),
        (("here", "timed"), "counts and times do not compare"),
        (("timed", "third"), "third compared 6.1 with 6.6"),
        (("timed", "leak"), "a leak check"),
    ):
        with pytest.raises(UserError) as caught:
            agree.compare(store, *names)
        assert word in str(caught.value)
        assert "\n" not in str(caught.value)


def test_the_report_against_another_experiment_as_a_user_asks_for_it(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    save(store, made("here"), STEADY)
    save(store, made("there"), {**STEADY, "6.1": (SLAB, SLAB)}, qemu="10.0")
    assert run(["report", "here", "--against", "there"]) == 0
    out = capsys.readouterr().out
    assert "QEMU: 7.2 here, 10.0 there" in out
    assert "beyond the spread of seeds (0 % here, 0 % there): ___slab_alloc +5.0" in " ".join(out.split())
    assert out.endswith("1 agree exactly, 0 within the seeds' spread, 1 differ\n")
    assert all(len(line) <= 72 for line in out.splitlines())
    assert run(["report", "here", "--against", "there", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "kdelta-agreement/1"
    assert [pair["call"] for pair in found["counts"]] == ["differs", "exact"]
    assert found["counts"][0]["functions"][0]["function"] == "___slab_alloc"
    assert run(["report", "here", "--against", "there", "--all-metrics"]) == 0


def test_an_exported_file_is_imported_first_and_then_compared(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(store, made("mine"), STEADY)
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'theirs.sqlite'}")
    with Store(f"sqlite:///{tmp_path / 'theirs.sqlite'}") as theirs:
        save(theirs, made("theirs", host={"cpu": "evil\x1b[2J"}), STEADY)
    assert run(["export", "theirs", "-o", "theirs.kdelta"]) == 0
    monkeypatch.undo()
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'store.sqlite'}")
    file = str(tmp_path / "theirs.kdelta")
    assert run(["report", "mine", "--against", file]) == 1
    assert f"kdelta import {file}" in capsys.readouterr().err
    assert run(["import", file]) == 0
    capsys.readouterr()
    assert run(["report", "mine", "--against", "theirs"]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 counts agree exactly" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("extra", [["--format", "html"], ["--view", "kbest"], ["--console", "0.1"], ["--ktap", "x"]])
def test_options_that_do_not_go_with_it_are_refused(
    store: Store, extra: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    save(store, made("here"), STEADY)
    save(store, made("there"), STEADY)
    assert run(["report", "here", "--against", "there", *extra]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_warning_of_counts_that_differ_between_seeds_names_the_functions(store: Store) -> None:
    save(store, made("here"), {"6.1": (QUIET, QUIET), "7.0": (SLAB, TICK)})
    result, _ = answer.result(store, "here")
    (row,) = [r for r in result.results if r.metric == "instructions"]
    (noisy,) = [w for w in row.warnings if isinstance(w, Noisy)]
    assert noisy.functions == ("timer ticks", "___slab_alloc") and not noisy.more
    assert sentence(noisy) == "varies by 9.45 % across seeds (timer ticks, ___slab_alloc)"


def test_without_function_names_the_warning_says_what_it_may_be(store: Store) -> None:
    save(store, made("here"), {"6.1": ({"[unknown 0x1]": 9},) * 2, "7.0": ({"[unknown 0x1]": 9}, {"[unknown 0x2]": 8})})
    result, _ = answer.result(store, "here")
    (noisy,) = [w for r in result.results if r.metric == "instructions" for w in r.warnings if isinstance(w, Noisy)]
    assert "(allocator order, random numbers or timer ticks)" in sentence(noisy)
