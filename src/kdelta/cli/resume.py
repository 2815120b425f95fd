# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta resume: go on with an experiment that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kdelta.cli import common, leaks, trace
from kdelta.errors import UserError

EPILOG = """\b
Examples:
  kdelta resume                 the last experiment
  kdelta resume 20261121-1530 --json

Boots that finished are never run again, and none is lost: each was stored before the next one started.
"""


@click.command(epilog=EPILOG)
@click.argument("experiment", default="last", metavar="[EXPERIMENT]")
@click.option("--time-budget", metavar="TIME", help="Timed: start no block that would end after, as in 20m.")
@common.output_options
def command(experiment: str, time_budget: str | None, **options: Any) -> int:
    """Run what is left of EXPERIMENT, then print its report."""
    from kdelta.cli.progress import Reporter
    from kdelta.store.store import Store

    args = common.OutputArgs(**options)
    args.format  # noqa: B018 - an unknown format is refused here
    budget_s = common.seconds(time_budget, "--time-budget")
    with Store() as store:
        found = store.experiment(experiment)
        if found.kind == "bisect":
            raise UserError(f"experiment {found.id} is a bisection: kdelta bisect --resume {found.id}")
        folders = tuple(Path(line) for line in found.extra.get("folders", "").splitlines() if line)
        with Reporter(args.quiet) as reporter:
            if found.kind == "trace":
                trace.go_on(store, found, folders, reporter)
                return trace.conclude(trace.show(store, [found.id], args.format == "json", args.output))
            common.run_experiment(store, found, reporter, folders, budget_s)
        if found.kind == "leaks":
            return leaks.conclude(leaks.show(store, found.id, as_json=args.as_json, output=args.output), None)
        common.raise_if_lost(common.show(store, found.id, args))
    return 0
