# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta bisect-step: one step of a bisection that git itself drives (git bisect run)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import common
from kdelta.cli._say import say
from kdelta.errors import KdeltaError, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdelta.model import Case, Experiment, Kernel, Metric, Mode
    from kdelta.store.store import Store

GOOD, BAD, SKIP = 0, 1, 125
STOP = 128  # git bisect run takes 1 to 127 for "bad", and stops at 128

EPILOG = """\b
Examples:
  kdelta compare src:.@v6.8 src:.@v6.9 --case pidfd_open
  git bisect start v6.9 v6.8
  git bisect run kdelta bisect-step --case pidfd_open --like 20261121-1530
  git bisect run kdelta bisect-step --case pipe --good 3040 --bad 3410

Builds and measures the work tree. Exit code 0: on GOOD's side of the middle; 1: on BAD's; 125: it does not build or boot,
or the figures lie on both sides; 128: anything else, which stops git bisect.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs):
    """The options of ``kdelta bisect-step``."""

    timed: bool
    metric: str | None
    like: str | None
    good: float | None
    bad: float | None
    boots: int
    quiet: bool


class _Step(click.Command):
    """Turns every refusal and failure into 128: git must not take a typo for a bad commit."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            say(f"kdelta: {error.format_message()} (see kdelta bisect-step --help)", err=True)
            raise click.exceptions.Exit(STOP) from None

    def invoke(self, ctx: click.Context) -> int:
        try:
            code: int = super().invoke(ctx)
        except KdeltaError as error:
            say(f"kdelta: {error}", err=True)
            raise click.exceptions.Exit(STOP) from None
        return code


@click.command(cls=_Step, epilog=EPILOG)
@click.argument("kernel", default="src:.")
@click.option("--like", metavar="EXPERIMENT", help="A comparison of the good kernel with the bad one: the two levels.")
@click.option("--good", type=float, metavar="FIGURE", help="The good kernel's figure, in the metric's unit.")
@click.option("--bad", type=float, metavar="FIGURE", help="The bad kernel's figure.")
@click.option("--timed", is_flag=True, help="Measure wall time in the guests.")
@click.option("--metric", metavar="METRIC", help="Use this metric of the case instead of its primary one.")
@click.option("--boots", type=click.IntRange(2, 1000), default=8, show_default=True, help="Timed: boots; exact takes 5 seeds.")  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@common.case_options
@common.machine_options
def command(kernel: str, **options: Any) -> int:
    """Measure KERNEL (the work tree) and exit 0 for good, 1 for bad, 125 for skip."""
    return run(kernel, Args(**options))


def run(kernel: str, args: Args) -> int:
    """The command on typed arguments; returns git's exit code."""
    from kdelta.cli.bisect import one_case
    from kdelta.cli.progress import Reporter
    from kdelta.experiment import bisect
    from kdelta.kernel.resolve import check
    from kdelta.kernel.sources import parse_kernel
    from kdelta.store.store import Store

    spec = parse_kernel(kernel)
    if spec.is_range or spec.kind == "running":
        raise UserError("bisect-step measures one kernel that can be booted, by default src:.")
    check([spec])
    workloads = common.load_workloads(args.folders)
    case = one_case(args)
    metric = bisect.metric_of("timed" if args.timed else "exact", workloads[case.workload], args.metric)
    with Store() as store, Reporter(args.quiet) as reporter:
        levels = _levels(store, args, case.name, metric)
        made = bisect.build(spec, reporter)
        if isinstance(made, str):
            say(f"skip: {made}")
            return SKIP
        experiment = _experiment(args, made, case)
        store.create(experiment)
        common.run_experiment(store, experiment, reporter)
        numbers = [n for n in store.numbers(experiment.id) if n.metric in ("", metric.name)]
    values = [n.value for n in numbers if n.value is not None and n.state == "ok" and n.boot_state == "ok"]
    if len(values) < min(2, experiment.blocks):
        why = next((f"{n.state}: {n.why}" for n in numbers if n.state != "ok"), "the boots gave no value")
        say(f"skip: {why}")
        return SKIP
    return _say(values, levels, experiment, metric)


def _levels(store: Store, args: Args, case: str, metric: Metric) -> tuple[float, float]:
    """The good and the bad figure.

    Raises:
        UserError: not given, or they do not differ.
    """
    import statistics

    if args.like is None:
        if args.good is None or args.bad is None:
            raise UserError("bisect-step needs --like EXPERIMENT, or --good and --bad with a figure each")
        good, bad = args.good, args.bad
    else:
        if args.like == "last":
            raise UserError("--like needs the comparison's id: each step is an experiment too, so 'last' would be it")
        found = store.experiment(args.like)
        index = next((i for i, c in enumerate(found.cases) if c.name == case), None)
        if index is None or len(found.kernels) < 2 or found.mode != ("timed" if args.timed else "exact"):
            mode = "timed" if args.timed else "exact"
            raise UserError(f"experiment {found.id} is not an {mode} comparison of two kernels with the case {case}")
        sides: dict[int, list[float]] = {0: [], len(found.kernels) - 1: []}
        for n in store.numbers(found.id, index, metric.name):
            if n.kernel in sides and n.value is not None:
                sides[n.kernel].append(n.value)
        if not all(sides.values()):
            raise UserError(f"experiment {found.id} has no figures of {case}, {metric.name} for both kernels")
        good, bad = (statistics.median(values) for values in sides.values())
    if good == bad:
        raise UserError(f"the good and the bad figure are the same ({good:g}): they cannot be told apart")
    return good, bad


def _experiment(args: Args, kernel: Kernel, case: Case) -> Experiment:
    from kdelta.experiment import templates

    mode: Mode = "timed" if args.timed else "exact"
    template = templates.run(args.asked([case]), (kernel,), mode, args.boots if args.timed else 5, reuse=True)
    return templates.created(template, args.seed, common.now)


def _say(values: Sequence[float], levels: tuple[float, float], experiment: Experiment, metric: Metric) -> int:
    from kdelta.experiment import search

    bad = search.side_of_all(values, *levels, noisy=experiment.mode == "timed")
    word = "between good and bad, skip" if bad is None else "bad" if bad else "good"
    figures = f"{min(values):g}" if min(values) == max(values) else f"{min(values):g} to {max(values):g}"
    say(f"{word}: {figures} {metric.unit} (good {levels[0]:g}, bad {levels[1]:g}; {experiment.id})")
    return SKIP if bad is None else BAD if bad else GOOD
