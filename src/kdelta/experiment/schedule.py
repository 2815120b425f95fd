# SPDX-License-Identifier: GPL-2.0-or-later
"""(Experiment, seed) -> blocks of planned boots. Pure and replayable: a resumed experiment gets the same plan.

Randomised multiple interleaved trials: every block boots every kernel once in random order
(Abedi & Brecht, "Conducting repeatable experiments in highly variable cloud computing environments", ICPE 2017).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from kdelta.model import Experiment, Mitigations, OpenCell, PlannedBoot, plans


def _cells(experiment: Experiment) -> list[tuple[int, Mitigations]]:
    return [(k, m) for m in experiment.mitigations for k in range(len(experiment.kernels))]


def block(experiment: Experiment, index: int, still: Sequence[OpenCell] = ()) -> list[PlannedBoot]:
    """The boots of block ``index`` in the order in which they run.

    Two kernels alternate AB/BA in pairs of blocks, the first of each pair decided by a coin; more are shuffled.
    Exact experiments and traces are not shuffled: order cannot matter there, and a block is one seed.
    ``still`` restricts the boots to the cells that are open; () means all. A boot keeps its slot when others fall away.
    """
    order = _cells(experiment)
    if experiment.mode == "timed" and not isinstance(experiment.plan, plans.Trace):
        pair, second = divmod(index, 2)
        rng = random.Random(f"{experiment.seed}/{pair if len(order) == 2 else index}")
        rng.shuffle(order)
        if len(order) == 2 and second:
            order.reverse()
    found = []
    for slot, (kernel, mitigations) in enumerate(order):
        cases = tuple(cell.case for cell in still if (cell.kernel, cell.mitigations) == (kernel, mitigations))
        if cases or not still:
            found.append(PlannedBoot(block=index, slot=slot, kernel=kernel, mitigations=mitigations, cases=cases))
    return found


def blocks(experiment: Experiment) -> Iterator[list[PlannedBoot]]:
    """All planned blocks in order."""
    for index in range(experiment.blocks):
        yield block(experiment, index)
