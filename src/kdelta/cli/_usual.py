# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a boot will take, by how long those of the same cases took here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdelta.errors import UnreadableError

if TYPE_CHECKING:
    from kdelta.model import Experiment
    from kdelta.store.store import Store

_FIRST_CASE_S = 0.5  # one of the five cases, counted, on a small machine: what is expected until one was measured here
_LOOKED_AT = 20  # experiments


def boot_s(store: Store, experiment: Experiment, at_once: int) -> float | None:
    """Seconds from one boot of such an experiment to the next, as its cases took when they were measured last.

    ``at_once``: how many boots are made at a time. A case that is new here is taken for one of the usual ones, but of
    a program that is new nothing is known, and neither is what it takes to pack it and to boot guests with it: None.

    Where none was measured yet a guess if instructions of one CPU are counted, else None.
    """
    from statistics import median

    from kdelta.spec.program import WORKLOAD as PROGRAM

    names = {case.name for case in experiment.cases}
    taken_s: dict[str, list[float]] = {}
    for row in store.experiments(kind=experiment.kind, limit=_LOOKED_AT):
        if row.mode != experiment.mode or row.status != "complete" or names <= taken_s.keys():
            continue
        try:
            made = store.experiment(row.id)
            if made.machine.smp != experiment.machine.smp:
                continue  # a boot of four CPUs takes many times as long as one of one
            last = _by_case(store, made)
        except UnreadableError:
            continue  # who asks for it is told
        taken_s = last | taken_s
    if any(case.workload == PROGRAM and case.name not in taken_s for case in experiment.cases):
        return None
    guessed = experiment.mode == "exact" and experiment.machine.smp == 1
    every = [one for each in taken_s.values() for one in each]
    if not every and not guessed:
        return None
    usual_s = max(median(every) if every else 0.0, _FIRST_CASE_S if guessed else 0.0)
    return sum(median(taken_s[name]) if name in taken_s else usual_s for name in names) / at_once


def _by_case(store: Store, made: Experiment) -> dict[str, list[float]]:
    """Seconds of each boot by case; those that shared a boot have equal shares of it."""
    found: dict[str, list[float]] = {}
    for boot in store.boots(made.id):
        of = [made.cases[index].name for index in boot.cases] or [case.name for case in made.cases]
        for name in of if boot.elapsed_s else ():
            found.setdefault(name, []).append(boot.elapsed_s / len(of))
    return found
