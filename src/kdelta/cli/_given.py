# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that would do nothing are refused: those of the other mode, and those that something else leaves without effect.

The help of an option of one mode begins with its name ("Timed:", "Exact:"); it is read here, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Mode

_TYPED = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)  # the latter: --spec FILE


def given() -> dict[str, click.Option]:
    """The options that the user wrote, by parameter; {} outside of a command line."""
    context = click.get_current_context(silent=True)
    if context is None:
        return {}
    options = [one for one in context.command.params if isinstance(one, click.Option) and one.name]
    return {one.name: one for one in options if one.name and context.get_parameter_source(one.name) in _TYPED}


def name(option: click.Option) -> str:
    """An option as it is typed in full: ``--json``."""
    return max(option.opts, key=len)


def refuse(parameters: Iterable[str], why: str) -> None:
    """Raises:
    UserError: one of the ``parameters`` was given, which ``why`` says does nothing here.
    """
    written = given()
    for parameter in parameters:
        if parameter in written:
            raise UserError(f"{name(written[parameter])} {why}")


def refuse_other_mode(mode: Mode, hint: str) -> None:
    """Refuse the options of the mode that is not ``mode``; ``hint`` says how to come to the other one.

    Raises:
        UserError: such an option was given.
    """
    other = "exact" if mode == "timed" else "timed"
    for option in given().values():
        if (option.help or "").startswith(f"{other.capitalize()}:"):
            raise UserError(f"{name(option)} is for {other} mode and would do nothing, as this is {mode}: {hint}")


def refuse_large(memory_mib: int) -> None:
    """Refuse guests that this machine has no memory for; hosts of a fleet say themselves what they have.

    Raises:
        UserError: --memory is more than all of it.
    """
    from kdelta.machine.hostfacts import memory_mib as all_of_it

    context = click.get_current_context(silent=True)
    fleet = context is not None and context.params.get("fleet")
    if not fleet and memory_mib > (all_mib := all_of_it()):
        raise UserError(
            f"--memory {memory_mib}: a guest does not fit into the {all_mib} MiB of this machine; give less"
        )


def refuse_idle_machine(mode: Mode, smp: int) -> None:
    """Refuse options of the machine without effect (turns of one CPU, KVM where instructions are counted), or too large.

    Raises:
        UserError: such an option was given.
    """
    from kdelta.experiment.templates import refuse_several

    context = click.get_current_context(silent=True)
    refuse_large(context.params.get("memory", 0) if context is not None else 0)
    if mode == "exact":
        refuse_several(smp, _architectures(context))
    if smp == 1:
        refuse(["turn"], "says how long each of several CPUs runs: give --smp too, or leave it out")
    if mode == "exact" and context is not None and context.params.get("kvm") == "on":
        refuse(["kvm"], "on would do nothing, as this is exact: instructions are counted in emulation, never under KVM")


def _architectures(context: click.Context | None) -> list[tuple[str, str]]:
    """The kernels of this command line that say theirs; a file says it when it is read."""
    from kdelta.spec.kernels import split

    given = context.params if context is not None else {}
    named = given.get("kernels") or filter(None, [given.get("named") or given.get("kernel")])
    return [(spec.label or spec.text, spec.arch) for spec in (split(text)[0] for text in named)]
