# SPDX-License-Identifier: GPL-2.0-or-later
"""--hardware: how the running machine is set while it is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.experiment.templates import Asked

option = click.option(
    "--hardware",
    default="",
    metavar="KEY=VALUE,...",
    help="On the running kernel, as root: governor=NAME, turbo=on|off, smt=on|off, cpus=LIST (tasks keep to them, interrupts off them). All is put back.",
)


def refuse(text: str, native: bool) -> None:
    """Refuse what cannot be, before anything is measured.

    Raises:
        UserError: it is misspelt, or the running machine is not what is measured.
    """
    from kdelta.spec import hardware

    if not text:
        return
    hardware.parse(text, "--hardware")
    if not native:
        raise UserError("--hardware sets the running machine: name no kernel, or write it in the file of --on")


def of(asked: Asked, text: str) -> Asked:
    """``asked`` of hardware that is set so."""
    from kdelta.spec import hardware

    if not text:
        return asked
    machine = msgspec.structs.replace(asked.machine, hardware=hardware.parse(text, "--hardware"))
    return msgspec.structs.replace(asked, machine=machine)
