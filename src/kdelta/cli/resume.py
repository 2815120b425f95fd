# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta resume: go on with an experiment that was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _beside, _calls, _fleet, _foreign, _given, _output, _passes, _reports, _session, common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Experiment

EPILOG = """\b
Examples:
  kdelta resume                 the last experiment
  kdelta resume 20261121-1530 --json
  kdelta resume last --fleet    on the hosts of the fleet
  kdelta resume last --decide   fresh boots of the cases that are still inconclusive
  kdelta resume 20261121-1530 --kernel 6.12=debian:6.12 --kernel 7.0=./bzImage

An experiment of "kdelta import" is not resumed as it is: its QEMU, images, directories and trees were chosen by who exported it.
--kernel names your own kernels of the same images, and your QEMU is used; --trust takes all of it as it is.

Finished boots are never repeated: each was stored before the next one started. A bisection is searched on, a calibration
comes to its floor. --decide starts a new experiment of the cases that the finished EXPERIMENT left inconclusive, with as
many boots as its report says are needed. The old boots are not reused: their alpha is spent.
"""


@click.command(epilog=EPILOG)
@click.argument("experiment", default="last", metavar="[EXPERIMENT]")
@click.option(
    "--time-budget",
    metavar="TIME",
    help="Time limit; no block (of counts: seed) starts that would exceed it, as in 20m.",
)
@click.option(
    "--decide", is_flag=True, help="Then measure what is still inconclusive in a new experiment, with fresh boots."
)
@click.option("--kernel", "kernels", multiple=True, metavar="LABEL=KERNEL", help="Imported: your own kernel of the same image.")  # fmt: skip
@click.option("--trust", is_flag=True, help="Imported: run what it names as if you had planned it.")
@_fleet.options
@_output.output_options
def command(
    experiment: str,
    time_budget: str | None,
    decide: bool,
    kernels: tuple[str, ...],
    trust: bool,
    fleet: bool,
    detach: bool,
    **options: Any,
) -> int:
    """Run what is left of EXPERIMENT, then print its report."""
    from kdelta.experiment import annotate, follow_up

    args = _output.OutputArgs(**options)
    args.format  # noqa: B018 - an unknown format is refused here
    budget_s = common.seconds(time_budget, "--time-budget")
    hosts = _fleet.FleetArgs(fleet=fleet, detach=detach)
    hosts.refuse(budget=budget_s is not None, others={"--decide": decide})
    with _session.opened(args.quiet, stored=True) as session:
        with session.progress() as progress:
            found = _foreign.vouched(session.store, session.store.experiment(experiment), kernels, trust, progress)
        if found.kind in ("bisect", "calibrate"):
            return _by_its_own(found)
        if decide and not follow_up.can_follow(found):
            raise UserError(f"--decide: experiment {found.id} is a {found.kind}; only comparisons are decided")
        with session.progress() as progress:
            found = annotate.finish_gate(session.store, found, progress)
            if not _passes.run(session, found, hosts, progress, budget_s):
                return _fleet.detached(found)
            for name in _reports.beside(session.store, found):
                _passes.run(session, session.store.experiment(name), hosts, progress, budget_s)
            if _calls.go_on(session, found, progress):
                args = args.explained()
            _beside.resumed(session, found)
            if decide:
                found = follow_up.begin(session.store, found, progress, _session.now)
                _fleet.run(session, found, hosts, progress, budget_s)
        return _reports.conclude(session.store, found, args)


def _by_its_own(found: Experiment) -> int:
    """Go on as the command of its kind does, which does more than boot; it takes those options that both have."""
    from kdelta.cli import bisect, calibrate

    command = {"bisect": bisect.command, "calibrate": calibrate.command}[found.kind]
    written = {name: option for name, option in _given.given().items() if name not in ("kernels", "trust")}  # heeded
    of_both = {one.name for one in command.params}
    what = {"bisect": "a bisection", "calibrate": "a calibration"}[found.kind]
    _given.refuse([one for one in written if one not in of_both], f"does nothing here: {found.id} is {what}")
    words = ["--resume", found.id, *(_given.name(written[one]) for one in written)]
    with command.make_context(f"kdelta {found.kind}", words) as context:
        return int(command.invoke(context))
