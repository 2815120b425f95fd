# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that guests run: kdelta's own, compiled for each architecture, and those that are measured."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdelta import paths
from kdelta.errors import UserError
from kdelta.experiment import ahead
from kdelta.guest import binary, packing, pressure
from kdelta.kernel import source
from kdelta.model import Arch, Case, Experiment, Kernel, Progress
from kdelta.spec import needs, program
from kdelta.spec.workloads import Workload, catalogue
from kdelta.units import counted


def programs_for(kernels: Sequence[Kernel], own: Sequence[Path]) -> dict[Arch, Path]:
    """The guest's program for every architecture at hand, compiled now if it was not."""
    arches: set[Arch] = {kernel.arch for kernel in kernels}
    data = _data(own)
    ahead.compiled()
    return {arch: binary.build(arch, own, cache=paths.cache_dir(), data=data) for arch in sorted(arches)}


def compiled_here(own: Sequence[Path]) -> None:
    """Compile the user's sources for this machine, as a guest of its architecture will take them.

    Raises:
        UserError: they do not compile. HostError: nothing does.
    """
    here: Arch = "arm64" if pressure.MACHINES.get(platform.machine()) == "arm64" else "x86_64"
    binary.build(here, own, cache=paths.cache_dir(), data=_data(own))


def _data(own: Sequence[Path]) -> list[Path]:
    return [path for workload in catalogue(own).values() for path in workload.data_files.values()] if own else []


def runnable(
    kernels: Sequence[Kernel], cases: Sequence[Case], workloads: Mapping[str, Workload], progress: Progress
) -> list[Case]:
    """Those of ``cases`` that guests of ``kernels`` can run, which are of one architecture.

    That are no programs of this machine where it is of another one, which is told; and nothing that needs what few
    kernels have, where one of these is not known to have it.
    """
    here, first = pressure.MACHINES.get(platform.machine()), kernels[0]
    found = [case for case in cases if first.arch == here or not _is_program(case)]
    if left := len(cases) - len(found):
        progress.note(
            f"{counted(left, 'case')} left out: programs of this {here} machine, and {first.label} is {first.arch}"
        )
    return able(kernels, found, workloads)


def able(kernels: Sequence[Kernel], cases: Sequence[Case], workloads: Mapping[str, Workload]) -> list[Case]:
    """Those of ``cases`` that need nothing of what few kernels have, or what all ``kernels`` are known to have."""
    configs = [source.options(kernel) or kernel.config for kernel in kernels]
    own = [(case, workloads[case.workload].needs_of(case)) for case in cases]
    return [case for case, wanted in own if all(needs.met(wanted, config) for config in configs)]


def _is_program(case: Case) -> bool:
    return case.workload == program.WORKLOAD or program.PACK in case.params


def packed(experiment: Experiment, jobs: Mapping[int, Case]) -> tuple[dict[str, Path], tuple[Path, ...]]:
    """What the programs among ``jobs`` need: data files and archives.

    Raises:
        UserError: their files are gone, or the kernels cannot run them.
    """
    cases = [case for case in jobs.values() if _is_program(case)]
    if not cases:
        return {}, ()
    here = pressure.MACHINES.get(platform.machine())
    if foreign := [kernel for kernel in experiment.kernels if kernel.arch != here]:
        raise UserError(
            f"{foreign[0].label} is of {foreign[0].arch}: it cannot run the programs of this {here} machine; the "
            "suites of kdelta's own cases run there (--suite patches, syscalls)"
        )
    return packing.of_cases(cases)
