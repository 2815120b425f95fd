# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta compare: which kernel is faster, by how much, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from kdelta.cli import _program, _spec_file, common
from kdelta.errors import RegressionFound, UserError

if TYPE_CHECKING:
    from kdelta.experiment.templates import Asked, Stopping
    from kdelta.model import Experiment, Kernel, Mode
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  kdelta compare debian:6.12 debian:7.0
  kdelta compare --spec experiment.toml
  kdelta compare debian:6.1 debian:6.12 --case pidfd_open --timed
  kdelta compare debian:6.12 src:./linux@mybranch --case 'pipe:writers=1|2|5,readers=1|5|10'
  kdelta compare debian:6.12 'debian:6.12,cmdline="init_on_alloc=1"' --memcg
  kdelta compare src:debian:6.12 src:debian:6.12+my.patch --fail-on regressed:2% --selftests pidfd,clone3
  kdelta compare src:./linux@v6.12 src:./linux@v6.12+series.mbox --each

The first kernel is the baseline. Without KVM the mode is exact: it counts the instructions that the kernel
executes, and repeats. --timed measures wall time instead, and stops each case as soon as it is decided.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs, common.OutputArgs, _program.ProgramArgs):
    """The options of ``kdelta compare``."""

    timed: bool
    exact: bool
    mitigations: Literal["default", "off", "both"]
    blocks: int | None
    max_blocks: int | None
    precision: str | None
    time_budget: str | None
    pressure: str | None
    seeds: int
    repetitions: int
    rep_features: bool
    fail_on: str | None
    why: str | None
    selftests: str | None
    each: bool


def _mode(args: Args, kernels: tuple[Kernel, ...]) -> Mode:
    """What was asked for, else time where KVM runs these kernels and exact counts where it does not."""
    if args.timed or args.exact or args.pressure or args.kvm == "off":
        return "timed" if args.timed or args.pressure else "exact"
    from kdelta.experiment.survey import programs_for, survey

    ground = survey(kernels, args.kvm, args.qemu, programs_for(kernels, args.folders))
    return "timed" if ground.accel == "kvm" else "exact"


@click.command(cls=_program.Command, epilog=EPILOG)
@click.argument("kernels", nargs=-1, required=True, metavar="BASELINE PATCHED...")
@_spec_file.option
@common.case_options
@click.option("--timed", is_flag=True, help="Measure wall time in the guests.")
@click.option("--exact", is_flag=True, help="Count executed instructions (default without KVM).")
@click.option(
    "--mitigations",
    type=click.Choice(["default", "off", "both"]),
    default="default",
    show_default=True,
    help="CPU mitigations as booted by default, off, or both as separate cells.",
)
@click.option("--blocks", type=click.IntRange(1, 400), help="Timed: a fixed number of blocks (boots per kernel).")
@click.option(
    "--max-blocks",
    type=click.IntRange(8, 40),
    help="Timed: maximum number of blocks of the sequential plan.  [default: 20]",
)
@click.option(
    "--precision", metavar="PERCENT", help="Timed: continue until the confidence interval is this narrow, as in 1%."
)
@click.option(
    "--time-budget", metavar="TIME", help="Timed: time limit; no block starts that would exceed it, as in 20m."
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
@click.option("--fail-on", metavar="regressed[:PERCENT]", help="Exit 4 when a case regressed (by at least PERCENT).")
@click.option("--selftests", metavar="SUITE,...", help="Run these kernel selftests first; a new failure closes the gate.")  # fmt: skip
@click.option("--each", is_flag=True, help="Measure a series patch by patch: which one made the difference.")
@common.pressure_option
@_program.tree_option
@_program.options
@click.option(
    "--why", metavar="SET[,SET...]", help="Then trace: locks, sizes, allocs, syscalls, wakeups, hold (kdelta trace)."
)
@common.machine_options
@common.output_options
def command(kernels: tuple[str, ...], **options: Any) -> int:
    """Compare kernels: boot them, run the cases, say which is faster and why."""
    return run(kernels, Args(**options))


def run(kernels: tuple[str, ...], args: Args) -> int:
    """The command on typed arguments."""
    from kdelta.cli import _patching, trace
    from kdelta.cli.progress import Reporter
    from kdelta.experiment import annotate
    from kdelta.kernel.resolve import resolve_all
    from kdelta.kernel.sources import parse_kernel
    from kdelta.results import gates
    from kdelta.store.store import Store

    gate = gates.parse(args.fail_on) if args.fail_on else None
    if args.why:
        trace.split(args.why)  # refused before anything is measured
    _program.refuse_bare(kernels)
    specs = [parse_kernel(text) for text in kernels]
    _patching.check(specs, args.selftests, args.each)
    if len(specs) < 2 and not specs[0].is_range and not args.each:
        raise UserError("compare needs two kernels or more, the baseline first (kdelta run measures the running one)")
    budget_s = common.seconds(args.time_budget, "--time-budget")
    _asked(args)  # refuses bad input before any kernel is fetched
    with Store() as store:
        with Reporter(args.quiet) as reporter:
            resolved = _patching.resolve_each(specs, reporter) if args.each else resolve_all(specs, reporter)
            experiment = _create(store, resolved, args)
            experiment = annotate.note_code(store, experiment, reporter)
            experiment = annotate.run_gate(store, experiment, reporter)
            common.run_experiment(store, experiment, reporter, budget_s)
            traced = trace.beside(store, experiment, args.why, reporter) if args.why else None
        result = common.show(store, experiment.id, args)
        if traced is not None:
            trace.show_below(store, traced, args)
    common.raise_if_lost(result)
    if gate is not None and (hits := gates.hits(result, gate)):
        raise RegressionFound(f"--fail-on {args.fail_on}: " + "; ".join(hits))
    return 0


def _asked(args: Args) -> tuple[Asked, Stopping]:
    """Everything of the experiment but its kernels and its mode; refuses what cannot be."""
    from kdelta.experiment import templates

    if args.exact and args.pressure:
        raise UserError("--pressure needs timed mode: use --timed, not --exact")
    if args.timed and args.exact:
        raise UserError("--timed and --exact cannot be combined")
    args.format  # noqa: B018 - an unknown format is refused here
    stop = templates.stopping(args.blocks, args.max_blocks, common.percentage(args.precision, "--precision"))
    cases = args.cases_or(lambda: args.chosen(args.pressure), args.named)
    effort = args.effort(seeds=args.seeds, repetitions=args.repetitions)
    return args.asked(cases, effort, mitigations=args.mitigations, rep_features=args.rep_features), stop


def _create(store: Store, kernels: tuple[Kernel, ...], args: Args) -> Experiment:
    from kdelta.experiment import templates
    from kdelta.experiment.selftests import suites

    if any(not kernel.image_path for kernel in kernels):
        raise UserError("the running kernel cannot be booted in a guest without its image: use kdelta run")
    asked, stop = _asked(args)
    tests = suites(args.selftests) if args.selftests is not None else ()
    mode = _mode(args, kernels)
    template = templates.compare(asked, kernels, mode, stop, selftests=tests, series=args.each)
    experiment = templates.created(template, args.seed, common.now)
    store.create(experiment)
    return experiment
