# SPDX-License-Identifier: GPL-2.0-or-later
"""Scaling curves: throughput and efficiency over the number of tasks, from the facts of stored timed runs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from kdelta.errors import UserError
from kdelta.model import Case, Experiment, Metric
from kdelta.results import definitions
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import TASK_KNOBS, Workload
from kdelta.store.store import Store

_TASK = re.compile(r"^task\d+_ops_per_s$")
_RANGE = re.compile(r"^(\d+)\.\.(\d+)$")
MOST_TASKS = 1024
_NS_PER_S = 1e9


class Point(Struct, frozen=True, kw_only=True):
    """One kernel at one number of tasks; None where no boot measured it.

    ``ops_per_s``: of all tasks, the median over boots. ``efficiency``: throughput per task relative to the fewest
    tasks. ``least`` and ``most``: slowest and fastest task relative to the mean one.
    """

    kernel: str
    case: str
    tasks: int
    ops_per_s: float | None
    efficiency: float | None = None
    least: float | None = None
    most: float | None = None
    boots: int = 0
    why: str = ""


def task_counts(text: str) -> tuple[int, ...]:
    """``1..4`` or ``1,2,4,8`` -> ascending numbers of tasks.

    Raises:
        UserError: neither, or out of 1..1024.
    """
    return numbers(text, "--tasks", "tasks", MOST_TASKS)


def numbers(text: str, option: str, what: str, most: int) -> tuple[int, ...]:
    """``1..4`` or ``1,2,4,8`` of ``option`` -> ascending numbers of ``what``.

    Raises:
        UserError: neither, or out of 1..``most``.
    """
    found: set[int] = set()
    for piece in text.split(","):
        if match := _RANGE.match(piece.strip()):
            first, last = int(match[1]), min(int(match[2]), most + 1)
            found |= set(range(first, last + 1))
        elif piece.strip().isascii() and piece.strip().isdigit():
            found.add(int(piece))
        else:
            found.add(0)
    if not found or min(found) < 1 or max(found) > most:
        raise UserError(f"{option} {text!r}: give numbers of {what} in 1..{most}, as 1..4 or 1,2,4,8")
    return tuple(sorted(found))


def grid(text: str, tasks: Iterable[int], catalogue: Mapping[str, Workload]) -> list[Case]:
    """The cases of ``text`` at each number of tasks.

    Raises:
        UserError: the workload has one task only, or ``text`` sets the number itself.
    """
    plain = parse_case(text, catalogue)
    workload = catalogue[plain[0].workload]
    knob = next((k for k in TASK_KNOBS if k in workload.params), None)
    if knob is None or not workload.multi_task:
        raise UserError(f"case {text!r}: {workload.name} has only one task; scaling needs a workload with several")
    if re.search(rf"[:,]\s*{knob}\s*=", text):
        raise UserError(f"case {text!r}: --tasks sets {knob}=; leave it out")
    joint = "," if ":" in text else ":"
    return parse_case(f"{text}{joint}{knob}={'|'.join(map(str, tasks))}", catalogue)


def _rates(facts: Mapping[str, float]) -> list[float]:
    return [value for name, value in facts.items() if _TASK.match(name)]


def _throughputs(experiment: Experiment, store: Store) -> dict[tuple[int, int], list[float]]:
    """Operations a second of all tasks, by kernel and case: of each healthy boot the median of its windows.

    What the tasks did in all their time holds every moment in which the host was busy elsewhere: of a loaded one that
    was a third of what the report of the same experiment said.
    """
    metrics = definitions.metrics_of(experiment)
    wanted = {index: _window(metrics.get(case.workload, ())) for index, case in enumerate(experiment.cases)}
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    for number in store.numbers(experiment.id):
        name, what, parts = wanted[number.case]
        if number.metric == name and number.boot_state == number.state == "ok" and number.value:
            rate = number.value / parts if what == "ops_per_s" else _NS_PER_S / (number.value * parts)
            found[number.kernel, number.case].append(rate)
    return found


def _window(metrics: Iterable[Metric]) -> tuple[str, str, int]:
    """(The metric of windows that tells the throughput, what it is, parts of an operation); "" where there is none."""
    for metric in metrics:
        kind, _, rest = metric.source.partition(":")
        what, _, parts = rest.partition("/")
        if kind == "window" and what in ("ops_per_s", "ns_per_op"):
            return metric.name, what, int(parts or 1)
    return "", "", 1


def points(experiment: Experiment, store: Store) -> tuple[Point, ...]:
    """Every curve of an experiment: by case without its number of tasks, then kernel, then tasks."""
    runs: dict[tuple[int, int], list[list[float]]] = defaultdict(list)
    healthy = {(boot.block, boot.slot) for boot in store.boots(experiment.id) if boot.state == "ok"}
    states = {(n.kernel, n.case): (n.state, n.why) for n in store.numbers(experiment.id) if n.state != "ok"}
    for row in store.facts(experiment.id):
        if (row.block, row.slot) in healthy and (rates := _rates(row.facts)):
            runs[row.kernel, row.case].append(rates)
    throughputs = _throughputs(experiment, store)
    found: list[Point] = []
    for kernel, label in enumerate(k.label for k in experiment.kernels):
        base: dict[str, float] = {}  # per task, at the fewest tasks
        for index, (name, tasks) in sorted(enumerate(map(_place, experiment.cases)), key=lambda one: one[1]):
            measured = runs.get((kernel, index), [])
            state, why = states.get((kernel, index), ("lost", "not run"))
            totals = throughputs.get((kernel, index)) or [sum(rates) for rates in measured]
            found.append(_point(label, name, tasks, measured, totals, base, f"{state}: {why}"))
    return tuple(sorted(found, key=lambda p: (p.case, [k.label for k in experiment.kernels].index(p.kernel), p.tasks)))


def without(case: Case, knob: str) -> str:
    """The case's name without one of its knobs."""
    return re.sub(rf"([:,]){knob}=\d+(,|(?= )|$)", lambda m: m[1] if m[2] == "," else "", case.name)


def _place(case: Case) -> tuple[str, int]:
    """(The case's name without its number of tasks, that number)."""
    knob = next(k for k in TASK_KNOBS if k in case.params)
    return without(case, knob), int(case.params[knob])


def _point(
    kernel: str,
    case: str,
    tasks: int,
    runs: list[list[float]],
    totals: list[float],
    base: dict[str, float],
    why: str,
) -> Point:
    if not runs:
        return Point(kernel=kernel, case=case, tasks=tasks, ops_per_s=None, why=why)
    total = float(np.median(totals))
    per_task = total / tasks
    base.setdefault(case, per_task)
    return Point(
        kernel=kernel,
        case=case,
        tasks=tasks,
        ops_per_s=total,
        efficiency=per_task / base[case],
        least=float(np.median([min(rates) / np.mean(rates) for rates in runs])),
        most=float(np.median([max(rates) / np.mean(rates) for rates in runs])),
        boots=len(runs),
    )
