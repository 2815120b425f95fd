# SPDX-License-Identifier: GPL-2.0-or-later
"""What must hold before anything is booted: the experiment is the user's, its workloads and images are here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kdelta.errors import UserError
from kdelta.experiment import images, imported
from kdelta.model import Case, Experiment, Progress
from kdelta.spec.workloads import Workload, catalogue


def workloads_of(experiment: Experiment, progress: Progress) -> dict[str, Workload]:
    """The workloads to run ``experiment`` with, once all that it names is what it was planned with.

    Raises:
        UserError: it was imported, a workload is missing, or an image is another one. HostError: see ``images``.
    """
    imported.refuse(experiment)  # before its directories are read
    known = catalogue(tuple(map(Path, experiment.folders)))
    refuse_unknown(experiment, known)
    images.require(experiment, progress)
    return known


def refuse_unknown(experiment: Experiment, workloads: Mapping[str, Workload]) -> None:
    """Raises:
    UserError: a case whose workload is not here, or that has no exact mode where counts are asked for.
    """
    for case in experiment.cases:
        workload = workloads.get(case.workload)
        if workload is None:
            raise UserError(
                f"case {case.name}: its workload {case.workload!r} was not found; give its directory with --workloads"
            )
        if experiment.mode == "exact" and workload.exact_ops == 0:
            raise UserError(f"case {case.name}: it has no exact mode (exact_ops = 0); add --timed")


def refuse_endless(cases: Sequence[Case], workloads: Mapping[str, Workload]) -> None:
    """Raises:
    UserError: a case whose loop never returns, so that no operations can be counted off.
    """
    for case in cases:
        if workloads[case.workload].endless:
            raise UserError(f"case {case.name}: its loop never returns, so its operations cannot be traced one by one")
