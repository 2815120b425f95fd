# SPDX-License-Identifier: GPL-2.0-or-later
"""An imported experiment is shown, but nothing that it names is run or read, until its owner here says so."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.model import Experiment, Kernel, plans
from kdelta.results import definitions


def refuse(experiment: Experiment) -> None:
    """Before anything is run or read by what ``experiment`` names: QEMU, images, trees, directories, the machine.

    Raises:
        UserError: it was imported, and nobody here has vouched for it.
    """
    if experiment.imported:
        raise UserError(
            f"experiment {experiment.id} was imported: who exported it chose its QEMU, images and directories, and "
            f"nothing of that is used; name your own kernels (kdelta resume {experiment.id} --kernel LABEL=KERNEL), or "
            f"vouch for all of it (kdelta resume {experiment.id} --trust)"
        )


def with_own(experiment: Experiment, own: Sequence[Kernel]) -> Experiment:
    """``experiment`` on kernels of this machine instead of the paths that it names; QEMU is the one on PATH.

    ``own`` are labelled as its kernels are, and have to be the same images: their boots stand beside those stored.
    The command lines stay, as they are part of the question. Pure but for the catalogue of workloads.

    Raises:
        UserError: a kernel is missing, unknown or another one; or more than kernels would have to be believed.
    """
    _refuse_beyond_kernels(experiment)
    given = {kernel.label: kernel for kernel in own}
    labels = [kernel.label for kernel in experiment.kernels]
    if unknown := sorted(set(given) - set(labels)):
        raise UserError(f"--kernel {unknown[0]}=: experiment {experiment.id} has the kernels {', '.join(labels)}")
    if missing := [label for label in labels if label not in given]:
        raise UserError(f"experiment {experiment.id} needs --kernel {missing[0]}=KERNEL too: all its kernels or none")
    kernels = tuple(_same(kernel, given[kernel.label]) for kernel in experiment.kernels)
    return replace(experiment, kernels=kernels, folders=(), machine=replace(experiment.machine, qemu=""))


def _refuse_beyond_kernels(experiment: Experiment) -> None:
    """What own kernels do not replace."""
    shipped = definitions.here(())
    theirs = sorted({case.workload for case in experiment.cases} - set(shipped))
    beyond = ""
    if not experiment.machine.guests:
        beyond = "it measures a machine itself"
    elif isinstance(experiment.plan, plans.Bisect):
        beyond = f"it builds commits of {experiment.plan.tree}"
    elif theirs:
        beyond = f"its case {theirs[0]} is compiled from {', '.join(experiment.folders) or 'a directory that it lacks'}"
    if beyond:
        raise UserError(f"experiment {experiment.id}: own kernels are not enough, {beyond}: measure again, or --trust")


def _same(stored: Kernel, own: Kernel) -> Kernel:
    if own.image_sha256 != stored.image_sha256:
        raise UserError(
            f"--kernel {stored.label}=: {own.spec} is another image (sha256 {own.image_sha256[:12]}) than the one that "
            f"was measured ({stored.image_sha256[:12]}): compare your kernels in a new experiment, then kdelta report "
            "--against"
        )
    if own.cmdline not in ("", stored.cmdline):
        raise UserError(f"--kernel {stored.label}=: it was measured with the command line {stored.cmdline!r}")
    return replace(own, label=stored.label, cmdline=stored.cmdline)
