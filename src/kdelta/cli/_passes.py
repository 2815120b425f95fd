# SPDX-License-Identifier: GPL-2.0-or-later
"""What one command asked for as two experiments of the store: one names the other, is resumed and reported for both.

A comparison in two passes: counts first, which take no quiet machine, then the times that they explain. And a trace of
events and of exact holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kdelta.cli import _fleet
from kdelta.errors import HostError, UserError
from kdelta.model import plans

if TYPE_CHECKING:
    from kdelta.cli._session import Session
    from kdelta.model import Case, Experiment, Progress
    from kdelta.spec.workloads import Workload
    from kdelta.store.store import Store


def refuse(*, each: bool) -> None:
    """Raises:
    UserError: a series patch by patch, which does one pass at a time.
    """
    if each:
        raise UserError("--timed --exact with --each is two experiments: give one of --timed and --exact")


def usual(cases: Iterable[Case], known: Mapping[str, Workload], cpus: int) -> bool:
    """Whether times are explained by counts where nobody says so: all cases can be counted, and as they are timed.

    On several CPUs they would be other cases: there a case has a task on each.
    """
    return cpus == 1 and all(case.workload in known and known[case.workload].exact_ops for case in cases)


def begin(session: Session, timed: Experiment, counts: Experiment | None, seed: int | None) -> Experiment:
    """Store the templates of both passes; the experiment of ``timed``, which is the one that is reported."""
    from kdelta.experiment import templates

    if counts is None:
        return session.begin(timed, seed)
    return session.begin(templates.explained(timed, session.begin(counts, seed)), seed)


def counts_of(store: Store, experiment: Experiment) -> Experiment | None:
    """The pass that counts; None where there is none, or where it did not come with an imported one."""
    return _stored(store, plans.counted_by(experiment.plan))


def traced_beside(store: Store, experiment: Experiment) -> Experiment | None:
    """The rest of what a trace was asked for; None where there is none, or where it did not come with it."""
    return _stored(store, plans.traced_beside(experiment.plan))


def _stored(store: Store, name: str) -> Experiment | None:
    try:
        return store.experiment(name) if name else None
    except UserError:
        return None


def run(
    session: Session,
    experiment: Experiment,
    args: _fleet.FleetArgs,
    progress: Progress,
    budget_s: float | None = None,
    *,
    counts_asked: bool = False,
) -> bool:
    """Have what is left of all its passes measured, as ``_fleet.run`` does one; ``budget_s`` is of the times.

    Raises:
        HostError: this machine cannot count, and ``counts_asked``; else it is a note, and the times stand alone.
    """
    counts = counts_of(session.store, experiment)
    if counts is not None and not counts.imported:
        progress.step("counting instructions, which will explain the times")
        try:
            _fleet.run(session, counts, args, progress, resumed_as=experiment)
        except HostError as error:
            if counts_asked:
                raise
            progress.note(f"no counts beside the times: {error}")
        progress.step("measuring time")
    whole = _fleet.run(session, experiment, args, progress, budget_s)
    rest = traced_beside(session.store, experiment)
    if rest is not None and not rest.imported:
        whole = _fleet.run(session, rest, args, progress, budget_s, resumed_as=experiment) and whole
    return whole
