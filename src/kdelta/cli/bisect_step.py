# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta bisect-step: one step of a bisection that git itself drives (git bisect run)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _git_bisect, _kernels, _one_case, _session, common
from kdelta.report.figures import count

if TYPE_CHECKING:
    from kdelta.model import Case, Experiment, Kernel, Mode

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


@click.command(cls=_git_bisect.Step, epilog=EPILOG)
@click.argument("kernel", default="src:.")
@click.option("--like", metavar="EXPERIMENT", help="A comparison of the good kernel with the bad one: the two levels.")
@click.option("--good", type=float, metavar="FIGURE", help="The good kernel's figure, in the metric's unit.")
@click.option("--bad", type=float, metavar="FIGURE", help="The bad kernel's figure.")
@click.option("--timed", is_flag=True, help="Measure wall time in the guests.")
@click.option("--metric", metavar="METRIC", help="Use this metric of the case instead of its primary one.")
@click.option("--boots", type=click.IntRange(2, 1000), default=8, show_default=True, help="Timed: boots; exact takes 5 seeds.")  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@common.case_options_by("")
@common.machine_options
def command(kernel: str, **options: Any) -> int:
    """Measure KERNEL (the work tree) and exit 0 for good, 1 for bad, 125 for skip."""
    return run(kernel, Args(**options))


def run(kernel: str, args: Args) -> int:
    """The command on typed arguments; returns git's exit code."""
    from kdelta.experiment import commits

    refusal = "bisect-step measures one kernel that can be booted, by default src:."
    _kernels.bootable([kernel], refusal)
    spec = _kernels.single(kernel, refusal)
    _kernels.look([spec])
    mode: Mode = "timed" if args.timed else "exact"
    case = _one_case.one_case(args)
    metric = _one_case.metric_of(args, mode, case, args.metric)
    with _session.opened(args.quiet) as session, session.progress() as progress:
        if args.like is None:
            levels = _git_bisect.given(args.good, args.bad)
        else:
            levels = _git_bisect.like(session.store, args.like, mode, case.name, metric.name, args.smp)
        made = commits.build(spec, progress)
        if isinstance(made, str):
            return _git_bisect.skip(made)
        experiment = session.begin(_template(args, made, case), args.seed)
        session.run(experiment, progress)
        numbers = [n for n in session.store.numbers(experiment.id) if n.metric in ("", metric.name)]
    values = [n.value for n in numbers if n.value is not None and n.state == "ok" and n.boot_state == "ok"]
    if len(values) < min(2, experiment.blocks):
        why = next((f"{n.state}: {n.why}" for n in numbers if n.state != "ok"), "the boots gave no value")
        return _git_bisect.skip(why)
    known = f"good {count(levels[0])}, bad {count(levels[1])}"
    return _git_bisect.told(values, levels, mode, f"{metric.unit} ({known}; {experiment.id})")


def _template(args: Args, kernel: Kernel, case: Case) -> Experiment:
    from kdelta.experiment import templates

    mode: Mode = "timed" if args.timed else "exact"
    return templates.run(args.asked([case]), (kernel,), mode, args.boots if args.timed else 5, reuse=True)
