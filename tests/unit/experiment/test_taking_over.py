# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact boots that were measured before are taken over, and only those; given-up versions leave a plan that ends."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import exact_metrics
from kdelta.experiment import recalled, runner
from kdelta.model import (
    Annotations,
    BootResult,
    Case,
    Definition,
    Experiment,
    Kernel,
    PlannedBoot,
    Quiet,
    RunResult,
    Series,
    State,
    plans,
)
from kdelta.results import answer
from kdelta.results.warnings import TakenOver
from kdelta.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def kernel(label: str) -> Kernel:
    return Kernel(label=label, spec=label, release=label, image_path="/i", image_sha256=label * 8)


def sweep(name: str, labels: str, mode: str = "exact", blocks: int = 3, **more: Any) -> Experiment:
    return Experiment(
        id=name, plan=plans.Sweep(), mode=cast(Any, mode), kernels=tuple(map(kernel, labels)),
        cases=(Case(workload="pipe"),), blocks=blocks, created_at=f"2026-11-21T00:00:0{len(name)}", **more,
    )  # fmt: skip


made_by_runner = runner.boot


def stream(said: str) -> bytes:
    """What a guest wrote whose case ended as it ``said``; nothing where it said nothing."""
    hello = (
        b'{"t":"hello","proto":1,"release":"7.0","machine":"x86_64","nproc":1,"mem_kib":9,"cmdline":"","clock":"tsc"}'
    )
    done = [b'{"t":"done","j":0,"state":"%s"}' % said.encode()] if said else []
    bodies = [hello, *done, b'{"t":"end","records":%d}' % (1 + len(done))]
    return b"".join(b"kd1 %d %08x %s\n" % (n, zlib.crc32(b"%d %s" % (n, body)), body) for n, body in enumerate(bodies))


class Bench:
    """A runner whose boots are simulated; ``dead`` versions panic."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.made, self.dead = store, [], ""  # type: ignore[var-annotated]
        self.hopeless = ""
        self.ended: dict[int, tuple[State, str]] = {}  # by block: a run that is not ok, and what the guest said of it
        self.version, self.left = "1", -1  # of the guest's program; boots until a Ctrl-C
        monkeypatch.setattr(runner, "boot", self.boot)

    def boot(self, job: runner.Job, plan: PlannedBoot) -> BootResult:
        label = job.experiment.kernels[plan.kernel].label
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.made.append((label, plan.block))
        machine = {"identity": job.identity(plan)} if job.identity else {}
        if label in self.dead:
            return BootResult(plan=plan, state="panicked", why="no init", machine=machine)
        if label in self.hopeless:
            return made_by_runner(job, plan)
        if plan.block in self.ended:
            state, said = self.ended[plan.block]
            run = RunResult(case=0, state=state)
            return BootResult(plan=plan, state="ok", machine=machine, runs=(run,), stream=stream(said))
        series = Series(metric="instructions", unit="instructions/op", better="lower", values=(100.0,) * 7)
        return BootResult(
            plan=plan, state="ok", machine=machine, runs=(RunResult(case=0, state="ok", series=(series,)),)
        )  # fmt: skip

    def run(self, experiment: Experiment, *, reuse: bool = True) -> None:
        job = runner.Job(
            experiment=experiment,
            site=cast(Any, None),
            work=lambda _plan: "not booted: under an earlier seed hung",
            runs=lambda _plan, _raw: (),
            machine={},
            undecided=lambda _blocks: (),
            identity=lambda plan: f"{experiment.kernels[plan.kernel].image_sha256}/{plan.block}/{self.version}",
            recall=recalled.recalling(self.store, experiment) if reuse else None,
            gaps=True,
        )
        runner.execute(job, self.store, Quiet())


@pytest.fixture
def bench(store: Store, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(store, monkeypatch)


def run(bench: Bench, experiment: Experiment, **options: bool) -> list[tuple[str, int]]:
    bench.made.clear()
    bench.store.create(experiment)
    bench.run(experiment, **options)
    return sorted(bench.made)


def test_boots_whose_figures_were_divided_otherwise_are_made_again(bench: Bench, store: Store) -> None:
    """``parts_per_op`` of a workload's TOML file is in no guest: 100 instructions a part stood beside 10 of the new."""

    def in_parts(name: str, parts: int) -> Experiment:
        return sweep(name, "a", definitions={"pipe": Definition(metrics=exact_metrics("lookup", parts))})

    assert len(run(bench, in_parts("one", 1))) == 3
    assert len(run(bench, in_parts("again", 1))) == 0
    assert len(run(bench, in_parts("other", 10))) == 3
    assert len(run(bench, in_parts("others", 10))) == 0


def test_a_version_added_later_is_the_only_one_measured(bench: Bench, store: Store) -> None:
    assert len(run(bench, sweep("a", "pqr"))) == 9
    assert run(bench, sweep("bb", "pqsr")) == [("s", 0), ("s", 1), ("s", 2)]
    boots = store.boots("bb")
    assert len(boots) == 12
    assert {b.machine.get("taken_from", "").split(" ")[0] for b in boots if b.kernel != 2} == {"a"}
    assert store.boot("bb", 1, 3).machine["taken_from"] == "a 1.2", "the slot is its own, the origin is named"
    (warning,) = answer.result(store, "bb")[0].warnings
    assert warning == TakenOver(boots=9, of=12, experiment="a")


def test_without_reuse_everything_is_measured_anew(bench: Bench) -> None:
    run(bench, sweep("a", "pq"))
    assert len(run(bench, sweep("bb", "pq"), reuse=False)) == 6


