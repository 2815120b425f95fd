# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells to judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from kdelta.model import Case, CellResult, Experiment, Kernel, Metric, plans
from kdelta.verdict import CellData, Observation, judge

PLAN = (8, 12, 16, 20)
TIME = Metric(name="latency", unit="ns", better="lower", source="window:ns_per_op", primary=True)
RATE = Metric(name="rate", unit="ops/s", better="higher", source="window:ops_per_s", primary=True)
P99 = Metric(name="p99", unit="ns", better="lower", source="hist:latency:p99", primary=True)
COUNT = Metric(name="instructions", unit="instructions", better="lower", primary=True)
SWAPPED = {"improved": "regressed", "regressed": "improved", "same": "same", "inconclusive": "inconclusive"}


def kernel(label: str) -> Kernel:
    return Kernel(label=label, spec=label, release="6.12", image_path="/k", image_sha256="0")


def experiment(
    *, mode: Literal["timed", "exact"] = "timed", kernels: int = 2, cases: int = 1, looks: tuple[int, ...] = PLAN,
    blocks: int = 20, **more: float,
) -> Experiment:  # fmt: skip
    return Experiment(
        id="e", mode=mode, kernels=tuple(kernel("abc"[i]) for i in range(kernels)), blocks=blocks, looks=looks,
        cases=tuple(Case(workload="pipe", params={"n": str(i)}, label=f"pipe{i}") for i in range(cases)),
        plan=plans.Compare(), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def boots(values: Sequence[float], kernel: int = 0, samples: int = 100) -> tuple[Observation, ...]:
    return tuple(
        Observation(block=i, slot=(i + kernel) % 2, value=float(v), samples=samples) for i, v in enumerate(values)
    )


def cell(values: Sequence[float], kernel: int, metric: Metric = TIME, case: int = 0, samples: int = 100) -> CellData:
    return CellData(case=case, metric=metric.name, kernel=kernel, boots=boots(values, kernel, samples))


def noisy(n: int, effect: float = 0.0, sd: float = 0.01, seed: int = 0) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    drift = np.linspace(0, 0.02, n)
    a, b = rng.normal(0, sd, n) + drift, rng.normal(0, sd, n) + drift + np.log1p(effect)
    return (1000 * np.exp(a)).tolist(), (1000 * np.exp(b)).tolist()


def one(
    a: Sequence[float], b: Sequence[float], metric: Metric = TIME, floor: float | None = None, **options: object
) -> CellResult:
    samples = int(options.pop("samples", 100))  # type: ignore[call-overload]
    data = [cell(a, 0, metric, samples=samples), cell(b, 1, metric, samples=samples)]
    floors = {} if floor is None else {"pipe0": floor}
    (result,) = judge(experiment(**options), data, floors, {"pipe": (metric,)})  # type: ignore[arg-type]
    return result


def codes(result: CellResult) -> set[str]:
    return {warning.code for warning in result.warnings}


def exact_one(a: Sequence[float], b: Sequence[float], **options: object) -> CellResult:
    return one(a, b, **{"metric": COUNT, "mode": "exact", "looks": (5, 8, 12, 16, 20), **options})  # type: ignore[arg-type]
