# SPDX-License-Identifier: GPL-2.0-or-later
"""What the boots of an experiment need of a host, and what a host has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from kdelta.errors import UserError
from kdelta.model import Arch, Experiment, MachineOptions, Mode, plans


class Host(Struct, frozen=True, kw_only=True):
    """What a host says of itself when its worker starts.

    ``makes``: by kind of boots (``kind``) a digest of all that decides what a boot of that kind gives, but the kernel
    and its cases: kdelta's own code, the guest's program, and for counts the plugin and QEMU; of builds the compiler.
    """

    name: str
    slots: int
    version: str
    makes: dict[str, str]
    qemus: dict[str, str] = field(default_factory=dict)  # architecture -> what QEMU says of itself
    kvm: bool = False
    cpus: int = 1
    memory_mib: int = 0


class Needs(Struct, frozen=True, kw_only=True):
    """What all boots of one experiment need; they are made alike on every host that takes them."""

    arch: Arch
    mode: Mode
    make: str
    kvm: bool = False
    cpus: int = 1
    memory_mib: int = 0
    host: str = ""  # a block that was begun there

    @property
    def kind(self) -> str:
        """The key of ``Host.makes``."""
        return kind(self.mode, self.arch)


def kind(mode: Mode | Literal["build"], arch: Arch) -> str:
    """``exact/x86_64``."""
    return f"{mode}/{arch}"


def lacking(needs: Needs, host: Host) -> str:
    """What ``host`` lacks to take such boots, in words; "" when it may."""
    made = host.makes.get(needs.kind)
    if needs.host not in ("", host.name):
        return f"the block was begun on {needs.host}"
    if made is None:
        return f"no QEMU for {needs.arch}"
    if needs.kvm and not host.kvm:
        return "no KVM"
    if made != needs.make:
        differs = "another kdelta, QEMU or compiler" if needs.mode == "exact" else "another kdelta or compiler"
        return f"it would not measure identically ({differs})"
    if host.cpus < needs.cpus:
        return f"{host.cpus} CPUs of {needs.cpus}"
    if host.memory_mib < needs.memory_mib:
        return f"{host.memory_mib} MiB of memory, of {needs.memory_mib}"
    return ""


def refuse(experiment: Experiment) -> None:
    """Raises:
    UserError: the fleet cannot measure it, or not what was asked: it names files or programs of this machine.
    """
    if experiment.imported:
        raise UserError(f"--fleet: experiment {experiment.id} was imported: vouch for it first (kdelta resume --trust)")
    if isinstance(experiment.plan, plans.Bisect) and experiment.mode == "timed":
        raise UserError(
            "--fleet: a timed bisection compares single boots, which one machine has to make: bisect by counts"
        )
    refuse_asked(experiment.machine, experiment.folders)
    if experiment.mode == "exact" and experiment.machine.smp > 1:
        raise UserError(
            "--fleet: counts of several CPUs need a QEMU that hosts do not have: leave --smp out, or add --timed"
        )


def refuse_asked(machine: MachineOptions, folders: Sequence[object]) -> None:
    """``refuse``, as far as it is known before a kernel is fetched."""
    what = ""
    if machine.native:
        what = "the running kernel is on this machine alone: name another with --kernel"
    elif machine.lab:
        what = "--on names a machine that this one reaches: leave one of them out"
    elif machine.qemu:
        what = "every host has a QEMU of its own: leave --qemu out"
    elif folders:
        what = (
            "C files of your own (--workloads, --case FILE.c) are compiled into the guest here: run it without --fleet"
        )
    if what:
        raise UserError(f"--fleet: {what}")


def chosen_make(wanted: str, own: Mapping[str, str], hosts: Iterable[Host], kvm: bool) -> tuple[str, bool]:
    """(make, under KVM) for boots of the kind ``wanted``: of all slots that can take them, the most are made so.

    What this machine itself would do (``own``) decides a tie, and where no host can.

    Raises:
        UserError: neither a host nor this machine can.
    """
    slots: dict[tuple[str, bool], int] = {}
    for host in hosts:
        if made := host.makes.get(wanted):
            key = (made, kvm and host.kvm)
            slots[key] = slots.get(key, 0) + host.slots
    mine = own.get(wanted, "")
    if not slots and not mine:
        raise UserError(f"--fleet: no host can take boots of the kind {wanted} (kdelta fleet shows them)")
    return max(slots or {(mine, False): 0}, key=lambda key: (slots.get(key, 0), key[0] == mine, key))
