# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel instructions by system call, before and after: of the profiles of exact cases. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kdelta.model import CallCount, CellResult, Experiment, Profile, plans
from kdelta.results.types import CallFigures, CallRow, CellName, Detail, SystemCalls


def _figures(profile: Profile, name: str) -> CallFigures | None:
    count: CallCount | None = profile.system_calls.get(name)
    if count is None:
        return None
    per = profile.ops
    return CallFigures(calls=count.calls / per, instructions=count.instructions / per, rep_bytes=count.rep_bytes / per)


def rows(before: Profile, after: Profile | None) -> tuple[CallRow, ...]:
    """Every system call of either, per operation; the largest difference first, of equal ones the largest call."""
    names = dict.fromkeys((*before.system_calls, *(after.system_calls if after else ())))
    found = [
        CallRow(name=name, baseline=_figures(before, name), patched=_figures(after, name) if after else None)
        for name in names
    ]
    return tuple(sorted(found, key=lambda row: (-abs(row.delta) if after else 0.0, -row.before, row.name)))


def of_profiles(
    experiment: Experiment, chosen: Mapping[tuple[int, str], Mapping[int, Profile]]
) -> tuple[SystemCalls, ...]:
    """A table for each case and patched kernel, or for each case where there is one kernel; in a sweep for each step.

    ``chosen[case, mitigations][kernel]`` is the profile of a kernel; those that know no system calls are left out.
    """
    found = []
    for (case, mitigations), by_kernel in sorted(chosen.items()):
        named = {kernel: profile for kernel, profile in by_kernel.items() if profile.system_calls}
        for first, kernel in _pairs(experiment, sorted(named)):
            found.append(
                SystemCalls(
                    cell=CellName(
                        case=experiment.cases[case].name,
                        metric="instructions",
                        cgroup=experiment.cases[case].cgroup,
                        mitigations=mitigations,  # type: ignore[arg-type]
                    ),
                    workload=experiment.cases[case].workload,
                    baseline_label=experiment.kernels[first].label,
                    patched_label="" if kernel is None else experiment.kernels[kernel].label,
                    rows=rows(named[first], None if kernel is None else named[kernel]),
                )
            )
    return tuple(found)


def of_row(row: CellResult, before: Profile, after: Profile, detail: Detail) -> Detail:
    """``detail`` with the system calls of the two kernels of ``row`` alone: of a sweep it has those of the steps."""
    cell = CellName(case=row.case, metric=row.metric, cgroup=row.cgroup, mitigations=row.mitigations)
    known = next((one for one in detail.system_calls if one.cell == cell), None)
    if known is None or not (before.system_calls and after.system_calls):
        return detail
    table = SystemCalls(
        cell=cell,
        workload=known.workload,
        baseline_label=row.baseline_label,
        patched_label=row.patched_label,
        rows=rows(before, after),
    )
    return replace(detail, system_calls=(table,))


def _pairs(experiment: Experiment, known: Sequence[int]) -> list[tuple[int, int | None]]:
    """Which kernels are set against which: the first, and in a sweep the one before, as its steps are."""
    if len(experiment.kernels) == 1:
        return [(kernel, None) for kernel in known]
    if isinstance(experiment.plan, plans.Sweep):
        return list(itertools.pairwise(known))
    return [(0, kernel) for kernel in known if kernel] if 0 in known else []
