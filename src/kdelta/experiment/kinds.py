# SPDX-License-Identifier: GPL-2.0-or-later
"""How the boots of an experiment work, by its kind: measuring, tracing, or counting in locks."""

from __future__ import annotations

from collections.abc import Mapping

from kdelta import paths
from kdelta.attribution.exact import Names
from kdelta.experiment import hold, trace
from kdelta.experiment.known import NamesOf
from kdelta.experiment.measure import Measuring, measuring
from kdelta.machine import plugin
from kdelta.model import Experiment, plans
from kdelta.spec.workloads import Workload

Kind = Measuring | trace.Tracing | hold.Holding


def counting(experiment: Experiment, workloads: Mapping[str, Workload], names: NamesOf | None = None) -> Measuring:
    """Boots that count instructions; by address where no ``names`` are given.

    Raises:
        HostError: no compiler.
    """
    return measuring(experiment, workloads, names or (lambda _: Names()), plugin.build(paths.cache_dir()))


def kind_of(experiment: Experiment, workloads: Mapping[str, Workload], names: NamesOf) -> Kind:
    """Its pair of functions: what a boot does, and how its runs are read. Counts need the plugin, compiled now if new.

    Raises:
        HostError: no compiler.
    """
    exact = experiment.mode == "exact"
    measured = counting(experiment, workloads, names) if exact else measuring(experiment, workloads, names, plugin=None)
    if not isinstance(experiment.plan, plans.Trace):
        return measured
    if experiment.plan.sets:
        return trace.tracing(measured, workloads)
    return hold.holding(measured)