def test_failed_boots_are_never_taken_over(bench: Bench) -> None:
    bench.dead = "q"
    run(bench, sweep("a", "pq"))
    bench.dead = ""
    assert run(bench, sweep("bb", "pq")) == [("q", 0), ("q", 1), ("q", 2)]


@pytest.mark.parametrize(("state", "said"), [("hung", ""), ("hung", "hung"), ("failed", ""), ("failed", "ok")])
def test_what_may_have_been_the_host_is_measured_again_and_the_new_boot_stands_for_it(
    bench: Bench, state: State, said: str
) -> None:
    bench.ended = {1: (state, said)}
    run(bench, sweep("a", "pq"))
    assert run(bench, sweep("bb", "pq")) == [("p", 1), ("q", 1)], "and again while it ends so"
    bench.ended = {}
    assert run(bench, sweep("ccc", "pq")) == [("p", 1), ("q", 1)]
    assert run(bench, sweep("dddd", "pq")) == []


@pytest.mark.parametrize(("state", "said"), [("failed", "failed"), ("unsupported", "unsupported"), ("panicked", "")])
def test_what_emulation_repeats_is_taken_over(bench: Bench, state: State, said: str) -> None:
    bench.ended = {1: (state, said)}
    run(bench, sweep("a", "pq"))
    assert run(bench, sweep("bb", "pq")) == []


def test_the_origin_is_where_it_was_measured_not_where_it_was_taken_over_before(bench: Bench, store: Store) -> None:
    run(bench, sweep("a", "pq"))
    run(bench, sweep("bb", "pqr"))
    run(bench, sweep("ccc", "pqr"))
    origins = {b.kernel: b.machine["taken_from"].split(" ")[0] for b in store.boots("ccc")}
    assert origins == {0: "a", 1: "a", 2: "bb"}


def test_boots_of_an_imported_file_are_never_taken_over(bench: Bench, store: Store, tmp_path: Path) -> None:
    run(bench, sweep("a", "pq"))
    store.export("a", tmp_path / "a.kdelta")
    store.delete("a")
    store.import_(tmp_path / "a.kdelta")
    assert len(store.boots("a")) == 6
    assert len(run(bench, sweep("bb", "pq"))) == 6


def test_a_timed_version_that_does_not_boot_is_a_gap_and_the_rest_goes_on(bench: Bench, store: Store) -> None:
    bench.dead = "q"
    made = run(bench, sweep("a", "pqr", mode="timed", blocks=8))
    assert [made.count((label, block)) for label in "pr" for block in range(8)] == [1] * 16
    assert sum(label == "q" for label, _ in made) == 2
    boots = [b for b in store.boots("a") if b.kernel == 1]
    assert len(boots) == 8 and all(b.state == "panicked" for b in boots)
    assert boots[-1].why == "not booted, given up after 2 boots: no init"
    bench.made.clear()
    bench.run(store.experiment("a"))
    assert bench.made == [], "resumed, there is nothing left to do"


def test_a_growing_experiment_takes_kernels_and_annotations(store: Store) -> None:
    first = sweep("a", "p", annotations=Annotations(gate="1"))
    store.create(first)
    store.add_kernel("a", kernel("q"))
    grown = store.annotate("a", lambda known: replace(known, gate=known.gate + "2"))
    assert grown == replace(first, kernels=(*first.kernels, kernel("q")), annotations=Annotations(gate="12"))
    assert store.experiment("a") == grown
    assert store.experiments()[0].kernels == ("p", "q") and store.experiments()[0].boots_planned == 6


def test_boots_that_another_version_counted_are_made_again_on_resume(bench: Bench, store: Store) -> None:
    bench.left = 4
    with pytest.raises(KeyboardInterrupt):
        run(bench, sweep("a", "pq"), reuse=False)
    assert len(store.boots("a")) == 4
    bench.left, bench.version = -1, "2"
    bench.made.clear()
    bench.run(store.experiment("a"), reuse=False)
    assert len(bench.made) == 6, "old counts and new ones never stand side by side"
    assert {b.machine["identity"].rsplit("/")[-1] for b in store.boots("a")} == {"2"}


def test_cases_that_another_version_had_no_hope_for_are_asked_again_on_resume(bench: Bench, store: Store) -> None:
    bench.left, bench.hopeless = 4, "q"
    with pytest.raises(KeyboardInterrupt):
        run(bench, sweep("a", "pq"), reuse=False)
    assert {b.state for b in store.boots("a") if b.kernel == 1} == {"unsupported"}
    bench.left, bench.version, bench.hopeless = -1, "2", ""
    bench.run(store.experiment("a"), reuse=False)
    assert {b.state for b in store.boots("a")} == {"ok"}


def test_boots_that_this_version_had_no_hope_for_are_not_made_again(bench: Bench, store: Store) -> None:
    bench.left, bench.hopeless = 4, "q"
    with pytest.raises(KeyboardInterrupt):
        run(bench, sweep("a", "pq"), reuse=False)
    bench.left = -1
    bench.made.clear()
    bench.run(store.experiment("a"), reuse=False)
    assert len(bench.made) == 2


def test_a_finished_experiment_of_another_version_stays_as_it_is(bench: Bench, store: Store) -> None:
    run(bench, sweep("a", "pq"), reuse=False)
    bench.version = "2"
    bench.made.clear()
    bench.run(store.experiment("a"), reuse=False)
    assert bench.made == [] and len(store.boots("a")) == 6


def test_an_interrupted_experiment_of_this_version_goes_on(bench: Bench, store: Store) -> None:
    bench.left = 4
    with pytest.raises(KeyboardInterrupt):
        run(bench, sweep("a", "pq"), reuse=False)
    bench.left = -1
    bench.made.clear()
    bench.run(store.experiment("a"), reuse=False)
    assert len(bench.made) == 2
