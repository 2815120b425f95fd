# SPDX-License-Identifier: GPL-2.0-or-later
"""What the workloads of an experiment were when it was made: stored with it, in older stores what they are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from kdelta.attribution.exact import exact_metrics
from kdelta.model import Definition, Experiment, Metric, plans
from kdelta.spec import workloads
from kdelta.spec.workloads import Workload

# What makes a run of the leak check whole; the counts themselves are facts of the run (results/leaks.py).
LEAK_METRICS = (Metric(name="batches", unit="", better="higher", source="value:leak_batches", primary=True),)


def define(experiment: Experiment, known: Mapping[str, Workload]) -> dict[str, Definition]:
    """The workloads of ``experiment`` that are ``known``, as its report will need them."""

    def metrics(workload: Workload) -> tuple[Metric, ...]:
        if isinstance(experiment.plan, plans.Leaks):
            return LEAK_METRICS
        exact = experiment.mode == "exact"
        if exact:
            return exact_metrics(workload.part, workload.parts_per_op, experiment.machine.smp)
        return workload.metrics

    named = [known[case.workload] for case in experiment.cases if case.workload in known]
    return {
        one.name: Definition(metrics=metrics(one), floor_percent=one.floor_percent, exact_label=one.exact_label)
        for one in named
    }


def here(folders: Iterable[str]) -> dict[str, Workload]:
    """The workloads that kdelta ships, and those of ``folders`` that are still there."""
    return workloads.catalogue(tuple(path for path in map(Path, folders) if path.exists()))


def of(experiment: Experiment) -> Mapping[str, Definition]:
    """The definitions of the workloads of ``experiment``, by name."""
    folders = () if experiment.imported else experiment.folders  # no bundle says what is read here
    return experiment.definitions or define(experiment, here(folders))


def metrics_of(experiment: Experiment) -> dict[str, tuple[Metric, ...]]:
    """The metrics of each workload of ``experiment``, by its name."""
    return {name: one.metrics for name, one in of(experiment).items()}
