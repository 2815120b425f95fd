# SPDX-License-Identifier: GPL-2.0-or-later
"""What the workloads of an experiment were when it was made: stored with it, in older stores what they are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from kdelta.attribution.exact import exact_metrics
from kdelta.errors import UserError
from kdelta.model import Case, Definition, Experiment, Metric, Mode, plans
from kdelta.spec import workloads
from kdelta.spec.workloads import Workload
from kdelta.verdict.work import INSTRUCTIONS

# Of what crosses between CPUs: which objects share a line hangs on where memory lies. Each seed has a memory of its own
# (guest/init_scatter.c), but where the kernel's variables lie is the image's, and all seeds share that.
MOVED_FLOOR_PERCENT = 10.0
# Where they share all of it: identical kernels with other command lines (4 CPUs, 12 seeds, ten cases) were up to
# 12.2 % apart, with bounds at 19.4 %.
_SHARED_FLOOR_PERCENT = 20.0
# What makes a run of the leak check whole; the counts themselves are facts of the run (results/leaks.py).
LEAK_METRICS = (Metric(name="batches", unit="", better="higher", source="value:leak_batches", primary=True),)

PMU_WINDOWS = 8  # of each of two rounds of counters
PMU_ERRNO = "pmu_errno"  # of a run without counters: why perf_event_open(2) gave none (guest/harness_pmu.c)
_PMU_KINDS = ("instructions", "cycles", "cache_misses", "branch_misses")


def pmu_metrics(part: str = "", parts_per_op: int = 1) -> tuple[Metric, ...]:
    """What the CPU's own counters say of an operation, or of a ``part`` of it, in kernel and in user mode."""
    return tuple(
        Metric(
            name=f"pmu_{mode}_{kind}",
            unit=f"{kind.replace('_', ' ')}/{part or 'op'}",
            better="lower",
            source=f"value:pmu_{mode}_{kind}/{parts_per_op}",
            help=f"{kind.replace('_', ' ')} in {mode} mode, by the CPU's own counter",
        )
        for kind in _PMU_KINDS
        for mode in ("kernel", "user")
    )


def define(experiment: Experiment, known: Mapping[str, Workload]) -> dict[str, Definition]:
    """The workloads of ``experiment`` that are ``known``, as its report will need them."""

    def metrics(workload: Workload) -> tuple[Metric, ...]:
        if isinstance(experiment.plan, plans.Leaks):
            return LEAK_METRICS
        found = of_mode(workload, experiment.mode, experiment.machine.smp)
        if experiment.mode == "timed" and experiment.effort.pmu_windows:
            found += pmu_metrics(workload.part, workload.parts_per_op)
        return found

    named = [known[case.workload] for case in experiment.cases if case.workload in known]
    defined = {
        one.name: Definition(
            metrics=metrics(one),
            floor_percent=one.floor_percent,
            exact_label=one.exact_label,
            one_task=not (one.multi_task or one.every_cpu),
        )
        for one in named
    }
    return booted_now(experiment, defined)


def booted_now(experiment: Experiment, defined: Mapping[str, Definition]) -> dict[str, Definition]:
    """``defined``, as boots are made now: what an experiment of before says of its own is not true of new ones."""
    several = experiment.mode == "exact" and experiment.machine.smp > 1
    floor = MOVED_FLOOR_PERCENT if several else 0.0
    return {name: replace(one, moved_floor_percent=floor, booted_seeds=several) for name, one in defined.items()}


def as_booted_now(experiment: Experiment) -> Experiment:
    """``experiment``, all of whose boots are made anew."""
    return replace(experiment, definitions=booted_now(experiment, experiment.definitions))


def of_mode(workload: Workload, mode: Mode, cpus: int = 1) -> tuple[Metric, ...]:
    """The metrics that ``workload`` has in ``mode``, in a guest of ``cpus``."""
    if mode != "exact":
        return workload.metrics
    ops = workload.exact_ops
    return exact_metrics(workload.part, workload.parts_per_op, cpus, endless=workload.endless, ops=ops)


def metric_named(metrics: Sequence[Metric], name: str | None, mode: Mode) -> Metric:
    """The primary one of ``metrics``, or the one called ``name``.

    Raises:
        UserError: there is none of that name.
    """
    found = next((m for m in metrics if (m.primary if name is None else m.name == name)), None)
    if found is None:
        names = ", ".join(metric.name for metric in metrics)
        raise UserError(f"--metric {name!r}: the case has no such {mode} metric; it has {names}")
    return found


def here(folders: Iterable[str]) -> dict[str, Workload]:
    """The workloads that kdelta ships, and those of ``folders`` that are still there."""
    return workloads.catalogue(tuple(path for path in map(Path, folders) if path.exists()))


def of(experiment: Experiment) -> Mapping[str, Definition]:
    """The definitions of the workloads of ``experiment``, by name."""
    folders = () if experiment.imported else experiment.folders  # no bundle says what is read here
    if experiment.definitions:
        return experiment.definitions
    known = {  # such stores are older than boots of seeds, and than floors that nobody says
        name: one if one.floor_said else replace(one, floor_percent=0.0) for name, one in here(folders).items()
    }
    defined = define(experiment, known)
    several = experiment.mode == "exact" and experiment.machine.smp > 1
    floor = _SHARED_FLOOR_PERCENT if several else 0.0
    return {name: replace(one, moved_floor_percent=floor, booted_seeds=False) for name, one in defined.items()}


def booted_seeds(experiment: Experiment) -> bool:
    """Whether each seed had a boot of its own: where memory lies and which CPU a task runs on differs among them."""
    return any(one.booted_seeds for one in experiment.definitions.values())


def line_floor_percent(experiment: Experiment) -> float:
    """The noise floor of a single line that moves between CPUs."""
    return MOVED_FLOOR_PERCENT if booted_seeds(experiment) else _SHARED_FLOOR_PERCENT


def metrics_of(experiment: Experiment) -> dict[str, tuple[Metric, ...]]:
    """The metrics of each workload of ``experiment``, by its name."""
    return {name: one.metrics for name, one in of(experiment).items()}


def unit_of_counts(experiment: Experiment, case: Case) -> str:
    """The unit of the instructions of ``case``, as in "instructions/lookup"; "" where its workload is not known."""
    metrics = metrics_of(experiment).get(case.workload, ())
    return next((metric.unit for metric in metrics if metric.name == INSTRUCTIONS), "")


def stored_metric(experiment: Experiment, name: str) -> Metric:
    """The metric called ``name`` of the first case of ``experiment``.

    Raises:
        UserError: its workload is not known any more, or has no such metric.
    """
    workload = experiment.cases[0].workload
    metrics = metrics_of(experiment).get(workload)
    if metrics is None:
        raise UserError(f"the workload {workload!r} of experiment {experiment.id} was not found")
    return metric_named(metrics, name, experiment.mode)
