# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta trace: what kernels do in a case, from inside: locks, sizes, allocations, system calls, wake-ups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import common
from kdelta.errors import GuestError, UserError

if TYPE_CHECKING:
    from kdelta.attribution.traces import SetResult
    from kdelta.collectors import Collector
    from kdelta.model import Experiment
    from kdelta.store.store import Store
    from kdelta.tracing import Voice

EPILOG = """\b
Examples:
  kdelta trace debian:6.12 debian:7.2 --case pipe --what locks,sizes
  kdelta trace debian:6.12 --case pidfd_open --what allocs --ops 1000
  kdelta trace debian:6.12 debian:7.2 --case pipe:writers=2 --what locks --smp 2
  kdelta compare debian:6.12 debian:7.2 --case pipe --why locks

Traced boots measure no speed: each event costs thousands of instructions. What they count is exact, because a fixed
number of operations runs between arming and disarming. docs/how-to/trace.md explains the figures.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.CaseArgs, common.MachineArgs):
    """The options of ``kdelta trace``."""

    what: str
    ops: int | None
    as_json: bool
    output: Path | None
    quiet: bool


@click.command(epilog=EPILOG)
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
@common.machine_options
@click.option("--json", "as_json", is_flag=True, help="Print as JSON (schema kdelta-trace/1).")
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
def command(kernels: tuple[str, ...], **options: Any) -> int:
    """Trace KERNELs from inside their guests, and show what each operation does side by side."""
    from kdelta import collectors, tracing
    from kdelta.cli.progress import Reporter
    from kdelta.kernel.resolve import resolve_all
    from kdelta.model import Experiment, MachineOptions
    from kdelta.spec import parse_kernel
    from kdelta.store.store import Store

    args = Args(**options)
    sets = collectors.choose(args.what, collectors.catalogue())
    workloads = common.load_workloads(args.folders)
    cases = common.parse_cases(args.cases, workloads, args.memcg)
    specs = [parse_kernel(text) for text in kernels]
    with Store() as store, Reporter(args.quiet) as reporter:
        resolved = resolve_all(specs, reporter)
        if any(not kernel.image_path for kernel in resolved):
            raise UserError("the running kernel cannot be traced in a guest without its image: name another kernel")
        template = Experiment(
            id="",
            mode="timed",
            kernels=resolved,
            cases=cases,
            machine=MachineOptions(smp=args.smp, memory_mib=args.memory, kvm=args.kvm, qemu=args.qemu),
            effort=args.effort(),
            command=common.command_line(),
            extra={"folders": "\n".join(str(folder) for folder in args.folders)} if args.folders else {},
        )
        experiment = tracing.new(template, sets, workloads, args.ops, common.now)
        store.create(experiment)
        tracing.execute(experiment, store, reporter, workloads, args.folders)
    with Store() as store:
        found = show(store, experiment.id, args.as_json, args.output)
    _raise_if_nothing(found)
    return 0


def show(store: Store, experiment_id: str, as_json: bool, output: Path | None) -> tuple[SetResult, ...]:
    """Print what a stored trace found, rebuilt from the store."""
    from kdelta import tracing
    from kdelta.report import traces

    experiment, found = tracing.results(store, experiment_id)
    text = traces.to_json(experiment, found) if as_json else traces.render(experiment, found)
    common.write(text, output)
    return found


def show_below(store: Store, experiment_id: str, args: common.OutputArgs) -> None:
    """Print a trace after the report that it belongs to; where that is no text for people, only where it is."""
    if args.output is None and args.format == "terminal":
        click.echo()
        show(store, experiment_id, False, None)
    else:
        click.echo(f"traced: kdelta report {experiment_id}", err=True)


def beside(store: Store, measured: Experiment, what: str, folders: tuple[Path, ...], voice: Voice) -> str:
    """Trace the kernels and cases of a finished experiment (``compare --why``); the id of the trace."""
    from kdelta import tracing

    workloads = common.load_workloads(folders)
    experiment = tracing.new(measured, why_sets(what), workloads, None, common.now)
    store.create(experiment)
    tracing.execute(experiment, store, voice, workloads, folders)
    return experiment.id


def why_sets(what: str) -> tuple[Collector, ...]:
    """The sets of ``--why``.

    Raises:
        UserError: one of them is not known.
    """
    from kdelta import collectors

    return collectors.choose(what, collectors.catalogue())


def _raise_if_nothing(found: tuple[SetResult, ...]) -> None:
    """Exit code 3 where no guest came back at all."""
    if found and all(result.state in ("lost", "panicked", "hung") for result in found):
        first = found[0]
        raise GuestError(f"no kernel could be traced: {first.kernel}: {first.state}: {first.why}")
