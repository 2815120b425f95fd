# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta leaks: kernel objects that whole lives of processes, pidfds, pipes and mappings leak."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _given, _kernels, _leaks, _output, _program, _session, common

if TYPE_CHECKING:
    from kdelta.model import Experiment, Kernel

EPILOG = """\b
Examples:
  kdelta leaks debian:6.12
  kdelta leaks src:debian:6.12 src:debian:6.12+my.patch --fail-on leak
  kdelta leaks debian:6.12 --ops 100 -- ls -l /etc
  kdelta leaks debian:7.0 --case lifetimes:path=clone3_eagain --case pipe --ops 2000

Each case is set up, run and torn down several times, error paths included; after each batch the objects left in the idle
guest are counted. A leak grows in every batch by half an object per operation or more, and outranks any verdict on speed.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs, _program.ProgramArgs):
    """The options of ``kdelta leaks``."""

    ops: int
    batches: int
    boots: int
    fail_on: str | None
    as_json: bool
    output: Path | None
    quiet: bool


@click.command(cls=_program.Command, epilog=EPILOG)
@click.argument("kernels", nargs=-1, required=True, metavar="KERNEL...")
@click.option("--ops", type=click.IntRange(100, 1_000_000), default=500, show_default=True, help="Operations per batch.")  # fmt: skip
@click.option("--batches", type=click.IntRange(2, 64), default=3, show_default=True, help="Number of batches.")
@click.option("--boots", type=click.IntRange(1, 100), default=1, show_default=True, help="Boots per kernel; a leak must show in all of them.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(["leak"]), help="Exit 4 when anything leaks.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON (schema kdelta-leaks/1).")
@_output.output_option("Write the table to a file.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@common.case_options_by("a choice for leaks")
@_program.tree_option
@_program.options
@common.machine_options
def command(kernels: tuple[str, ...], **options: Any) -> int:
    """Check KERNELs for leaks of kernel objects."""
    args = Args(**options)
    _given.refuse_other_mode("timed", "leave it out")
    _program.refuse_bare(kernels)
    specs = _kernels.bootable(kernels, "the leak check runs in a guest: name a kernel, as in debian:6.12")
    _template(args, ())  # refuses bad input before any kernel is fetched
    with _session.opened(args.quiet) as session:
        with session.progress() as progress:
            experiment = session.begin(_template(args, _kernels.to_measure(specs, progress)), args.seed)
            session.run(experiment, progress)
        found = _leaks.show(session.store, experiment.id, as_json=args.as_json, output=args.output)
    return _leaks.conclude(found, args.fail_on)


def _template(args: Args, kernels: tuple[Kernel, ...]) -> Experiment:
    from kdelta.experiment import templates
    from kdelta.results import leaks

    cases = args.cases_or(lambda: args.chosen(default=leaks.CASES), args.named, surrounded=args.surrounded)
    asked = args.asked(cases, args.effort(batches=args.batches, batch_ops=args.ops))
    return templates.leaks(asked, leaks.observed(kernels), args.boots)
