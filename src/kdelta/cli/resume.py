# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta resume: go on with an experiment that was interrupted."""

from __future__ import annotations

from typing import Any

import click

from kdelta.cli import common, leaks, trace
from kdelta.errors import UserError

EPILOG = """\b
Examples:
  kdelta resume                 the last experiment
  kdelta resume 20261121-1530 --json
  kdelta resume last --decide   fresh boots of the cases that are still inconclusive

Boots that finished are never run again, and none is lost: each was stored before the next one started. --decide asks
again what the finished EXPERIMENT left inconclusive: a new experiment of these cases, with as many boots as its report
asks for. The old boots are not reused: their error
budget (alpha) is spent.
"""


@click.command(epilog=EPILOG)
@click.argument("experiment", default="last", metavar="[EXPERIMENT]")
@click.option("--time-budget", metavar="TIME", help="Timed: start no block that would end after, as in 20m.")
@click.option("--decide", is_flag=True, help="Then boot afresh, in a new experiment, what is still inconclusive.")
@common.output_options
def command(experiment: str, time_budget: str | None, decide: bool, **options: Any) -> int:
    """Run what is left of EXPERIMENT, then print its report."""
    from kdelta.cli.progress import Reporter
    from kdelta.experiment import follow_up
    from kdelta.model import plans
    from kdelta.store.store import Store

    args = common.OutputArgs(**options)
    args.format  # noqa: B018 - an unknown format is refused here
    budget_s = common.seconds(time_budget, "--time-budget")
    with Store() as store:
        found = store.experiment(experiment)
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
