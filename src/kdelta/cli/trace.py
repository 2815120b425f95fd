# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta trace: what kernels do in a case, from inside: locks, sizes, allocations, system calls, wake-ups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kdelta.cli import _given, _kernels, _output, _program, _session, _traces, _tracing, common

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
    help="What to look at: locks, sizes, allocs, syscalls, wakeups or hold.",
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
    args = Args(**options)
    wanted = _tracing.split(args.what)
    if all(wanted):  # sets of events; without any, locks are counted exactly
        _given.refuse_other_mode("timed", "only --what hold counts instructions; leave it out")
    _given.refuse(["seed"], "does nothing: a trace is one boot of each kernel, whose order says nothing")
    cases = args.cases_or(args.chosen, args.named, surrounded=args.surrounded)
    _program.refuse_bare(kernels)
    specs = _kernels.bootable(
        kernels, "the running kernel cannot be traced in a guest without its image: name another kernel"
    )
    with _session.opened(args.quiet) as session:
        with session.progress() as progress:
            fetched, asked = _kernels.to_measure(specs, progress), args.asked(cases)
            made = _tracing.run(session, asked, fetched, args.what, args.ops, progress)
        found = _traces.show(session.store, made, args.as_json, args.output)
    return _traces.conclude(found)
