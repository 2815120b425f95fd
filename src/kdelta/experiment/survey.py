# SPDX-License-Identifier: GPL-2.0-or-later
"""What this machine has for an experiment: QEMU, KVM or not, the guest's program; together the site of its boots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kdelta import paths
from kdelta.errors import HostError
from kdelta.experiment.boot_once import boot_once
from kdelta.experiment.work import Site, Work
from kdelta.guest.jobs import JobList
from kdelta.machine import probe
from kdelta.machine.options import Accel, Port, common_port
from kdelta.machine.qemu import binary_name
from kdelta.model import Arch, Kernel, MachineOptions, Mode


class Ground(Struct, frozen=True, kw_only=True):
    """What was found out about this machine for an experiment."""

    accel: Accel
    why: str
    qemus: dict[Arch, probe.Qemu]

    @property
    def text(self) -> str:
        """The QEMUs with their architectures."""
        return "; ".join(f"{arch} {qemu.text}" for arch, qemu in self.qemus.items())


def _site(programs: Mapping[Arch, Path], options: MachineOptions, ground: Ground | None, port: Port) -> Site:
    return Site(
        programs=programs,
        scratch=paths.cache_dir() / "boots",
        snapshots=paths.cache_dir() / "snapshots",
        qemus={} if ground is None else ground.qemus,
        accel="tcg" if ground is None else ground.accel,
        port=port,
        options=options,
    )


def site(
    kernels: tuple[Kernel, ...],
    options: MachineOptions,
    mode: Mode,
    programs: Mapping[Arch, Path],
    ground: Ground | None = None,
) -> Site:
    """Where boots of ``kernels`` happen; without ``ground``, on the running machine itself."""
    return _site(programs, options, ground, common_port(kernels, mode))


def _trial(qemu: probe.Qemu, kernel: Kernel, programs: Mapping[Arch, Path]) -> tuple[bool, str]:
    """Boot ``kernel`` under KVM with no job: does it come up?"""
    ground = Ground(accel="kvm", why="trial", qemus={kernel.arch: qemu})
    work = Work(kernel=kernel, jobs=JobList(mode="timed"), limit_s=probe.KVM_TRIAL_LIMIT_S)
    try:
        raw = boot_once(_site(programs, MachineOptions(), ground, "uart"), work)
    except HostError as error:
        return False, str(error)
    return raw.state == "ok", "" if raw.state == "ok" else f"{raw.state}: {raw.why}"


def survey(
    kernels: Sequence[Kernel],
    kvm: str,
    chosen_qemu: str,
    programs: Mapping[Arch, Path],
    found: probe.Qemu | None = None,
) -> Ground:
    """Find QEMU for every architecture, unless it was ``found``, and decide between KVM and emulation.

    Raises:
        HostError: there is no QEMU, or KVM was demanded and does not work.
    """
    arches = sorted({kernel.arch for kernel in kernels})
    qemus = {arch: found or probe.find_qemu(binary_name(arch), arch, chosen_qemu) for arch in arches}
    first = kernels[0]
    accel, why = probe.decide_accel(
        kvm if len(arches) == 1 else "off",
        qemus[first.arch],
        first.arch,
        paths.cache_dir(),
        lambda: _trial(qemus[first.arch], first, programs),
    )
    return Ground(accel=accel, why=why, qemus=qemus)
