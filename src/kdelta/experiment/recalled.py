# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots of other experiments that may stand for one: of the same identity, and divided by the same.

The identity of a boot is what its guest did. Stored are figures per operation, or per part of one, and in how many
parts an operation is divided stands in a TOML file that no guest sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdelta.errors import UnreadableError
from kdelta.model import BootResult, Experiment, Metric
from kdelta.results import definitions
from kdelta.store.store import Store

Recall = Callable[[str], tuple[str, BootResult] | None]


def recalling(store: Store, experiment: Experiment) -> Recall:
    """Who looks up a stored boot by its identity, with the experiment that it is from; None where none may stand."""
    mine = definitions.metrics_of(experiment)
    known: dict[str, tuple[Experiment, Mapping[str, tuple[Metric, ...]]] | None] = {}

    def alike(name: str, boot: BootResult) -> bool:
        if name not in known:
            known[name] = _read(store, name)
        if (read := known[name]) is None:
            return False
        other, theirs = read
        cases = boot.plan.cases or range(min(len(other.cases), len(experiment.cases)))
        return all(
            _divided_alike(mine.get(experiment.cases[case].workload, ()), theirs.get(other.cases[case].workload, ()))
            for case in cases
        )

    def recall(identity: str) -> tuple[str, BootResult] | None:
        try:
            found = store.identical(identity)
        except UnreadableError:
            return None
        return found if found is not None and alike(*found) else None

    return recall


def _read(store: Store, name: str) -> tuple[Experiment, Mapping[str, tuple[Metric, ...]]] | None:
    """An experiment and its metrics; None of a damaged one, whose boots stand for none."""
    try:
        found = store.experiment(name)
    except UnreadableError:
        return None
    return found, definitions.metrics_of(found)


def _divided_alike(mine: tuple[Metric, ...], theirs: tuple[Metric, ...]) -> bool:
    """Whether the metrics that both have are derived alike; an older kdelta may have known fewer."""
    sources = {metric.name: metric.source for metric in theirs}
    return all(sources.get(metric.name, metric.source) == metric.source for metric in mine)
