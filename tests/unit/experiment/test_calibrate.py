# SPDX-License-Identifier: GPL-2.0-or-later
"""The end of a calibration: what is blessed is stored as a floor, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from kdelta.errors import HostError
from kdelta.experiment import calibrate
from kdelta.model import BootResult, Case, Definition, Experiment, Metric, PlannedBoot, RunResult, Series, plans
from kdelta.results import floors
from kdelta.store.store import Store
from unit.store.store_builders import experiment

TIME = Metric(name="ns_per_op", unit="ns", better="lower", source="window:ns_per_op", primary=True)


def now() -> datetime:
    return datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def measured(store: Store, effect: float, blocks: int = 40) -> Experiment:
    """Identical kernels whose second label differs by ``effect``, in balanced order."""
    known = {"pipe": Definition(metrics=(TIME,))}
    made = experiment(plan=plans.Calibrate(), cases=(Case(workload="pipe"),), blocks=blocks, definitions=known)
    store.create(made)
    rng = np.random.default_rng(3)
    for block in range(blocks):
        for kernel in range(2):
            value = 500.0 * float(np.exp(rng.normal(effect * kernel, 0.01)))
            series = Series(metric="ns_per_op", unit="ns", better="lower", values=(value,) * 4)
            plan = PlannedBoot(block=block, slot=kernel ^ block % 2, kernel=kernel)
            runs = (RunResult(case=0, state="ok", series=(series,)),)
            store.save_boot(made.id, BootResult(plan=plan, state="ok", runs=runs, machine={"accel": "tcg"}))
    return made


def test_what_is_blessed_is_the_floor_of_the_next_experiment(store: Store) -> None:
    made = measured(store, 0.0)
    found = calibrate.conclude(store, made, now)
    assert found["pipe"].blessed
    assert floors.of(made, store) == {"pipe": found["pipe"].floor_percent}


def test_kernels_that_differ_though_they_are_the_same_bless_nothing(store: Store) -> None:
    made = measured(store, 0.03)
    assert not calibrate.conclude(store, made, now)["pipe"].blessed
    assert floors.of(made, store) == {}


def test_without_two_whole_blocks_it_says_where_to_look(store: Store) -> None:
    with pytest.raises(HostError, match="kdelta report first"):
        calibrate.conclude(store, measured(store, 0.0, blocks=1), now)
