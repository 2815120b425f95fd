# SPDX-License-Identifier: GPL-2.0-or-later
"""The same kernels and cases measured twice, on two hosts or by two QEMUs: do the figures agree?

Counts agree exactly, within the spread of their seeds, within the floor of their case, or not, and then the functions
that differ are named. Timed effects stand side by side and get no verdict: boots of two experiments share no block
(docs/methodology.md).
"""

from __future__ import annotations

from kdelta.errors import UserError
from kdelta.model import Experiment, plans
from kdelta.results import cells, explain
from kdelta.results.agreement.common import Measured, differences, shared
from kdelta.results.agreement.counts import count_pairs
from kdelta.results.agreement.effects import effect_pairs
from kdelta.results.agreement.types import Agreement, Side
from kdelta.store import planned
from kdelta.store.store import Store

_CHECKS = ((plans.Trace, "a trace"), (plans.Leaks, "a leak check"))  # plans that measure no cost


def compare(store: Store, here: str, there: str, *, all_metrics: bool = False) -> Agreement:
    """Put two stored experiments side by side; ``all_metrics``: not only what decides.

    Raises:
        UserError: no such experiment, twice the same, one that measures no cost, exact against timed, nothing common.
    """
    a, b = (store.experiment(name) for name in (here, there))
    for experiment in (a, b):
        for plan, name in _CHECKS:
            if isinstance(experiment.plan, plan):
                raise UserError(f"--against: experiment {experiment.id} is {name}; name a measurement")
    if a.id == b.id:
        raise UserError(f"--against: {here} and {there} are the same experiment, {a.id}; name another one")
    if a.mode != b.mode:
        raise UserError(
            f"--against: {a.id} is {a.mode} and {b.id} is {b.mode}: counts and times cannot be compared; use one mode"
        )
    return put_together(_read(store, a), _read(store, b), all_metrics=all_metrics)


def _read(store: Store, experiment: Experiment) -> Measured:
    boots, numbers = store.boots(experiment.id), store.numbers(experiment.id)
    good = next((boot for boot in boots if boot.state == "ok"), None)
    timed = experiment.mode == "timed"
    return Measured(
        experiment=experiment,
        boots=boots,
        numbers=numbers,
        complete=len(boots) + planned.boots_spared(experiment, store.looks(experiment.id))
        >= planned.boots_planned(experiment),
        argv=store.boot(experiment.id, good.block, good.slot).argv if good else (),
        seeds={} if timed else explain.seeds_of(experiment, store),
        floors={} if timed else cells.floors_of(experiment, store),
        rows=cells.judged(experiment, store, numbers) if timed else (),
    )


def put_together(here: Measured, there: Measured, *, all_metrics: bool = False) -> Agreement:
    """The answer from what was read. Pure.

    Raises:
        UserError: nothing is common.
    """
    common = shared(here.experiment, there.experiment)
    timed = here.experiment.mode == "timed"
    return Agreement(
        mode=here.experiment.mode,
        here=_side(here),
        there=_side(there),
        differences=differences(here, there),
        counts=() if timed else tuple(count_pairs(here, there, common, all_metrics)),
        effects=effect_pairs(here, there, common, all_metrics) if timed else (),
        only_here=common.only_here,
        only_there=common.only_there,
    )


def _side(measured: Measured) -> Side:
    e = measured.experiment
    return Side(
        experiment=e.id,
        kind=e.kind,
        created_at=e.created_at,
        boots_done=len(measured.boots),
        boots_planned=planned.boots_planned(e),
        complete=measured.complete,
        command=e.command,
    )
