# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces as subcommands make them: collector sets by name, and an experiment for each group of them.

Both are stored before the first boot, so that whatever interrupts them, ``kdelta resume`` goes on with all that was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kdelta.cli import _fleet, _passes, common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.cli._session import Session
    from kdelta.experiment.templates import Asked
    from kdelta.model import Experiment, Kernel, Progress


def split(what: str, others: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """``locks,hold`` -> one group of collector sets for each experiment; an empty group stands for exact holds.

    ``others``: words that could stand there too.

    Raises:
        UserError: one of them is not known.
    """
    from kdelta.spec import collectors
    from kdelta.spec.collectors import HOLD

    names = [name.strip() for name in what.split(",")]
    rest = [name for name in names if name != HOLD]
    if names.count(HOLD) > 1:
        raise UserError(f"{HOLD!r} is given twice")
    groups = (
        [tuple(one.name for one in collectors.choose(",".join(rest), collectors.catalogue(), others))] if rest else []
    )
    return [*groups, ()] if HOLD in names else groups


def run(
    session: Session,
    asked: Asked,
    kernels: Sequence[Kernel],
    what: str,
    ops: int | None,
    progress: Progress,
    tag: str = "",
) -> list[str]:
    """An experiment for each group of ``what``, made, tagged and run; their ids."""
    from kdelta.experiment import allowed, templates

    made = [templates.trace(asked, kernels, sets, ops) for sets in split(what)]
    allowed.refuse_endless(made[0].cases, common.load_workloads(tuple(map(Path, made[0].folders))))
    rest = [session.begin(template, 0) for template in made[1:]]
    first = session.begin(templates.with_beside(made[0], rest[0]) if rest else made[0], 0)
    for one in (first, *rest) if tag else ():
        session.store.tag(one.id, tag)
    _passes.run(session, first, _fleet.FleetArgs(fleet=False, detach=False), progress)
    return [one.id for one in (first, *rest)]


def beside(session: Session, measured: Experiment, what: str, progress: Progress) -> list[str]:
    """Trace the kernels and cases of a finished experiment (``compare --why``); the ids of the traces.

    They belong to it: the last experiment is still the comparison.
    """
    from kdelta.experiment import templates
    from kdelta.model import BESIDE_TAG

    asked, tag = templates.asked_in(measured), f"{BESIDE_TAG}{measured.id}"
    return run(session, asked, measured.kernels, what, None, progress, tag)
