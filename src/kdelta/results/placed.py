# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of several tasks on several CPUs, where all seeds of a kernel had one boot and share its placements. Pure.

Cases pin their tasks, programs do not. Who meets whom then hangs on when a guest was started. Each seed has a boot of
its own by now, and intervals hold what that moves; experiments of before share one (``Definition.booted_seeds``): of a
program of eight threads on four CPUs an identical kernel with a longer command line had 80 % more transfers and
2.0 % more instructions under every seed, of one of two threads on two CPUs 4 % more locked operations.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.attribution.exact import CROSSING
from kdelta.model import Case, CellResult, Experiment, Profile
from kdelta.results import definitions
from kdelta.verdict.warnings import BelowDelta, Placed

_PERCENT = 5.0  # of the counts that do not cross: what is more than twice that of an identical kernel is the kernel's
_CHANGED = ("improved", "regressed")
_CALLS = ("clone", "clone3", "fork", "vfork")


def shared_cpus(experiment: Experiment) -> int:
    """How many CPUs tasks are placed on alike under all seeds; 1 where that differs among them."""
    return 1 if definitions.booted_seeds(experiment) else experiment.machine.smp


def doubtful(row: CellResult, case: Case, cpus: int) -> bool:
    """Whether placement may take the verdict of ``row`` away."""
    return cpus > 1 and "pack" in case.params and row.verdict in _CHANGED


def places(case: Case, cpus: int, profiles: Sequence[Profile] = ()) -> bool:
    """Whether ``case`` is a program whose tasks the scheduler may place.

    Of a suite's program the ``profiles`` hold what 2N operations have beyond N, in which no task need begin.
    """
    if cpus == 1 or "pack" not in case.params:
        return False
    return "start" in case.params or any(name in profile.called for profile in profiles for name in _CALLS)


def held(row: CellResult, case: Case, cpus: int, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of ``case``, without its verdict where placement alone moves as much."""
    if not doubtful(row, case, cpus) or not places(case, cpus, (*before, *after)):
        return row
    effect = row.effect_percent
    if row.metric not in CROSSING and (effect is None or abs(effect) > _PERCENT):
        return row
    kept = tuple(warning for warning in row.warnings if not isinstance(warning, BelowDelta))
    return replace(row, verdict="inconclusive", p_value=None, warnings=(*kept, Placed(cpus)))
