# SPDX-License-Identifier: GPL-2.0-or-later
"""Times or counts: what the user asks for, else what this machine can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Case, Kernel, Mode
    from kdelta.spec.workloads import Workload

Passes = Literal["timed", "exact", "both"]  # both: times decide, counts explain them


def passes(*, timed: bool, exact: bool, pressure: str | None, kvm: str) -> Passes | None:
    """What ``compare`` was asked for; None: the machine decides.

    Raises:
        UserError: counts under memory pressure.
    """
    if exact and pressure:
        raise UserError("--pressure needs timed mode: use --timed, not --exact")
    if timed and exact:
        return "both"
    return wanted(timed=timed or bool(pressure), exact=exact, kvm=kvm)


def refuse_both(*, timed: bool, exact: bool) -> None:
    """Raises:
    UserError: times and counts at once.
    """
    if timed and exact:
        raise UserError("--timed and --exact cannot be combined")


def wanted(*, timed: bool, exact: bool, kvm: str) -> Mode | None:
    """The mode that was asked for; None: the machine decides."""
    if timed or exact:
        return "timed" if timed else "exact"
    return "exact" if kvm == "off" else None


def valued(cases: Iterable[Case], known: Mapping[str, Workload]) -> bool:
    """Whether what a case is about is neither time nor instructions, as memory: boots that count have no such figures."""
    metrics = (metric for case in cases if case.workload in known for metric in known[case.workload].metrics)
    return any(metric.primary and metric.source.startswith("value:") for metric in metrics)


def foreseen(kvm: str, qemu: str) -> Mode | None:
    """``exact``, where it is known before a kernel is at hand that KVM runs none here; else None."""
    from kdelta import paths
    from kdelta.errors import HostError
    from kdelta.machine import probe
    from kdelta.machine.qemu import binary_name

    if kvm != "auto":
        return None
    try:
        found = probe.find_qemu(binary_name("x86_64"), "x86_64", qemu)
    except HostError:
        return None  # told when it is needed
    return "exact" if probe.foreseen(found, paths.cache_dir()) == "tcg" else None


def accelerator(kernels: Sequence[Kernel], kvm: str, qemu: str, own: Sequence[Path]) -> str:
    """``kvm`` where it runs these kernels, else ``tcg``. Compiles the guest's program, and may boot a trial guest.

    Raises:
        HostError: no QEMU or no compiler.
    """
    from kdelta.experiment.programs import programs_for
    from kdelta.experiment.survey import survey

    return survey(kernels, kvm, qemu, programs_for(kernels, own)).accel


def of_machine(kernels: Sequence[Kernel], kvm: str, qemu: str, own: Sequence[Path]) -> Mode:
    """Times where KVM runs these kernels, counts where it does not."""
    return "timed" if accelerator(kernels, kvm, qemu, own) == "kvm" else "exact"
