# SPDX-License-Identifier: GPL-2.0-or-later
"""Noise floors: what an A/A experiment said of this host, and whether it still holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import to_builtins

from kdelta.model import Experiment
from kdelta.results import definitions
from kdelta.stats import calibration as arrays
from kdelta.store.rows import BootRow, Floor, Number
from kdelta.store.store import Store


def host_key(experiment: Experiment) -> str:
    """What makes a host the same host: its CPU model, its number of CPUs, its kernel."""
    return " | ".join(experiment.host.get(key, "?") for key in ("cpu", "cpus", "kernel"))


def machine_kind(experiment: Experiment, machine: Mapping[str, str]) -> str:
    """The kind of machine that boots run on: native, a machine of a lab, or accelerator and shape of the guests."""
    if experiment.machine.lab:
        inside = ", installed system" if experiment.machine.in_system else ""
        return f"machine {experiment.machine.lab_name}{inside}"
    accel = machine.get("accel", "?")
    if accel == "native":
        return accel
    return f"{accel} smp={experiment.machine.smp} memory={experiment.machine.memory_mib}"


def _machine_of(boots: Sequence[BootRow]) -> dict[str, str]:
    """Accelerator and QEMU as the first boots name them."""
    accel = next((b.machine["accel"] for b in boots if "accel" in b.machine), "?")
    return {"accel": accel, "qemu": next((b.machine.get("qemu", "") for b in boots), "")}


def is_stale(floor: Floor, qemu_version: str, tool_version: str) -> str:
    """Why ``floor`` no longer holds, or ""."""
    if floor.qemu_version != qemu_version:
        return f"QEMU changed from {floor.qemu_version or 'none'} to {qemu_version or 'none'}"
    if floor.tool_version != tool_version:
        return f"kdelta changed from {floor.tool_version} to {tool_version}"
    return ""


def calibrated(experiment: Experiment, machine: Mapping[str, str], store: Store) -> dict[str, float]:
    """Floors in percent by case that were calibrated on this host and kind of ``machine`` and are not stale."""
    found = store.floors(host_key(experiment), machine_kind(experiment, machine))
    qemu = machine.get("qemu", "")
    fresh = {case: f for case, f in found.items() if not is_stale(f, qemu, experiment.tool_version)}
    return {case: floor.floor_percent for case, floor in fresh.items()}


def of(experiment: Experiment, store: Store) -> dict[str, float]:
    """The floors of a timed experiment: as found when it began, in stores before revision 0004 as they are now."""
    stored = experiment.annotations.floors_percent
    return calibrated(experiment, _machine_of(store.boots(experiment.id)), store) if stored is None else stored


def calibrate(experiment: Experiment, store: Store, rng: np.random.Generator) -> dict[str, arrays.Calibration]:
    """What an A/A experiment of two labels says, by case; see stats.calibration."""
    numbers = [n for n in store.numbers(experiment.id) if n.value is not None and n.boot_state == "ok"]
    found = {}
    metrics = definitions.metrics_of(experiment)
    for index, case in enumerate(experiment.cases):
        primary = next((metric.name for metric in metrics.get(case.workload, ()) if metric.primary), "")
        mine = [n for n in numbers if n.case == index and n.metric == primary]
        if pairs := _pairs(mine):
            sample = [
                np.array(row.values)[~np.array(row.warm, dtype=bool)]
                for row in store.samples(experiment.id, index, primary)
            ]
            found[case.name] = arrays.calibrate(*pairs, sample, rng)
    return found


def _pairs(numbers: Sequence[Number]) -> tuple[np.ndarray, np.ndarray] | None:
    """(log differences of label B - A per block, whether A came first per block), complete blocks only."""
    by_block: dict[int, dict[int, Number]] = {}
    for number in numbers:
        by_block.setdefault(number.block, {})[number.kernel] = number
    whole = [cells for _, cells in sorted(by_block.items()) if cells.keys() >= {0, 1}]
    if len(whole) < 2:
        return None
    differences = np.array([np.log(c[1].value or np.nan) - np.log(c[0].value or np.nan) for c in whole])
    return differences, np.array([c[0].slot < c[1].slot for c in whole])


def floors(
    experiment: Experiment, boots: Sequence[BootRow], found: dict[str, arrays.Calibration], created_at: str
) -> list[Floor]:
    """The blessed calibrations as floors to store."""
    machine = _machine_of(boots)
    return [
        Floor(
            host=host_key(experiment),
            machine_kind=machine_kind(experiment, machine),
            case=case,
            floor_percent=one.floor_percent,
            created_at=created_at,
            qemu_version=machine["qemu"],
            tool_version=experiment.tool_version,
            payload=to_builtins(one),
        )
        for case, one in found.items()
        if one.blessed
    ]
