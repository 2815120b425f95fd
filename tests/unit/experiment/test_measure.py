# SPDX-License-Identifier: GPL-2.0-or-later
"""What a boot that measures, or traces, does."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import Names
from kdelta.errors import UserError
from kdelta.experiment import allowed, hold, kinds, measure, templates, trace
from kdelta.experiment.measure import Measuring
from kdelta.experiment.work import Work
from kdelta.guest.protocol import Done, Repetition, interval_of
from kdelta.machine import plugin
from kdelta.machine.boot import RawBoot
from kdelta.model import BootResult, Case, Effort, Experiment, Kernel, Mode, PlannedBoot, plans
from kdelta.results.definitions import LEAK_METRICS
from kdelta.spec.cases import parse_case
from kdelta.spec.program import PACK
from kdelta.spec.workloads import Workload, catalogue
from kdelta.store.samples import number_of
from unit.attribution.counts import interval, output

KERNELS = tuple(Kernel(label=x, spec=x, release=x, image_path="/i", image_sha256=x) for x in "ab")


@pytest.fixture(scope="module")
def known() -> dict[str, Workload]:
    return catalogue()


def asked(known: dict[str, Workload], mode: Mode, *texts: str, **more: object) -> Experiment:
    cases: tuple[Case, ...] = tuple(case for text in texts for case in parse_case(text, known))
    template = templates.run(templates.Asked(cases=cases), KERNELS, mode, 3)
    return replace(template, **more)


def measuring(known: dict[str, Workload], experiment: Experiment) -> Measuring:
    plugin = Path("/plugin.so") if experiment.mode == "exact" else None
    return measure.measuring(experiment, known, lambda _: Names(), plugin)


def plan(block: int = 0, kernel: int = 0, cases: tuple[int, ...] = ()) -> PlannedBoot:
    return PlannedBoot(block=block, slot=kernel, kernel=kernel, cases=cases, mitigations="off")


def jobs(work: Work) -> list[list[str]]:
    return [line.split() for line in work.jobs.lines if line.startswith("job")]


def test_a_timed_boot_runs_the_open_cases_of_its_kernel(known: dict[str, Workload]) -> None:
    made = measuring(known, asked(known, "timed", "pipe", "pidfd_open", "thread_spawn"))
    work = made.work(plan(2, 1, (0, 2)))
    assert [words[:3] for words in jobs(work)] == [["job", "0", "pipe"], ["job", "2", "thread_spawn"]]
    assert (work.kernel, work.mitigations, work.plugin) == (KERNELS[1], "off", None)
    assert work.jobs.seed == 3


def test_seeds_of_counts_depend_on_the_experiments_seed_and_the_block(known: dict[str, Workload]) -> None:
    made = measuring(known, asked(known, "exact", "pipe", seed=7))
    assert [made.work(plan(block)).jobs.seed for block in (0, 1)] == [7001, 7002]
    assert made.work(plan()).plugin == Path("/plugin.so")


def test_a_run_that_never_ends_is_stopped_in_reasonable_time(known: dict[str, Workload]) -> None:
    made = measuring(known, asked(known, "timed", "pipe", effort=Effort(limit_ms=3_600_000)))
    assert made.work(plan()).limit_s <= 21 * made.experiment.machine.boot_limit_s


def test_a_leak_check_asks_for_lives(known: dict[str, Workload]) -> None:
    experiment = asked(known, "timed", "pipe", plan=plans.Leaks(), effort=Effort(batches=3, batch_ops=100))
    made = measuring(known, experiment)
    assert made.metrics[0] == LEAK_METRICS
    assert {"batches=3", "ops=100"} <= set(jobs(made.work(plan()))[0])


def test_what_is_not_here_is_refused(known: dict[str, Workload]) -> None:
    experiment = asked(known, "timed", "pipe")
    with pytest.raises(UserError, match=r"'pipe' was not found.*--workloads"):
        allowed.refuse_unknown(experiment, {})
    allowed.refuse_unknown(experiment, known)


def test_a_traced_boot_has_a_job_for_each_case_and_set(known: dict[str, Workload]) -> None:
    cases = tuple(case for text in ("pipe", "pidfd_open") for case in parse_case(text, known))
    experiment = templates.trace(templates.Asked(cases=cases), KERNELS, ("locks", "sizes"), 100)
    made = trace.tracing(measuring(known, experiment), known)
    work = made.work(plan())
    assert [words[2] for words in jobs(work)] == ["pipe", "pipe", "pidfd_open", "pidfd_open"]
    assert all("ops=100" in words and "reps=1" in words for words in jobs(work))
    assert any(line.startswith("trace ") for line in work.jobs.lines) and work.plugin is None


def ended(*states: str, why: str = "why") -> RawBoot:
    records = tuple(Done(j=job, state=state, why="" if state == "ok" else why) for job, state in enumerate(states))  # type: ignore[arg-type]
    return RawBoot(
        argv=(), state="ok", why="", records=records, console=b"", stream=b"", counts=(), elapsed_s=1.0,
        first_sample_s=None, qemu_log="",
    )  # fmt: skip


def test_a_traced_case_is_as_its_worst_set(known: dict[str, Workload]) -> None:
    cases = tuple(case for text in ("pipe", "pidfd_open") for case in parse_case(text, known))
    asked_for = templates.trace(templates.Asked(cases=cases), KERNELS, ("locks", "sizes"), None)
    made = trace.tracing(measuring(known, asked_for), known)
    runs = made.runs(plan(), ended("ok", "failed", "ok"))
    assert [(run.case, run.state, run.why) for run in runs] == [(0, "failed", "why")], "the second did not end"


def test_a_case_whose_guest_died_costs_nothing_of_the_others(known: dict[str, Workload]) -> None:
    made = measuring(known, asked(known, "exact", "pipe", "pidfd_open", "fork_vmas"))
    good = output(interval(1, [(1 << 63 | 0x1000, (160, 0, 0, 0, 0, 0, 0))]))
    said = (
        Repetition(j=0, r=0, id=interval_of(0, 1), ops=16), Done(j=0, state="ok"),
        Repetition(j=2, r=0, id=interval_of(1, 1), ops=16), Done(j=2, state="ok"),
    )  # fmt: skip
    raw = replace(ended(), records=said, counts=(good, b"cut"), ended={1: ("panicked", "Kernel panic")})
    runs = made.runs(plan(), raw)
    assert [run.state for run in runs] == ["ok", "panicked", "failed"]
    assert next(s.values for s in runs[0].series if s.metric == "instructions") == (10.0,)
    assert runs[1].why == "Kernel panic" and "plugin output" in runs[2].why
    assert not BootResult(plan=plan(), state="ok", runs=runs).cut_short
    killed = made.runs(plan(), replace(raw, ended={1: ("lost", "the machine ended with status -9")}))
    assert BootResult(plan=plan(), state="ok", runs=killed).cut_short, "is measured again"


def test_the_profile_is_that_of_the_repetition_whose_count_the_run_has(known: dict[str, Workload]) -> None:
    """A loop that is stopped makes another number of operations each time: by totals it was another repetition's."""
    made = measuring(known, asked(known, "exact", "pipe"))
    pairs = ((3849, 930), (3811, 980), (3845, 900))  # instructions of an operation, operations
    intervals = [interval(n, [(1 << 63 | 0x1000, (each * ops, *(0,) * 6))]) for n, (each, ops) in enumerate(pairs, 1)]
    said = [Repetition(j=0, r=n, id=interval_of(0, n + 1), ops=ops) for n, (_, ops) in enumerate(pairs)]
    raw = replace(ended(), records=(*said, Done(j=0, state="ok")), counts=(output(*intervals),))
    (run,) = made.runs(plan(), raw)
    (series,) = (one for one in run.series if one.metric == "instructions")
    assert run.profile is not None
    assert number_of(series, "exact") == run.profile.total[0] / run.profile.ops == 3845


