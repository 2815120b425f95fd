# SPDX-License-Identifier: GPL-2.0-or-later
"""What is queued: a unit of work is one block of times, whose boots share a host, or one boot of counts. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.experiment import outstanding
from kdelta.fleet.needs import Needs
from kdelta.fleet.own_sources import Sources
from kdelta.model import BootResult, Experiment, OpenCell, PlannedBoot
from kdelta.store.rows import BootRow

Place = tuple[int, int]
MOST_DEATHS = 10  # of the workers that had it, until a unit is given up
_HOSTS_TO_FAIL = 3  # on which a unit failed: then it is the experiment's fault
_SHARE_TO_FAIL = 0.1  # and so large a part of the hosts that may take it


class Unit(Struct, frozen=True, kw_only=True):
    """The boots that one host makes; a timed block never splits."""

    experiment: str
    plans: tuple[PlannedBoot, ...]
    alone: bool  # nothing else runs on the host meanwhile: times
    host: str = ""  # that has to take it

    @property
    def name(self) -> str:
        """The block, and of counts the kernel's slot: unique in the experiment."""
        slots = "" if self.alone else f".{self.plans[0].slot}"
        return f"{self.plans[0].block}{slots}"


class Ask(Struct, frozen=True, kw_only=True):
    """What was asked of the fleet, beside the experiment itself.

    ``kernels``: sha256 of the image -> file -> sha256 in the blob store; ``programs``: the same by a pack's digest;
    ``sources``: C files of the user's own. ``again``: boots that were cut short before, by the time that they started:
    a boot that is cut short in the fleet was measured a second time at once.
    """

    needs: Needs
    kernels: dict[str, dict[str, str]] = {}
    programs: dict[str, dict[str, str]] = {}
    sources: Sources = Sources()
    again: tuple[str, ...] = ()


def hopeless(unit: Collection[str], experiment: Collection[str], able: Collection[str]) -> bool:
    """Whether an experiment cannot go on: one of its units failed on the hosts ``unit``, any of them on ``experiment``.

    ``able`` are the hosts that may take its units. Hosts that fail are soon free again, so that they meet at the units
    that have failed: of a thousand, twenty of which are bad, three are no evidence against an experiment.
    """
    return set(able) <= set(experiment) or len(unit) >= max(_HOSTS_TO_FAIL, math.ceil(_SHARE_TO_FAIL * len(able)))


def stored(boots: Sequence[BootRow], kept: set[Place], again: Sequence[str]) -> set[Place]:
    """The places that are not booted (again)."""
    places = {(boot.block, boot.slot) for boot in boots if boot.started_at not in again}
    return places | kept


def stale(experiment: Experiment, boots: Sequence[BootRow], make: str) -> set[Place]:
    """Stored counts that were made otherwise than ``make``, or on one machine: they cannot stand beside new ones."""
    if experiment.mode != "exact":
        return set()
    return {(boot.block, boot.slot) for boot in boots if boot.started_at and boot.machine.get("make") != make}


def struck_out(experiment: Experiment, boots: Sequence[BootRow]) -> list[BootRow]:
    """In times, the last boot of each kernel that does not boot, under each mitigations.

    Where several hosts measure, on two of them at least: what does not boot on one may be that host's fault.
    """
    if experiment.mode != "timed":
        return []
    found: dict[tuple[int, str], BootRow] = {}
    several = len(_hosts(boots)) > 1
    for index in range(len(experiment.kernels)):
        mine = [boot for boot in boots if boot.kernel == index]
        proven = len(mine) >= outstanding.STRIKES and (not several or len(_hosts(mine)) > 1)
        if proven and all(boot.state != "ok" for boot in mine):
            found |= {(index, boot.mitigations): boot for boot in mine}
    return list(found.values())


def _hosts(boots: Sequence[BootRow]) -> set[str]:
    return {boot.machine.get("host", "") for boot in boots if boot.started_at}


def given_up(experiment: Experiment, last: BootRow, finished: set[Place]) -> list[BootResult]:
    """Of a sweep, the further boots of a kernel that does not boot, not made."""
    plan = PlannedBoot(block=last.block, slot=last.slot, kernel=last.kernel, mitigations=last.mitigations)
    return outstanding.given_up(experiment, BootResult(plan=plan, state=last.state, why=last.why), finished)


def units(experiment: Experiment, hosts: Mapping[int, str], missing: Sequence[PlannedBoot]) -> tuple[Unit, ...]:
    """``missing`` boots as units; ``hosts``: of a block that has boots already, where they were made.

    Raises:
        UserError: nobody knows where a begun block was measured.
    """
    if experiment.mode == "exact":  # kernel by kernel: guests of many would not wait on a host all at once
        ordered = sorted(missing, key=lambda plan: (plan.kernel, plan.mitigations, plan.block))
        return tuple(Unit(experiment=experiment.id, plans=(plan,), alone=False) for plan in ordered)
    found = []
    for block in sorted({plan.block for plan in missing}):
        boots = tuple(plan for plan in missing if plan.block == block)
        host = hosts.get(block)
        if host == "":
            raise UserError(
                f"block {block + 1} of experiment {experiment.id} was begun on one machine, and a block never splits: "
                f"finish it there: kdelta resume {experiment.id}"
            )
        found.append(Unit(experiment=experiment.id, plans=boots, alone=True, host=host or ""))
    return tuple(found)


def next_units(
    experiment: Experiment,
    finished: set[Place],
    hosts: Mapping[int, str],
    undecided: Callable[[int], tuple[OpenCell, ...]],
) -> tuple[Unit, ...]:
    """The units until the next look; () when the experiment is complete. Looks that are due are taken."""
    for segment in outstanding.segments(experiment):
        still: tuple[OpenCell, ...] = ()
        if segment.start in experiment.looks:
            still = undecided(segment.start)
            if not still:
                return ()
        if missing := outstanding.missing(experiment, segment, still, finished):
            return units(experiment, hosts, missing)
    return ()
