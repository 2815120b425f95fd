# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta resume: go on with an experiment that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import common, leaks, trace
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.cli.progress import Reporter
    from kdelta.model import Experiment
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  kdelta resume                 the last experiment
  kdelta resume 20261121-1530 --json
  kdelta resume last --decide   fresh boots of the cases that are still inconclusive

Boots that finished are never run again, and none is lost: each was stored before the next one started. --decide asks
again what the finished EXPERIMENT left inconclusive: a new experiment of these cases, with as many boots as its report
asks for. The boots at hand are not used again: their plan's error is spent.
"""


@click.command(epilog=EPILOG)
@click.argument("experiment", default="last", metavar="[EXPERIMENT]")
@click.option("--time-budget", metavar="TIME", help="Timed: start no block that would end after, as in 20m.")
@click.option("--decide", is_flag=True, help="Then boot afresh, in a new experiment, what is still inconclusive.")
@common.output_options
def command(experiment: str, time_budget: str | None, decide: bool, **options: Any) -> int:
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
        if decide and found.kind != "compare":
            raise UserError(f"--decide: experiment {found.id} is a {found.kind}; only comparisons are decided")
        folders = tuple(Path(line) for line in found.extra.get("folders", "").splitlines() if line)
        with Reporter(args.quiet) as reporter:
            if found.kind == "trace":
                trace.go_on(store, found, folders, reporter)
                return trace.conclude(trace.show(store, [found.id], args.format == "json", args.output))
            common.run_experiment(store, found, reporter, folders, budget_s)
            if decide:
                found = _decide(store, found, reporter)
                common.run_experiment(store, found, reporter, folders, budget_s)
        if found.kind == "leaks":
            return leaks.conclude(leaks.show(store, found.id, as_json=args.as_json, output=args.output), None)
        common.raise_if_lost(common.show(store, found.id, args))
    return 0


def _decide(store: Store, asked: Experiment, reporter: Reporter) -> Experiment:
    """The experiment that decides what ``asked`` left open: the one begun before, else a new one.

    Raises:
        UserError: nothing is undecided, or blocks are still missing.
    """
    import msgspec

    from kdelta.experiment import follow_up, prepare
    from kdelta.results import answer

    if begun := asked.extra.get(follow_up.FOLLOWED):
        reporter.note(f"going on with {begun}, which was begun for this")
        return store.experiment(begun)
    blocks = 1 + max((block for block, _ in store.done(asked.id)), default=-1)
    results = answer.result(store, asked.id)[0].results
    if follow_up.undecided(results) and blocks < asked.blocks:
        raise UserError(
            f"experiment {asked.id} has {blocks} of {asked.blocks} blocks: its own plan may still decide it; go on with: "
            f"kdelta resume {asked.id}"
        )
    template = follow_up.follow_up(asked, results)
    if template is None and follow_up.undecided(results):
        raise UserError(
            f"experiment {asked.id} needs more than {follow_up.MOST_BOOTS} boots per kernel to be decided: this host is too "
            "noisy for an effect so small; count exactly (--exact), or measure on a quieter host or with KVM"
        )
    if template is None:
        raise UserError(f"experiment {asked.id} left nothing inconclusive: there is nothing to decide")
    template = msgspec.structs.replace(template, command=f"{asked.command} && kdelta resume last --decide")
    seed = asked.seed + 1 if asked.mode == "exact" else None
    fresh = prepare.new_experiment(template, seed, common.now)
    store.create(fresh)
    store.extend(msgspec.structs.replace(asked, extra=asked.extra | {follow_up.FOLLOWED: fresh.id}))
    names = ", ".join(case.name for case in fresh.cases)
    reporter.note(f"experiment {fresh.id}: up to {fresh.blocks} fresh boots per kernel for {names}")
    return fresh
