# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report offers to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdelta.cli._say import say

if TYPE_CHECKING:
    from kdelta.model import ExperimentResult


def to_decide(result: ExperimentResult) -> None:
    """After the report, on standard error: how to decide what it left open."""
    from kdelta.experiment import follow_up
    from kdelta.report import prose

    open_cells = follow_up.undecided(result.results)
    experiment = result.experiment
    if follow_up.can_follow(experiment) and open_cells and not experiment.annotations.followed_by:
        what = "seeds" if experiment.mode == "exact" else "boots"
        how = f"to decide with fresh {what}: kdelta resume {experiment.id} --decide"
        if left := prose.missing(result):
            how = f"{left} boots of the plan are left: kdelta resume {experiment.id}"
        say(f"{len(open_cells)} undecided; {how}", err=True)


def to_draw(result: ExperimentResult, drawn: bool) -> None:
    """After a page, on standard error: how it gets flame graphs, where calls could be followed and were not."""
    from kdelta.model import plans

    experiment = result.experiment
    followable = experiment.mode == "exact" and experiment.machine.smp == 1 and experiment.kernels[0].arch == "x86_64"
    differs = any(row.metric == "instructions" and row.verdict in ("improved", "regressed") for row in result.results)
    if followable and differs and not drawn and isinstance(experiment.plan, plans.Compare):
        say(f"no flame graphs: calls were not followed; kdelta why {experiment.id} --stacks, then report it", err=True)
