# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the boots of an experiment happen, and what is stored of this machine with each."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta import __version__
from kdelta.experiment import emulator
from kdelta.experiment.programs import programs_for
from kdelta.experiment.survey import Ground, site, survey
from kdelta.experiment.work import Site
from kdelta.lab.boot import Machine
from kdelta.lab.describe import described
from kdelta.model import Experiment, Progress
from kdelta.results import floors
from kdelta.store.store import Store


class Place(Struct, frozen=True, kw_only=True):
    """``guests``: boots are guests of QEMU; else the harness runs on this machine itself."""

    site: Site
    machine: dict[str, str]  # stored with every boot
    guests: bool


def of(experiment: Experiment, progress: Progress) -> Place:
    """Find QEMU, decide between KVM and emulation, and compile the guest's program where that was not done.

    Raises:
        HostError: no QEMU, no compiler. UserError: the description of a machine of a lab is wrong.
    """
    exact, options = experiment.mode == "exact", experiment.machine
    programs = programs_for(experiment.kernels, tuple(map(Path, experiment.folders)))
    ground = None
    if options.guests:
        several = exact and options.smp > 1
        qemu = emulator.for_several_cpus("x86_64", options.qemu, progress) if several else None
        ground = survey(experiment.kernels, "off" if exact else options.kvm, options.qemu, programs, qemu)
        if not exact:
            progress.note(f"machine: {ground.why}; QEMU {ground.text}")
    here = site(experiment.kernels, options, experiment.mode, programs, ground)
    if options.lab:
        here = replace(here, lab=Machine(described(options.lab)))
    return Place(site=here, machine=_machine(experiment, ground), guests=ground is not None)


def _machine(experiment: Experiment, ground: Ground | None) -> dict[str, str]:
    if experiment.machine.lab:
        return {"accel": "hardware", "lab": experiment.machine.lab_name, "tool": __version__}
    if ground is None:
        return {"accel": "native", "tool": __version__}
    accel = "tcg" if experiment.mode == "exact" else ground.accel
    return {"accel": accel, "qemu": ground.text, "tool": __version__}


def with_floors(store: Store, experiment: Experiment, here: Place) -> Experiment:
    """Times are judged by the floors that were calibrated here before they were measured, whatever comes later."""
    found = floors.calibrated(experiment, here.machine, store)
    return store.annotate(experiment.id, lambda known: replace(known, floors_percent=found))
