# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta resume: go on with an experiment that was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import common, leaks, trace
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Experiment, Progress
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  kdelta resume                 the last experiment
  kdelta resume 20261121-1530 --json
  kdelta resume last --decide   fresh boots of the cases that are still inconclusive
  kdelta resume 20261121-1530 --kernel 6.12=debian:6.12 --kernel 7.0=./bzImage

An experiment of "kdelta import" is not resumed as it is: its QEMU, images, directories and trees were chosen by who exported it.
--kernel names your own kernels of the same images, and your QEMU is used; --trust takes all of it as it is.

Finished boots are never repeated: each was stored before the next one started. --decide starts a new experiment of the
cases that the finished EXPERIMENT left inconclusive, with as many boots as its report says are needed. The old boots are
not reused: their alpha is spent.
"""


@click.command(epilog=EPILOG)
@click.argument("experiment", default="last", metavar="[EXPERIMENT]")
@click.option(
    "--time-budget", metavar="TIME", help="Timed: time limit; no block starts that would exceed it, as in 20m."
)
@click.option(
    "--decide", is_flag=True, help="Then measure what is still inconclusive in a new experiment, with fresh boots."
)
@click.option("--kernel", "kernels", multiple=True, metavar="LABEL=KERNEL", help="Imported: your own kernel of the same image.")  # fmt: skip
@click.option("--trust", is_flag=True, help="Imported: run what it names as if you had planned it.")
@common.output_options
def command(
    experiment: str, time_budget: str | None, decide: bool, kernels: tuple[str, ...], trust: bool, **options: Any
) -> int:
    """Run what is left of EXPERIMENT, then print its report."""
    from kdelta.cli.progress import Reporter
    from kdelta.experiment import follow_up
    from kdelta.model import plans
    from kdelta.store.store import Store

    args = common.OutputArgs(**options)
    args.format  # noqa: B018 - an unknown format is refused here
    budget_s = common.seconds(time_budget, "--time-budget")
    with Store() as store:
        with Reporter(args.quiet) as reporter:
            found = _vouched(store, store.experiment(experiment), kernels, trust, reporter)
        if isinstance(found.plan, plans.Bisect):
            raise UserError(f"experiment {found.id} is a bisection: kdelta bisect --resume {found.id}")
        if decide and not follow_up.can_follow(found):
            raise UserError(f"--decide: experiment {found.id} is a {found.kind}; only comparisons are decided")
        with Reporter(args.quiet) as reporter:
            common.run_experiment(store, found, reporter, budget_s)
            if decide:
                found = follow_up.begin(store, found, reporter, common.now)
                common.run_experiment(store, found, reporter, budget_s)
        if isinstance(found.plan, plans.Trace):
            return trace.conclude(trace.show(store, [found.id], args.format == "json", args.output))
        if isinstance(found.plan, plans.Leaks):
            return leaks.conclude(leaks.show(store, found.id, as_json=args.as_json, output=args.output), None)
        common.raise_if_lost(common.show(store, found.id, args))
    return 0


def _vouched(store: Store, found: Experiment, kernels: tuple[str, ...], trust: bool, reporter: Progress) -> Experiment:
    """The experiment, with ``--kernel`` or ``--trust`` taken as the user's own from now on.

    Raises:
        UserError: it was imported and neither is given, or a kernel is not one of its.
    """
    from kdelta.experiment import imported
    from kdelta.kernel.resolve import resolve_all
    from kdelta.kernel.sources import parse_kernel

    if kernels and trust:
        raise UserError("--kernel and --trust exclude each other: own kernels, or all as it was imported")
    if not found.imported:
        if kernels or trust:
            raise UserError(f"experiment {found.id} is your own: leave out {'--kernel' if kernels else '--trust'}")
        return found
    if trust:
        return store.vouch(found.id)
    if not kernels:
        imported.refuse(found)
    specs = [parse_kernel(text) for text in kernels]
    if bare := [spec.text for spec in specs if not spec.label]:
        raise UserError(f"--kernel {bare[0]}: say which kernel of the experiment it is, as in LABEL={bare[0]}")
    own = resolve_all(specs, reporter)
    return store.vouch(found.id, lambda stored: imported.with_own(stored, own))
