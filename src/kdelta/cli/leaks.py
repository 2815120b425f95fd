# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta leaks: kernel objects that whole lives of processes, pidfds, pipes and mappings leak."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _output, _program, common
from kdelta.errors import GuestError, RegressionFound, UserError

if TYPE_CHECKING:
    from kdelta.model import Experiment, Kernel
    from kdelta.results.leaks import Finding
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  kdelta leaks debian:6.12
  kdelta leaks src:debian:6.12 src:debian:6.12+my.patch --fail-on leak
  kdelta leaks debian:6.12 --ops 100 -- ls -l /etc
  kdelta leaks debian:7.0 --case lifetimes:path=clone3_eagain --case pipe --ops 2000

Each case is set up, run and torn down several times, error paths included; after each batch the objects left in the idle
guest are counted. A leak grows in every batch by half an object per operation or more, and outranks any verdict on speed.
"""
_WIDTH = 72
_CASE, _KERNEL = 36, 14


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
@common.case_options
@_program.tree_option
@_program.options
@common.machine_options
def command(kernels: tuple[str, ...], **options: Any) -> int:
    """Check KERNELs for leaks of kernel objects."""
    from kdelta.cli.progress import Reporter
    from kdelta.kernel.resolve import resolve_all
    from kdelta.kernel.sources import parse_kernel
    from kdelta.store.store import Store

    args = Args(**options)
    _program.refuse_bare(kernels)
    specs = [parse_kernel(text) for text in kernels]
    if any(spec.kind == "running" for spec in specs):
        raise UserError("the leak check runs in a guest: name a kernel, as in debian:6.12")
    _experiment(args, ())  # refuses bad input before any kernel is fetched
    with Store() as store:
        with Reporter(args.quiet) as reporter:
            experiment = _experiment(args, resolve_all(specs, reporter))
            store.create(experiment)
            common.run_experiment(store, experiment, reporter)
        found = show(store, experiment.id, as_json=args.as_json, output=args.output)
    return conclude(found, args.fail_on)


def _experiment(args: Args, kernels: tuple[Kernel, ...]) -> Experiment:
    from kdelta.experiment import templates
    from kdelta.results import leaks

    cases = args.cases_or(lambda: args.chosen(default=leaks.CASES), args.named)
    asked = args.asked(cases, args.effort(batches=args.batches, batch_ops=args.ops))
    return templates.created(templates.leaks(asked, leaks.observed(kernels), args.boots), args.seed, common.now)


def show(store: Store, experiment_id: str, *, as_json: bool, output: Path | None) -> tuple[Finding, ...]:
    """Print the leak check of a stored experiment."""
    from kdelta.results import leaks

    experiment = store.experiment(experiment_id)
    found = leaks.findings(experiment, store)
    common.write(_json(experiment, found) if as_json else "\n".join(_lines(experiment, found)) + "\n", output)
    return found


def conclude(found: Sequence[Finding], fail_on: str | None) -> int:
    """The exit code.

    Raises:
        RegressionFound: something leaks and ``fail_on`` asks for it. GuestError: nothing could be checked.
    """
    leaking = [f for f in found if f.verdict == "leak"]
    if fail_on and leaking:
        names = "; ".join(f"{f.case} on {f.kernel}" for f in leaking)
        raise RegressionFound(f"--fail-on leak: {names}")
    lost = [f for f in found if f.state in ("lost", "panicked", "hung")]
    if found and len(lost) == len(found):
        raise GuestError(f"no kernel could be checked: {lost[0].case}: {lost[0].state}: {lost[0].why}")
    return 0


def _json(experiment: Experiment, found: Sequence[Finding]) -> str:
    import json

    import msgspec

    document = {
        "schema": "kdelta-leaks/1",
        "experiment": experiment.id,
        "batches": experiment.effort.batches,
        "kernels": [
            {"label": k.label, "spec": k.spec, "release": k.release, "cmdline": k.cmdline} for k in experiment.kernels
        ],
        "results": msgspec.to_builtins(list(found)),
    }
    return json.dumps(document, indent=2) + "\n"


def _lines(experiment: Experiment, found: Sequence[Finding]) -> list[str]:
    effort = experiment.effort
    lines = [
        f"kdelta leaks {experiment.id}",
        f"objects left per operation, in {effort.batches} batches of {effort.batch_ops} operations",
        "",
        f"{'case':{_CASE}}{'kernel':{_KERNEL}}verdict",
    ]
    for finding in found:
        lines += _row(finding)
    tally = [sum(f.verdict == word for f in found) for word in ("leak", "clean")]
    other = len(found) - sum(tally)
    lines += ["", f"{tally[0]} leak, {tally[1]} clean" + (f", {other} not measured" if other else "")]
    return lines


def _row(finding: Finding) -> list[str]:
    word = "LEAK" if finding.verdict == "leak" else finding.verdict or finding.state
    first = f"{_cut(finding.case, _CASE - 1):{_CASE}}{_cut(finding.kernel, _KERNEL - 1):{_KERNEL}}{word}"
    if finding.verdict == "leak":
        detail = ", ".join(f"{g.what} {g.per_op:.2f}" for g in finding.leaks)
    else:
        detail = "" if finding.verdict else finding.why
    return [first, *textwrap.wrap(detail, _WIDTH, initial_indent="    ", subsequent_indent="    ")]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "~"