def test_a_case_that_hangs_costs_its_own_limit_only(known: dict[str, Workload]) -> None:
    efforts = Effort(limit_ms=3_000)
    work = measuring(known, asked(known, "exact", "pipe", "pidfd_open", effort=efforts)).work(plan())
    (_, second) = work.jobs.apart().items()
    cold, restored = work.alone(*second, restored=False), work.alone(*second, restored=True)
    assert [line.split()[2] for line in restored.jobs.lines] == ["pidfd_open"]
    assert work.limit_s - cold.limit_s == 3.0
    assert restored.limit_s == 3.0, "by the clock on the wall"
    same_as_usual = replace(Effort(), limit_given=True)
    given = measuring(known, asked(known, "exact", "pipe", effort=same_as_usual)).work(plan())
    ((job, alone),) = given.jobs.apart().items()
    assert given.alone(job, alone, restored=True).limit_s == 60.0, "given, though it is the default"
    usual = measuring(known, asked(known, "exact", "pipe")).work(plan())
    ((job, alone),) = usual.jobs.apart().items()
    assert usual.alone(job, alone, restored=True).limit_s == usual.limit_s


def test_a_program_that_never_ends_is_told_when_it_would(known: dict[str, Workload]) -> None:
    made = measuring(known, asked(known, "exact", "pipe", "pidfd_open"))
    program = replace(made.experiment.cases[0], params={PACK: "0" * 32})
    made = replace(made, experiment=replace(made.experiment, cases=(program, made.experiment.cases[1])))
    runs = made.runs(plan(), ended("hung", "hung"))
    assert [run.why for run in runs] == ["why; a run ends with the last process that it started, daemons too", "why"]
    leaks = replace(made.experiment, mode="timed", effort=Effort(batches=3, batch_ops=200))
    (first, _) = replace(made, experiment=leaks).runs(plan(), ended("hung", "hung"))
    assert first.why.endswith("; it runs 200 times in each of 3 batches: --ops N sets how often")


