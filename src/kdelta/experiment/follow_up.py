# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment left undecided, asked again with fresh boots. Pure.

The boots at hand have spent their plan's error, and going on until something is significant is no test. So the cases
that are inconclusive get an experiment of their own, as large as their spread asks for, judged by its own boots alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.model import CellResult, Experiment
from kdelta.stats.paired import MIN_PAIRS
from kdelta.verdict.words import GRID_PAIRS

MOST_BOOTS = 400
FOLLOWED = "followed_by"  # in the first experiment's extra: the second one's id
_SHARES = (0.4, 0.6, 0.8, 1.0)  # of the boots at which the second experiment looks, as the usual plan of 20 does
_OWN = ("gate", "selftests", "precision_percent", FOLLOWED)  # facts that do not pass on


def undecided(results: Sequence[CellResult]) -> tuple[CellResult, ...]:
    """The deciding rows that are inconclusive and say how many boots would decide them."""
    return tuple(row for row in results if row.primary and row.verdict == "inconclusive" and row.boots_needed)


def plan(boots: int) -> tuple[int, ...]:
    """The looks of a sequential plan over ``boots`` blocks, the first not before eight."""
    return tuple(sorted({max(MIN_PAIRS, math.ceil(boots * share)) for share in _SHARES}))


def follow_up(experiment: Experiment, results: Sequence[CellResult]) -> Experiment | None:
    """A template for the experiment that decides what ``experiment`` did not; None where nothing is left to decide so.

    It has the undecided cases, the baseline and the undecided kernels, and as many boots per kernel as the neediest
    cell asks for. Cells that ask for more than MOST_BOOTS are left out.
    """
    rows = [row for row in undecided(results) if (row.boots_needed or 0) <= MOST_BOOTS]
    if not rows:
        return None
    cases = tuple(case for case in experiment.cases if case.name in {row.case for row in rows})
    labels = {row.patched_label for row in rows}
    kernels = (experiment.kernels[0], *(kernel for kernel in experiment.kernels[1:] if kernel.label in labels))
    alone = len(cases) * (len(kernels) - 1) * len(experiment.mitigations) == 1
    boots = max(MIN_PAIRS if alone else GRID_PAIRS, *(row.boots_needed or 0 for row in rows))
    kept = {key: text for key, text in experiment.extra.items() if key not in _OWN and ":" not in key}
    told = f"fresh boots of what experiment {experiment.id} left undecided; its own boots are not used"
    return replace(
        experiment,
        kernels=kernels,
        cases=cases,
        blocks=boots,
        looks=plan(boots) if experiment.mode == "timed" else (),
        effort=replace(experiment.effort, seeds=boots) if experiment.mode == "exact" else experiment.effort,
        extra=kept | {"note:follows": told},
    )
