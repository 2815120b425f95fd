# SPDX-License-Identifier: GPL-2.0-or-later
"""Every function of a case on two kernels of one exact experiment."""

from __future__ import annotations

from kdelta.attribution import because, profiles
from kdelta.attribution.exact import TRANSFERS
from kdelta.errors import UserError
from kdelta.model import Experiment, FunctionDelta, Profile
from kdelta.results import definitions
from kdelta.results.detail import moved_rows
from kdelta.results.types import CellName, FunctionDiff, MovedDiff
from kdelta.store.store import Store


def _profile(experiment: Experiment, store: Store, case: int, mitigations: str) -> dict[int, Profile]:
    """Kernel -> the profile of its median seed."""
    seeds: dict[int, list[Profile]] = {}
    for row in store.profiles(experiment.id, case):
        if row.mitigations == mitigations and row.profile.ops > 0:
            seeds.setdefault(row.kernel, []).append(row.profile)
    return {kernel: profiles.median_profile(found) for kernel, found in seeds.items()}


def _unchanged(before: Profile, after: Profile, changed: set[str]) -> list[FunctionDelta]:
    """Functions that cost the same on both, the costliest first."""
    same = [
        (counts[0] / before.ops, name)
        for name, counts in before.functions.items()
        if name in after.functions and name not in changed and name != profiles.USER
    ]
    return [
        FunctionDelta(function=name, baseline=cost, patched=cost, delta=0.0)
        for cost, name in sorted(same, key=lambda item: (-item[0], item[1]))
    ]


def both(
    experiment: Experiment, store: Store, case: int, kernels: tuple[int, int], mitigations: str
) -> tuple[Profile, Profile]:
    """The profiles of two kernels, each of its median seed.

    Raises:
        UserError: there is none of one of them.
    """
    found = _profile(experiment, store, case, mitigations)
    missing = [experiment.kernels[kernel].label for kernel in kernels if kernel not in found]
    if missing:
        raise UserError(f"no counts by function are stored of {' and '.join(missing)}")
    return found[kernels[0]], found[kernels[1]]


def have_stacks(experiment: Experiment, store: Store, case: int, kernels: tuple[int, int], mitigations: str) -> bool:
    """Whether call stacks of both kernels are stored."""
    return all(profile.stacks for profile in both(experiment, store, case, kernels, mitigations))


def _cell(experiment: Experiment, case: int, metric: str, mitigations: str) -> CellName:
    return CellName(
        case=experiment.cases[case].name,
        metric=metric,
        cgroup=experiment.cases[case].cgroup,
        mitigations="off" if mitigations == "off" else "default",
    )


def lines(experiment: Experiment, store: Store, case: int, kernels: tuple[int, int], mitigations: str) -> MovedDiff:
    """The cache lines of ``case`` that move between CPUs; without rows where it had one CPU.

    Raises:
        UserError: there is no profile of one of the two kernels.
    """
    before, after = both(experiment, store, case, kernels, mitigations)
    return MovedDiff(
        cell=_cell(experiment, case, TRANSFERS, mitigations),
        baseline_label=experiment.kernels[kernels[0]].label,
        patched_label=experiment.kernels[kernels[1]].label,
        rows=moved_rows(before, after),
    )


def difference(
    experiment: Experiment, store: Store, case: int, kernels: tuple[int, int], mitigations: str
) -> FunctionDiff:
    """All functions of ``case``, their kernel instructions, those that changed most first.

    Raises:
        UserError: there is no profile of one of the two kernels.
    """
    before, after = both(experiment, store, case, kernels, mitigations)
    changed = because.differences(before, after)
    return FunctionDiff(
        cell=_cell(experiment, case, "instructions", mitigations),
        baseline_label=experiment.kernels[kernels[0]].label,
        patched_label=experiment.kernels[kernels[1]].label,
        functions=(*changed, *_unchanged(before, after, {item.function for item in changed})),
        unit=definitions.unit_of_counts(experiment, experiment.cases[case]),
    )
