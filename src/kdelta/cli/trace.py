# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta trace: what kernels do in a case, from inside: locks, sizes, allocations, system calls, wake-ups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _output, _program, common
from kdelta.cli._say import say
from kdelta.errors import GuestError, UserError

if TYPE_CHECKING:
    from kdelta.attribution.traces import SetResult
    from kdelta.model import Experiment, Progress
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  kdelta trace debian:6.12 debian:7.2 --case pipe --what locks,sizes
  kdelta trace debian:6.12 --case pidfd_open --what allocs --ops 1000
  kdelta trace debian:6.12 debian:7.2 --case pipe:writers=2 --what locks --smp 2
  kdelta trace debian:6.12 debian:7.2 --case pipe --what hold      instructions in each mutex, exactly
  kdelta trace debian:6.12 --what syscalls -- ls -l /etc
  kdelta compare debian:6.12 debian:7.2 --case pipe --why locks

Traced boots measure no speed: each event costs thousands of instructions. What they count is exact, because a fixed
number of operations runs between arming and disarming. docs/how-to/trace.md explains the figures.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs, _program.ProgramArgs):
    """The options of ``kdelta trace``."""

    what: str
    ops: int | None
    as_json: bool
    output: Path | None
    quiet: bool


@click.command(cls=_program.Command, epilog=EPILOG)
@click.argument("kernels", nargs=-1, required=True, metavar="KERNEL...")
@click.option(
    "--what",
    "-w",
    required=True,
    metavar="SET[,SET...]",
    help="What to look at: locks, sizes, allocs, syscalls, wakeups.",
)
@click.option(
    "--ops", type=click.IntRange(1, 10_000_000), help="Operations of each task.  [default: 32 exact repetitions]"
)
@common.case_options
@_program.tree_option
@_program.options
@common.machine_options
@click.option("--json", "as_json", is_flag=True, help="Print as JSON (schema kdelta-trace/1).")
@_output.output_option("Write to a file.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
def command(kernels: tuple[str, ...], **options: Any) -> int:
    """Trace KERNELs from inside their guests, and show what each operation does side by side."""
    from kdelta.cli.progress import Reporter
    from kdelta.experiment import templates
    from kdelta.kernel.resolve import resolve_all
    from kdelta.kernel.sources import parse_kernel
    from kdelta.store.store import Store

    args = Args(**options)
    wanted = split(args.what)
    cases = args.cases_or(args.chosen, args.named)
    _program.refuse_bare(kernels)
    specs = [parse_kernel(text) for text in kernels]
    with Store() as store:
        with Reporter(args.quiet) as reporter:
            resolved = resolve_all(specs, reporter)
            if any(not kernel.image_path for kernel in resolved):
                raise UserError("the running kernel cannot be traced in a guest without its image: name another kernel")
            asked = args.asked(cases)
            made = [_run(store, templates.trace(asked, resolved, sets, args.ops), reporter) for sets in wanted]
        found = show(store, made, args.as_json, args.output)
    return conclude(found)


def split(what: str) -> list[tuple[str, ...]]:
    """``locks,hold`` -> one group of collector sets for each experiment; an empty group stands for exact holds.

    Raises:
        UserError: one of them is not known.
    """
    from kdelta.results.traces import HOLD
    from kdelta.spec import collectors

    names = [name.strip() for name in what.split(",")]
    rest = [name for name in names if name != HOLD]
    if names.count(HOLD) > 1:
        raise UserError(f"{HOLD!r} is given twice")
    groups = [tuple(one.name for one in collectors.choose(",".join(rest), collectors.catalogue()))] if rest else []
    return [*groups, ()] if HOLD in names else groups


def _run(store: Store, template: Experiment, progress: Progress) -> str:
    """One experiment, made and run; its id."""
    from kdelta.experiment import templates, trace

    workloads = common.load_workloads(tuple(map(Path, template.folders)))
    trace.refuse_endless(template.cases, workloads)
    experiment = templates.created(template, 0, common.now)
    store.create(experiment)
    common.run_experiment(store, experiment, progress)
    return experiment.id


def show(store: Store, names: Sequence[str], as_json: bool, output: Path | None) -> tuple[SetResult, ...]:
    """Print what stored traces found, rebuilt from the store."""
    from kdelta.report import traces
    from kdelta.results.traces import results

    parts = [results(store, name) for name in names]
    render = traces.to_json if as_json else traces.render
    common.write(render(parts), output)
    return tuple(result for _, found in parts for result in found)


def show_below(store: Store, names: Sequence[str], args: common.OutputArgs) -> None:
    """Print traces after the report that they belong to; where that is no text for people, only where they are."""
    if args.output is None and args.format == "terminal":
        say()
        show(store, names, False, None)
    else:
        say("traced: " + "; ".join(f"kdelta report {name}" for name in names), err=True)


def beside(store: Store, measured: Experiment, what: str, progress: Progress) -> list[str]:
    """Trace the kernels and cases of a finished experiment (``compare --why``); the ids of the traces."""
    from kdelta.experiment import templates

    asked = templates.asked_in(measured)
    return [_run(store, templates.trace(asked, measured.kernels, sets, None), progress) for sets in split(what)]


def conclude(found: Sequence[SetResult]) -> int:
    """The exit code of a trace.

    Raises:
        GuestError: no guest came back at all.
    """
    if found and all(result.state in ("lost", "panicked", "hung") for result in found):
        first = found[0]
        raise GuestError(f"no kernel could be traced: {first.kernel}: {first.state}: {first.why}")
    return 0
