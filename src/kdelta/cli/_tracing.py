# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces as subcommands make them: collector sets by name, and an experiment for each group of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kdelta.cli import common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.cli._session import Session
    from kdelta.model import Experiment, Progress


def split(what: str) -> list[tuple[str, ...]]:
    """``locks,hold`` -> one group of collector sets for each experiment; an empty group stands for exact holds.

    Raises:
        UserError: one of them is not known.
    """
    from kdelta.spec import collectors
    from kdelta.spec.collectors import HOLD

    names = [name.strip() for name in what.split(",")]
    rest = [name for name in names if name != HOLD]
    if names.count(HOLD) > 1:
        raise UserError(f"{HOLD!r} is given twice")
    groups = [tuple(one.name for one in collectors.choose(",".join(rest), collectors.catalogue()))] if rest else []
    return [*groups, ()] if HOLD in names else groups


def run(session: Session, template: Experiment, progress: Progress) -> str:
    """One experiment, made and run; its id."""
    from kdelta.experiment import allowed

    allowed.refuse_endless(template.cases, common.load_workloads(tuple(map(Path, template.folders))))
    experiment = session.begin(template, 0)
    session.run(experiment, progress)
    return experiment.id


def beside(session: Session, measured: Experiment, what: str, progress: Progress) -> list[str]:
    """Trace the kernels and cases of a finished experiment (``compare --why``); the ids of the traces."""
    from kdelta.experiment import templates

    asked = templates.asked_in(measured)
    return [run(session, templates.trace(asked, measured.kernels, sets, None), progress) for sets in split(what)]
