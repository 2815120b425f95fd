# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta scale: throughput by number of tasks, and scaling efficiency; or what crosses between CPUs by their number."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from kdelta.cli import _crossing, _given, _kernels, _output, _program, _session, common
from kdelta.cli._say import say
from kdelta.errors import UserError
from kdelta.units import counted

if TYPE_CHECKING:
    from kdelta.model import Case, Experiment, Kernel
    from kdelta.results.scaling import Point

EPILOG = """\b
Examples:
  kdelta scale debian:6.12 debian:7.0 --case thread_spawn --tasks 1..4
  kdelta scale debian:7.0 --case path_lookup:mode=threads --tasks 1,2,4,8 --smp 8
  kdelta report last --format html -o scaling.html     the curves of the same experiment
  kdelta scale --exact debian:6.12 debian:7.0 --case contention/dup_threads --cpus 1,2,4,8
  kdelta scale --exact debian:7.0 --case contention/open_one --cpus 1,2,4,8 -o lines.html
  kdelta scale --exact debian:7.0 --case thread_spawn --cpus 4 --turn 200,400,800

Guests have as many CPUs as this host unless --smp says otherwise. Efficiency is throughput per task relative to the
fewest tasks: 100 % is perfect scaling.

With --exact each CPU has a task: cache lines that move, locks found taken and instructions per operation, by the number
of CPUs, and the lines that grow with it. Several lengths of turns (--turn) must agree.
"""
_CASES = ("path_lookup", "pipe", "thread_spawn")


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs):
    """The options of ``kdelta scale``."""

    several_turns: ClassVar[bool] = True
    tasks: str | None
    exact: bool
    cpus: str | None
    seeds: int
    blocks: int
    as_json: bool
    output: Path | None
    quiet: bool


@click.command(cls=_program.Without, epilog=EPILOG)
@click.argument("kernels", nargs=-1, required=True, metavar="KERNEL...")
@click.option("--tasks", metavar="1..N", help="Numbers of tasks, as 1..4 or 1,2,4,8.  [default: 1 to the guest's CPUs]")
@click.option("--exact", is_flag=True, help="Count what crosses between CPUs instead of measuring time.")
@click.option("--cpus", metavar="1,2,N", help="Exact: numbers of CPUs, a task on each.  [default: 1,2,4,8]")
@click.option("--seeds", type=click.IntRange(1, 99), default=8, show_default=True, help="Exact: maximum number of seeds per kernel; a verdict on transfers needs eight.")  # fmt: skip
@click.option("--blocks", type=click.IntRange(1, 1000), default=3, show_default=True, help="Boots per kernel.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON (schema kdelta-scale/1).")
@_output.output_option("Exact: draw the curves and the lines that grow, as an HTML page in this file.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@common.case_options
@common.machine_options
@click.pass_context
def command(context: click.Context, /, kernels: tuple[str, ...], **options: Any) -> int:
    """Measure how cases scale over tasks on KERNELs, in time or by what crosses between CPUs."""
    from click.core import ParameterSource

    from kdelta.results import scaling

    chosen = context.get_parameter_source("smp") is not ParameterSource.DEFAULT
    if options["exact"]:
        if chosen:
            raise UserError("--exact boots guests of several sizes: say --cpus instead of --smp")
        return _crossing.run(kernels, Args(**options))
    if len(options["turn"]) > 1:
        raise UserError("--turn takes one length without --exact")
    if options["cpus"]:
        raise UserError("--cpus is for --exact; --tasks says how many tasks there are, --smp how many CPUs")
    args = Args(**options | {"smp": options["smp"] if chosen else os.cpu_count() or 1})
    _given.refuse_other_mode("timed", "leave it out")
    _given.refuse(["suites"], "would do nothing: scale takes single cases, as in --case pipe")
    specs = _kernels.bootable(
        kernels, "scale boots guests: name a kernel; kdelta run --case NAME:tasks=1|2|4 measures the running one"
    )
    cases = _cases(args)
    with _session.opened(args.quiet) as session:
        with session.progress() as progress:
            template = _template(args, cases, _kernels.to_measure(specs, progress))
            experiment = session.begin(template, args.seed)
            session.run(experiment, progress)
        found = scaling.points(experiment, session.store)
    say(_json(experiment, found) if args.as_json else "\n".join(_lines(experiment, found)))
    return 0


def _tasks(args: Args) -> tuple[int, ...]:
    from kdelta.results import scaling

    return scaling.task_counts(args.tasks or f"1..{args.smp}")


def _cases(args: Args) -> tuple[Case, ...]:
    from kdelta.results import scaling

    known = common.load_workloads(args.folders)
    cases = [case for text in args.cases or _CASES for case in scaling.grid(text, _tasks(args), known)]
    if args.memcg:
        raise UserError("scale measures in the root cgroup; leave --memcg out")
    if len({case.name for case in cases}) < len(cases):
        raise UserError("a case is given twice")
    return tuple(cases)


def _template(args: Args, cases: tuple[Case, ...], kernels: tuple[Kernel, ...]) -> Experiment:
    from kdelta.experiment import templates

    return templates.scale(args.asked(cases), kernels, args.blocks, _tasks(args))


def _json(experiment: Experiment, found: Sequence[Point]) -> str:
    import json

    import msgspec

    document = {
        "schema": "kdelta-scale/1",
        "experiment": experiment.id,
        "cpus": experiment.machine.smp,
        "points": msgspec.to_builtins(list(found)),
    }
    return json.dumps(document, indent=2)


def _lines(experiment: Experiment, found: Sequence[Point]) -> list[str]:
    from kdelta.units import human

    cpus, boots = experiment.machine.smp, experiment.blocks
    lines = [f"kdelta scale {experiment.id}: guests of {counted(cpus, 'CPU')}, {counted(boots, 'boot')} of each kernel"]
    if any(point.tasks > cpus for point in found):
        lines.append(f"more tasks than the {cpus} CPUs take turns: that is time slicing, not contention in the kernel")
    case = ""
    for p in found:
        if p.case != case:
            case = p.case
            lines += ["", case, f"  {'kernel':20}{'tasks':>6}{'throughput':>18}{'efficiency':>12}{'slowest':>10}"]
        if p.ops_per_s is None or p.efficiency is None or p.least is None:
            lines.append(f"  {p.kernel[:19]:20}{p.tasks:>6}  {p.why}"[:72])
            continue
        lines.append(
            f"  {p.kernel[:19]:20}{p.tasks:>6}{human(p.ops_per_s, 'ops/s'):>18}{100 * p.efficiency:>10.0f} %"
            f"{100 * p.least:>8.0f} %"
        )
    return lines
