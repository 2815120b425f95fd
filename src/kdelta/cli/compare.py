# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta compare: which kernel is faster, by how much, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click

from kdelta.cli import (
    _auto,
    _calls,
    _fleet,
    _gate,
    _given,
    _kernels,
    _lab,
    _layouts,
    _mode,
    _output,
    _passes,
    _patching,
    _program,
    _session,
    _spec_file,
    _traces,
    _tracing,
    common,
)
from kdelta.cli._budget import Budget
from kdelta.cli._ending import THE_SAME, going_on

if TYPE_CHECKING:
    from kdelta.experiment.templates import Asked, Stopping
    from kdelta.model import Case, Experiment, Gap, Kernel, Looked, Progress

EPILOG = """\b
Examples:
  kdelta compare debian:6.12 debian:7.0
  kdelta compare --spec experiment.toml
  kdelta compare debian:6.1 debian:6.12 --case pidfd_open --timed
  kdelta compare src:./linux@v6.12 src:./linux@mybranch --case 'pipe:writers=1|2|5,readers=1|5|10'
  kdelta compare debian:6.12 'debian:6.12,cmdline="init_on_alloc=0"' --memcg
  kdelta compare src:debian:6.12 src:debian:6.12+my.patch --fail-on regressed:2% --selftests pidfd,clone3
  kdelta compare src:./linux@v6.12 src:./linux@v6.12+series.mbox --each
  kdelta compare debian:6.12 debian:7.0 --why stacks --format html -o page.html
  kdelta compare debian:6.12 debian:7.0 --fleet
  kdelta compare debian:6.12 debian:7.0 --on lab.toml:bench1

The first kernel is the baseline. Without KVM the mode is exact: it counts the instructions that the kernel
executes, and repeats. --timed measures wall time instead, and stops each case as soon as it is decided. With KVM, or
with --timed --exact, both are done: time decides, and the counts beside it explain.

Where a patch is given (src:TREE+PATCH) and no case, the cases are chosen that execute what the patch changed
(--case auto); what no case executes is listed above the table.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs, _output.OutputArgs, _program.ProgramArgs, _fleet.FleetArgs, _lab.LabArgs):
    """The options of ``kdelta compare``."""

    timed: bool
    exact: bool
    mitigations: Literal["default", "off", "both"]
    blocks: int | None
    max_blocks: int | None
    precision: str | None
    time_budget: str | None
    pressure: str | None
    pmu: bool
    seeds: int
    repetitions: int
    rep_features: bool
    fail_on: str | None
    why: str | None
    selftests: str | None
    each: bool
    all_cases: bool
    layouts: int | None


@click.command(cls=_program.Command, epilog=EPILOG)
@click.argument("kernels", nargs=-1, required=True, metavar="BASELINE PATCHED...")
@_spec_file.option
@common.case_options
@click.option("--timed", is_flag=True, help="Measure wall time in the guests.")
@click.option("--exact", is_flag=True, help="Count executed instructions (default without KVM). With --timed: both.")
@click.option(
    "--mitigations",
    type=click.Choice(["default", "off", "both"]),
    default="default",
    show_default=True,
    help="CPU mitigations as booted by default, off, or both as separate cells.",
)
@click.option("--blocks", type=click.IntRange(1, 400), help="Timed: a fixed number of blocks (boots per kernel); a verdict needs 8.")  # fmt: skip
@click.option(
    "--max-blocks",
    type=click.IntRange(8, 40),
    help="Timed: maximum number of blocks of the sequential plan.  [default: 20]",
)
@click.option(
    "--precision", metavar="PERCENT", help="Timed: continue until the confidence interval is this narrow, as in 1%."
)
@click.option(
    "--time-budget",
    metavar="TIME",
    help="Time limit, as in 20m; no block starts that would exceed it, and of counts no seed after the first five. With --case auto: cases are chosen that it should suffice for [default there: 10m]; where one is given, mapping and counting end with it.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 99),
    default=20,
    show_default=True,
    help="Exact: maximum number of seeds (perturbed guests) per kernel; counts that repeat need five.",
)
@click.option(
    "--repetitions",
    type=click.IntRange(1, 255),
    default=3,
    show_default=True,
    help="Exact: maximum number of repetitions per seed; one that agrees with the round before it is enough.",
)
@click.option("--rep-features", is_flag=True, help="Exact: leave ERMS/FSRM on in the guest CPU.")
@click.option("--fail-on", metavar="regressed[:PERCENT]", help="Exit 4 when a case regressed (by at least PERCENT), or panicked, hung or failed on the patched kernel alone.")  # fmt: skip
@click.option("--selftests", metavar="SUITE,...", help="Run these kernel selftests first; a new failure closes the gate.")  # fmt: skip
@click.option("--each", is_flag=True, help="Measure a series patch by patch: which one made the difference.")
@click.option("--all", "all_cases", is_flag=True, help="Cases chosen by a patch: add some that execute nothing that changed, as a control.")  # fmt: skip
@click.option("--layouts", type=click.IntRange(2, 32), metavar="N", help=_layouts.HELP)
@common.pressure_option
@common.pmu_option
@_program.tree_option
@_program.options
@click.option(
    "--why",
    metavar="SET[,SET...]",
    help="Then trace: locks, sizes, allocs, syscalls, wakeups, hold (kdelta trace); or stacks: follow the calls of "
    "what differs, for where they part and for flame graphs (HTML, serve).",
)
@_fleet.options
@_lab.options
@common.machine_options
@_output.output_options
def command(kernels: tuple[str, ...], **options: Any) -> int:
    """Compare kernels: boot them, run the cases, say which is faster and why."""
    return run(kernels, Args(**options))


def run(
    kernels: tuple[str, ...],
    args: Args,
    begun: Callable[[Experiment], None] = lambda _: None,
    budget: Budget | None = None,
) -> int:
    """The command on typed arguments; ``begun`` gets the experiment as soon as it is stored.

    ``budget``: the one of ``args``, of who does more within it.
    """
    gate = _gate.parsed(args.fail_on)
    calls, traces = _calls.split(args.why)
    if traces:
        _tracing.split(traces, (_calls.STACKS,))  # refused before anything is measured
    _program.refuse_bare(kernels)
    specs = _patching.named(kernels, args.selftests, args.each)
    _layouts.refuse(args.layouts, specs, each=args.each, fleet=args.fleet, lab=bool(args.lab))
    budget_s = common.seconds(args.time_budget, "--time-budget")
    budget = budget or Budget(budget_s)
    auto = _auto.wanted(args, specs)
    args.refuse_on({"--exact": args.exact, "--why": args.why, "--selftests": args.selftests})
    args.refuse(budget=budget_s is not None and not auto, others={"--why": args.why, "--fail-on": args.fail_on})
    _asked(args, _auto.given(args) if auto else None)  # refuses bad input before any kernel is fetched
    with _session.opened(args.quiet) as session:
        with session.progress() as progress:
            host = args.met(progress)
            _fleet.built(args, specs, progress, each=args.each, first=not args.each)
            resolved, gaps = _patching.parted((_auto if auto else _patching).fetched(specs, args.each, progress))
            if not gaps:
                _patching.refuse_alone(specs, resolved)
            resolved = _layouts.linked(resolved, specs, args.layouts, args.seed, progress)
            budget.begin()
            with going_on(THE_SAME):
                chosen = _auto.choose(args, specs, resolved, budget, progress) if auto else (None, None)
            if not _wanted(args):
                progress.step("looking at this machine: QEMU, and whether KVM runs a guest")
            template, counts = _templates(resolved, gaps, args, *chosen)
            if calls:
                _calls.refuse(counts or template)
            if template.cases:
                _kernels.note_equal(resolved, template.mode, progress)
                note_few(template, progress)
            experiment = _passes.begin(session, _lab.of(template, host), counts, args.seed)
            begun(experiment)
            experiment = _patching.annotated(session.store, experiment, progress)
            left_s = budget.left_s() if auto else budget_s
            if not _passes.run(session, experiment, args, progress, left_s, counts_asked=args.exact):
                return _fleet.detached(experiment)
            traced = _tracing.beside(session, experiment, traces, progress) if traces else None
            if calls:
                _calls.follow(session.store, experiment, progress)
        result = session.show(experiment, args.explained() if calls else args)
        if traced is not None:
            _traces.show_below(session.store, traced, args)
    _gate.refuse(result, gate, args.fail_on)
    _output.refuse_lost(result)
    _patching.refuse_unbuilt(resolved, gaps)
    return 0


def note_few(experiment: Experiment, progress: Progress) -> None:
    """Say before any boot that so few blocks or seeds as were asked for give no verdict, whatever comes of them."""
    from kdelta.stats import counts, paired

    timed = experiment.mode == "timed"
    least, option = (paired.MIN_PAIRS, "--blocks") if timed else (counts.FACT_SEEDS, "--seeds")
    if experiment.blocks < least:
        progress.note(f"{option} {experiment.blocks} gives figures without a verdict: a verdict needs {least}")


def _asked(args: Args, chosen: Sequence[Case] | None) -> tuple[Asked, Stopping]:
    """Everything of the experiment but its kernels and its mode; refuses what cannot be.

    ``chosen``: the cases, where not the user says which.
    """
    from kdelta.experiment import templates

    if wanted := _wanted(args) or _mode.foreseen(args.kvm, args.qemu):
        _refuse_idle(args, wanted)
    args.format  # noqa: B018 - an unknown format is refused here
    stop = templates.stopping(args.blocks, args.max_blocks, common.percentage(args.precision, "--precision"))
    cases = tuple(chosen) if chosen is not None else _cases(args)
    effort = args.effort(seeds=args.seeds, repetitions=args.repetitions, pmu=args.pmu or bool(args.lab))
    asked = args.placed(args.asked(cases, effort, mitigations=args.mitigations, rep_features=args.rep_features))
    if args.fleet:
        _fleet.refuse(asked)
    return asked, stop


def _cases(args: Args) -> tuple[Case, ...]:
    """The cases that the user asks for, or the usual ones."""
    pressed = partial(args.surrounded, pressure=args.pressure)
    return args.cases_or(lambda: args.chosen(args.pressure), args.named, surrounded=pressed)


def _wanted(args: Args) -> _mode.Passes | None:
    timed = args.timed or bool(args.lab)
    return _mode.passes(timed=timed, exact=args.exact, pressure=args.pressure, kvm=args.kvm)


def _refuse_idle(args: Args, mode: _mode.Passes) -> None:
    """Refuse what would do nothing in ``mode``."""
    if mode == "both":
        _passes.refuse(each=args.each)
        _given.refuse_idle_machine("timed", args.smp)  # turns are of the counts
        return
    hint = "add --timed, or leave it out" if mode == "exact" else "add --exact instead of --timed, or leave it out"
    _given.refuse_other_mode(mode, hint)
    _given.refuse_idle_machine(mode, args.smp)


def _templates(
    kernels: tuple[Kernel, ...],
    gaps: tuple[Gap, ...],
    args: Args,
    chosen: Sequence[Case] | None = None,
    looked: Looked | None = None,
) -> tuple[Experiment, Experiment | None]:
    """What is reported, and where it is of times the counts that explain it."""
    from kdelta.experiment import templates

    asked, stop = _asked(args, chosen)
    tests = _patching.suites(args.selftests)
    mode = _wanted(args) or _mode.of_machine(kernels, args.kvm, args.qemu, args.folders)
    said = args.timed or args.lab or args.pressure or args.each or args.fleet
    if mode == "timed" and not said and _passes.usual(asked.cases, common.load_workloads(args.folders), args.smp):
        mode = "both"  # where KVM runs
    _refuse_idle(args, mode)
    counts = templates.compare(asked, kernels, "exact", stop, looked=looked) if mode == "both" else None
    reported = "timed" if mode == "both" else mode
    made = templates.compare(
        asked,
        kernels,
        reported,
        stop,
        selftests=tests,
        gated=args.fail_on is not None,
        series=args.each,
        gaps=gaps,
        looked=looked,
    )
    return made, counts
