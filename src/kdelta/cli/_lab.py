# SPDX-License-Identifier: GPL-2.0-or-later
"""--on: the kernels are started on a machine of a lab, which is no guest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import msgspec

from kdelta.cli import _fleet, _given, common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.experiment.templates import Asked
    from kdelta.model import Experiment, Progress

options = common.decorate(
    click.option(
        "--on",
        "lab",
        default="",
        metavar="FILE:NAME",
        help="Start the kernels on this machine instead of in guests: NAME in a TOML file, or in an environment of labgrid (YAML). With --fleet: NAME alone.",
    ),
    click.option(
        "--in-system",
        is_flag=True,
        help="With --on: measure inside its installed system; the kernels are installed there.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class LabArgs:
    """The value of ``options``."""

    lab: str
    in_system: bool

    @property
    def _others(self) -> bool:
        """Whether a host of the fleet drives it."""
        return bool(getattr(self, "fleet", False))

    def refuse_on(self, others: Mapping[str, object]) -> None:
        """Refuse what cannot be on a machine of a lab, before anything is fetched; ``others``: options that need guests.

        Raises:
            UserError: the description is wrong, or an option is about guests.
        """
        from kdelta.lab.describe import described, refuse

        if not self.lab:
            _given.refuse(["in_system"], "is about a machine of a lab: add --on FILE:NAME")
            return
        if not self._others:
            refuse(described(self.lab), self.in_system)
        elif ":" in self.lab:
            name = self.lab.rpartition(":")[2]
            raise UserError(
                f"--fleet: a worker that reaches the machine has its description: name it alone, --on {name}"
            )
        _given.refuse(("smp", "memory", "kvm", "qemu", "turn"), "is about guests, and --on names a machine")
        if wanted := [name for name, value in others.items() if value]:
            raise UserError(f"{wanted[0]} needs guests: leave out --on, or {wanted[0]}")

    def placed(self, asked: Asked) -> Asked:
        """``asked`` of that machine, where one is named."""
        from kdelta.lab.describe import parse

        if not self.lab:
            return asked
        text = self.lab if self._others else "{}:{}".format(*parse(self.lab))
        machine = msgspec.structs.replace(asked.machine, lab=text, in_system=self.in_system)
        return msgspec.structs.replace(asked, machine=machine)

    def met(self, progress: Progress) -> dict[str, str]:
        """What the machine is, {} where none is named; asked before a kernel is fetched.

        Raises:
            HostError: it does not answer.
        """
        from kdelta.lab import boot
        from kdelta.lab.describe import described

        if not self.lab:
            return {}
        if self._others:
            return _fleet.machine(self.lab)
        machine = described(self.lab)
        progress.step(f"connecting to machine {machine.name}")
        return boot.identity(machine)


def of(template: Experiment, host: Mapping[str, str]) -> Experiment:
    """``template`` with the machine that it is measured on, where that is not this one.

    Raises:
        UserError: a kernel is of another architecture.
    """
    from kdelta.lab.one_boot import MACHINES

    for kernel in template.kernels if host else ():
        if host["arch"] != MACHINES[kernel.arch]:
            raise UserError(f"--on: {host['machine']} is {host['arch']}, and kernel {kernel.label} is of {kernel.arch}")
    return msgspec.structs.replace(template, host=dict(host)) if host else template
