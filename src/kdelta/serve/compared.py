# SPDX-License-Identifier: GPL-2.0-or-later
"""Two kernels of any two experiments side by side: figures only, because boots that shared no block share no
conditions. A verdict needs ``kdelta compare``. Pure.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from kdelta.model import Experiment
from kdelta.store.rows import ExperimentRow, Number
from kdelta.units import Better, counted

Name = tuple[str, str, str]  # case, mitigations, metric


class Figure(Struct, frozen=True):
    """A kernel's figure in one experiment: the median over its boots that were ok."""

    value: float
    boots: int
    unit: str
    better: Better


class Line(Struct, frozen=True, kw_only=True):
    """One case and metric on both; ``change_percent`` is of the second relative to the first."""

    case: str
    mitigations: str
    metric: str
    first: Figure
    second: Figure
    change_percent: float | None


def homes(rows: Iterable[ExperimentRow]) -> dict[str, tuple[str, ...]]:
    """Kernel label -> the experiments that have it, the newest first; labels sorted."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        for label in dict.fromkeys(row.kernels):
            found[label].append(row.id)
    return {label: tuple(found[label]) for label in sorted(found)}


def figures(experiment: Experiment, numbers: Iterable[Number], kernel: int) -> dict[Name, Figure]:
    """What was measured of one kernel of an experiment."""
    values: dict[Name, list[Number]] = defaultdict(list)
    for number in numbers:
        if number.kernel == kernel and number.value is not None and number.boot_state == number.state == "ok":
            values[experiment.cases[number.case].name, number.mitigations, number.metric].append(number)
    return {
        name: Figure(statistics.median(n.value or 0.0 for n in found), len(found), found[0].unit, found[0].better)
        for name, found in values.items()
    }


def lines(first: dict[Name, Figure], second: dict[Name, Figure]) -> tuple[Line, ...]:
    """What both have, in the order of the first."""
    return tuple(
        Line(
            case=name[0],
            mitigations=name[1],
            metric=name[2],
            first=a,
            second=second[name],
            change_percent=100 * (second[name].value / a.value - 1) if a.value else None,
        )
        for name, a in first.items()
        if name in second and second[name].unit == a.unit
    )


def unlike(first: Experiment, second: Experiment) -> tuple[str, ...]:
    """Where two experiments measured on other guests, or otherwise: what of their difference is no kernel's."""

    def cpus(one: Experiment) -> str:
        return f"{counted(one.machine.smp, 'CPU')}{', booted cold' if one.machine.cold else ''}"

    asked = (
        (first.mode, second.mode),
        (cpus(first), cpus(second)),
        (f"{first.machine.memory_mib} MiB", f"{second.machine.memory_mib} MiB"),
        *((f"{key} {first.host.get(key, '?')}", f"{key} {second.host.get(key, '?')}") for key in ("qemu", "cpu")),
    )
    return tuple(f"{a} in the first, {b} in the second" for a, b in asked if a != b)
