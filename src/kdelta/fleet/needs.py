# SPDX-License-Identifier: GPL-2.0-or-later
"""What the boots of an experiment need of a host, and what a host has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    machine: str = ""  # what tells it from others with the same name: the boot id of its kernel
    turns: str = ""  # where it takes turns with other workers of this machine; those of another place it does not see
    qemus: dict[str, str] = field(default_factory=dict)  # architecture -> what QEMU says of itself
    kvm: bool = False
    cpus: int = 1
    memory_mib: int = 0
    machines: dict[str, dict[str, str]] = field(default_factory=dict)  # of a lab, that it drives -> what each is


class Needs(Struct, frozen=True, kw_only=True):
    """What all boots of one experiment need; they are made alike on every host that takes them."""

    arch: Arch
    mode: Mode
    make: str
    kvm: bool = False
    cpus: int = 1
    memory_mib: int = 0
    host: str = ""  # a block that was begun there
    several_cpus: bool = False  # counts of guests that have several
    lab: str = ""  # the machine of a lab that they are made on

    @property
    def kind(self) -> str:
        """The key of ``Host.makes``."""
        return kind("lab" if self.lab else "several" if self.several_cpus else self.mode, self.arch)


def kind(what: Mode | Literal["build", "several", "lab"], arch: Arch) -> str:
    """``exact/x86_64``; ``several`` are counts of guests with several CPUs, ``lab`` times on machines of a lab."""
    return f"{what}/{arch}"


def _no_make(kind: str) -> str:
    """What a host has not that makes no boots of this kind, with the remedy. Pure."""
    what, _, arch = kind.partition("/")
    if what == "several":
        return "no QEMU 9.0 or later, for counts of several CPUs (kdelta worker --several-cpus)"
    if what == "lab":
        return f"no compiler of programs for {arch} (kdelta doctor there says more)"
    return f"no QEMU for {arch}{', with plugins' if what == 'exact' else ''} (kdelta doctor there says more)"


def lacking(needs: Needs, host: Host) -> str:
    """What ``host`` lacks to take such boots, in words; "" when it may."""
    made = host.makes.get(needs.kind)
    if needs.host not in ("", host.name):
        return f"the block was begun on {needs.host}"
    if needs.lab and needs.lab not in host.machines:
        return f"it does not drive {needs.lab} (kdelta worker --on FILE:{needs.lab})"
    if made is None:
        return _no_make(needs.kind)
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


def unseen(own: Host, hosts: Iterable[Host]) -> str:
    """What is wrong where workers on one machine do not take turns, in words; "" where all do. Pure."""
    others = sorted({h.name for h in hosts if h.machine and h.machine == own.machine and h.turns != own.turns})
    if not others:
        return ""
    return (
        f"on this machine {', '.join(others)} is at work with another user or cache: they do not wait for each other, "
        "so times are taken beside other boots; let one user run all workers of a machine"
    )


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
    refuse_asked(experiment.machine)


def refuse_asked(machine: MachineOptions) -> None:
    """``refuse``, as far as it is known before a kernel is fetched."""
    what = ""
    if machine.native:
        what = "the running kernel is on this machine alone: name another with --kernel"
    elif machine.lab != machine.lab_name:
        what = "--on names a machine that this one reaches: leave one of them out"
    elif machine.qemu:
        what = "every host has a QEMU of its own: leave --qemu out"
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
        raise UserError(f"--fleet: all hosts lack what it needs: {_no_make(wanted)}")
    return max(slots or {(mine, False): 0}, key=lambda key: (slots.get(key, 0), key[0] == mine, key))
