# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that guests run: kdelta's own, compiled for each architecture, and the one that is measured."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from kdelta import paths
from kdelta.errors import UserError
from kdelta.guest import binary, packing, pressure
from kdelta.model import Arch, Experiment, Kernel
from kdelta.spec import program
from kdelta.spec.workloads import catalogue


def programs_for(kernels: Sequence[Kernel], own: Sequence[Path]) -> dict[Arch, Path]:
    """The guest's program for every architecture at hand, compiled now if it was not."""
    arches: set[Arch] = {kernel.arch for kernel in kernels}
    data = [path for workload in catalogue(own).values() for path in workload.data_files.values()] if own else []
    return {arch: binary.build(arch, own, cache=paths.cache_dir(), data=data) for arch in sorted(arches)}


def packed(experiment: Experiment) -> packing.Pack | None:
    """The program of the experiment, where one is measured.

    Raises:
        UserError: its files are gone, there are several, or the kernels cannot run it.
    """
    cases = [case for case in experiment.cases if case.workload == program.WORKLOAD]
    if not cases:
        return None
    if len({case.params.get(program.PACK) for case in cases}) > 1:
        raise UserError("an experiment takes one program")
    here = pressure.MACHINES.get(platform.machine())
    if foreign := [kernel for kernel in experiment.kernels if kernel.arch != here]:
        raise UserError(
            f"{foreign[0].label} is of {foreign[0].arch}: it cannot run the programs of this {here} machine"
        )
    return packing.of_case(cases[0])