@pytest.mark.parametrize(
    ("mode", "effort", "clock"),
    [
        ("exact", Effort(), " of the guest's clock"),
        ("exact", Effort(limit_ms=9_000, limit_given=True), ""),
        ("timed", Effort(), ""),
    ],
)
def test_what_is_not_done_in_time_is_told_what_gives_it_more(
    known: dict[str, Workload], mode: Mode, effort: Effort, clock: str
) -> None:
    """``sleep 61`` "timed out after 60000 ms" in 18 s."""
    made = measuring(known, asked(known, mode, "pipe", effort=effort))
    runs = made.runs(plan(), ended("hung", why="timed out after 9000 ms"))
    assert [run.why for run in runs] == [f"timed out after 9000 ms{clock}; --limit TIME waits longer"]


def test_a_kernel_that_polls_while_it_waits_is_told_where_it_hung(known: dict[str, Workload]) -> None:
    made = measuring(known, asked(known, "exact", "pipe"))
    polling = replace(made.experiment.kernels[0], cmdline="quiet idle=poll")
    made = replace(made, experiment=replace(made.experiment, kernels=(polling, *made.experiment.kernels[1:])))
    (run,) = made.runs(plan(), ended("hung", "hung"))
    assert run.why.startswith("why; under idle=poll a kernel executes instructions for as long as it waits")


def test_how_a_program_ended_is_told_in_its_own_words(known: dict[str, Workload]) -> None:
    made = measuring(known, asked(known, "exact", "pipe", "pidfd_open"))
    program = replace(made.experiment.cases[0], params={PACK: "0" * 32})
    made = replace(made, experiment=replace(made.experiment, cases=(program, made.experiment.cases[1])))
    runs = made.runs(plan(), ended("failed", "failed", why="operation of task 0 failed: x"))
    assert [run.why for run in runs] == ["x", "operation of task 0 failed: x"]


def test_a_kernel_without_names_has_no_lock_holds(known: dict[str, Workload]) -> None:
    made = hold.Holding(measured=measuring(known, asked(known, "exact", "pipe")), sites={0: "no function names: x"})
    assert made.work(plan()) == "no function names: x"
    assert made.runs(plan(), ended("ok")) == ()


def test_a_loop_that_never_returns_cannot_be_traced(known: dict[str, Workload]) -> None:
    endless = {"pipe": replace(known["pipe"], exact_ops=0, endless=True)}
    with pytest.raises(UserError, match="never returns"):
        allowed.refuse_endless([Case(workload="pipe")], endless)
    with pytest.raises(UserError, match="add --timed"):
        allowed.refuse_unknown(asked(known, "exact", "pipe"), endless)


def test_the_plan_decides_how_boots_work(known: dict[str, Workload], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "build", lambda _cache: Path("/plugin.so"))
    cases = templates.Asked(cases=tuple(parse_case("pipe", known)))
    for template, kind in (
        (templates.run(cases, KERNELS, "timed", 1), measure.Measuring),
        (templates.trace(cases, KERNELS, ("locks",), None), trace.Tracing),
        (templates.trace(cases, KERNELS[:0], (), None), hold.Holding),
    ):
        assert isinstance(kinds.kind_of(template, known, lambda _: Names()), kind)


def test_files_that_few_kernels_can_use_are_in_no_guest_of_other_cases() -> None:
    """Five names more in every guest: pidfd_open of 6.12 cost 0.8 % more, under every seed."""
    known = catalogue()

    def files(*names: str) -> tuple[set[str], set[str]]:
        cases = tuple(case for name in names for case in parse_case(name, known))
        experiment = templates.run(templates.Asked(cases=cases), KERNELS, "timed", 1)
        made = measure.measuring(experiment, known, lambda _: Names(), None)
        work = made.work(PlannedBoot(block=0, slot=0, kernel=0))
        assert {**work.data, **work.own} == work.files
        return {*work.data}, {*work.own}

    shared, none = files("pipe", "files")
    assert shared == {"path_lookup/paths.txt", "path_lookup/tree.txt"} and not none
    assert files("files:on=xfs") == (shared, {f"files/{name}.words" for name in ("ext4", "xfs", "btrfs", "f2fs")})
