# SPDX-License-Identifier: GPL-2.0-or-later
"""--on: the kernels are started on a machine of a lab, which is no guest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import msgspec

from kdelta.cli import _given, common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.experiment.templates import Asked
    from kdelta.lab.describe import Described
    from kdelta.model import Experiment, Progress

options = common.decorate(
    click.option(
        "--on",
        "lab",
        default="",
        metavar="FILE:NAME",
        help="Start the kernels on this machine instead of in guests: NAME in a TOML file, or in an environment of labgrid (YAML).",
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

    def refuse_on(self, others: Mapping[str, object]) -> None:
        """Refuse what cannot be on a machine of a lab, before anything is fetched; ``others``: options that need guests.

        Raises:
            UserError: the description is wrong, or an option is about guests.
        """
        from kdelta.lab.describe import described

        if not self.lab:
            _given.refuse(["in_system"], "is about a machine of a lab: add --on FILE:NAME")
            return
        _refuse_of(described(self.lab), self.in_system)
        _given.refuse(("smp", "memory", "kvm", "qemu", "turn"), "is about guests, and --on names a machine")
        if wanted := [name for name, value in others.items() if value]:
            raise UserError(f"{wanted[0]} needs guests: leave out --on, or {wanted[0]}")

    def placed(self, asked: Asked) -> Asked:
        """``asked`` of that machine, where one is named."""
        from kdelta.lab.describe import parse

        if not self.lab:
            return asked
        path, name = parse(self.lab)
        machine = msgspec.structs.replace(asked.machine, lab=f"{path}:{name}", in_system=self.in_system)
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
        machine = described(self.lab)
        progress.step(f"connecting to machine {machine.name}")
        return boot.identity(machine)


def _refuse_of(machine: Described, in_system: bool) -> None:
    """Raises:
    UserError: this machine cannot be measured so.
    """
    from kdelta.lab.start import by_script

    options = machine.options
    if in_system and not by_script(options.start):
        raise UserError(
            f"--in-system: {machine.name} starts by {options.start}; kexec, grub and systemd-boot can do it"
        )
    if not in_system and (options.hardware.turbo is not None or options.hardware.cpus):
        what = "turbo" if options.hardware.turbo is not None else "cpus"
        raise UserError(f"--on: {machine.name}: hardware.{what} is set in the installed system alone: add --in-system")


def of(template: Experiment, host: Mapping[str, str]) -> Experiment:
    """``template`` with the machine that it is measured on, where that is not this one."""
    return msgspec.structs.replace(template, host=dict(host)) if host else template
