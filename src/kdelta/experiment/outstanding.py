# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a plan is still to be booted, for whoever boots it: this machine, or the hosts of a fleet. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import pairwise

from kdelta.experiment import schedule
from kdelta.model import BootResult, Experiment, OpenCell, PlannedBoot

STRIKES = 2  # boots of one kernel that may fail before it is given up


def segments(experiment: Experiment) -> Iterator[range]:
    """The blocks between two looks, in order."""
    edges = sorted({0, *(look for look in experiment.looks if look < experiment.blocks), experiment.blocks})
    return (range(first, last) for first, last in pairwise(edges))


def missing(
    experiment: Experiment, segment: range, still: Sequence[OpenCell], finished: Container[tuple[int, int]]
) -> list[PlannedBoot]:
    """The boots of ``segment`` that are not among the ``finished`` (block, slot); ``still``: see ``schedule.block``."""
    planned = [plan for index in segment for plan in schedule.block(experiment, index, still)]
    return [plan for plan in planned if (plan.block, plan.slot) not in finished]


def given_up(experiment: Experiment, last: BootResult, finished: Container[tuple[int, int]]) -> list[BootResult]:
    """The further boots of a kernel that does not boot, not made; ``last`` is the boot that settled it."""
    why = f"not booted, given up after {STRIKES} boots: {last.why}"
    same = (last.plan.kernel, last.plan.mitigations)
    later = missing(experiment, range(last.plan.block + 1, experiment.blocks), (), finished)
    return [
        BootResult(plan=plan, state=last.state, why=why) for plan in later if (plan.kernel, plan.mitigations) == same
    ]
