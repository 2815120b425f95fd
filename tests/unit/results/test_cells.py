# SPDX-License-Identifier: GPL-2.0-or-later
"""The store's numbers as the verdict engine takes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.model import Case, Definition, MachineOptions, Metric
from kdelta.results import cells, definitions
from kdelta.spec import workloads
from kdelta.store.rows import BootRow, Number
from kdelta.store.store import Store
from kdelta.verdict import CellData
from unit.store.store_builders import boot, experiment

TIME = Metric(name="ns_per_op", unit="ns", better="lower", source="window:ns_per_op", primary=True)
P99 = Metric(name="p99", unit="ns", better="lower", source="hist:latency:p99")
MADE = experiment(cases=(Case(workload="pipe"),), definitions={"pipe": Definition(metrics=(TIME,), floor_percent=3.0)})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def number(**more: Any) -> Number:
    fields: dict[str, Any] = {
        "block": 0, "slot": 1, "kernel": 1, "mitigations": "default", "boot_state": "ok", "case": 0, "state": "ok",
        "why": "", "metric": "ns_per_op", "unit": "ns", "better": "lower", "value": 500.0, "samples": 160,
        "spread_percent": 1.0,
    }  # fmt: skip
    return Number(**{**fields, **more})


def data(*numbers: Number) -> list[CellData]:
    boots = [BootRow(block=0, slot=1, kernel=1, mitigations="default", cases=(0,), state="ok",
                     facts={"steal_percent": 7.0, "governor": "performance"})]  # fmt: skip
    return cells.cell_data(MADE, numbers, boots, {"pipe": (TIME, P99)}, {})


def test_a_figure_comes_with_its_place_and_the_facts_of_its_boot() -> None:
    (cell,) = data(number())
    (seen,) = cell.boots
    assert (cell.case, cell.kernel, cell.metric) == (0, 1, "ns_per_op")
    assert (seen.block, seen.slot, seen.value, seen.samples, seen.state) == (0, 1, 500.0, 160, "ok")
    assert seen.facts == {"steal_percent": 7.0}, "words are no figures"


def test_a_run_without_figures_stands_in_every_metric_of_its_case() -> None:
    found = data(number(metric="", value=None, state="unsupported", why="no pidfd"))
    assert {cell.metric for cell in found} == {"ns_per_op", "p99"}
    assert {(cell.boots[0].state, cell.boots[0].why) for cell in found} == {("unsupported", "no pidfd")}


@pytest.mark.parametrize(
    ("specs", "state"),
    [
        (("src:debian:7.3", "src:debian:7.3+a.patch"), "failed"),
        (("src:.@v7.3", "src:.@mine"), "failed"),
        (("src:debian:7.3+s.mbox#1", "src:debian:7.3+s.mbox#2"), "failed"),
        (("src:debian:7.3", 'src:debian:7.3+a.patch,config="EVENTFD=n"'), "unsupported"),
        (("debian:7.3", "debian:7.3/cloud"), "unsupported"),
    ],
)
def test_what_a_patch_takes_away_from_a_case_is_no_lack_of_its_kernel(specs: tuple[str, str], state: str) -> None:
    """eventfd(2) of a patched kernel failed with EPERM: "unsupported", which no gate closes at."""
    kernels = tuple(replace(one, spec=spec, release="7.3.4") for one, spec in zip(MADE.kernels, specs, strict=True))
    lacking = number(metric="", value=None, state="unsupported", why="needs CONFIG_EVENTFD")
    both = [number(kernel=0, slot=0), lacking]
    made = replace(MADE, kernels=kernels)
    seen = {cell.kernel: cell.boots[0] for cell in cells.cell_data(made, both, [], {"pipe": (TIME,)}, {})}
    assert (seen[0].state, seen[1].state) == ("ok", state)
    assert seen[1].why == "needs CONFIG_EVENTFD" + ("; the baseline has it" if state == "failed" else "")
    newer = replace(made, kernels=(kernels[0], replace(kernels[1], release="7.4.0")))
    alone = [
        cells.cell_data(newer, both, [], {"pipe": (TIME,)}, {}),
        cells.cell_data(made, [lacking], [], {"pipe": (TIME,)}, {}),
    ]
    assert [cell.boots[0].state for found in alone for cell in found if cell.kernel] == ["unsupported"] * 2


def test_a_run_in_a_boot_that_panicked_later_counts_for_nothing() -> None:
    (cell,) = data(number(boot_state="panicked"))
    assert (cell.boots[0].value, cell.boots[0].state) == (None, "panicked")


def test_a_percentile_is_of_as_many_samples_as_its_histogram_has(store: Store) -> None:
    (cell,) = cells.cell_data(MADE, [number(metric="p99")], [], {"pipe": (P99,)}, {(0, 1, 0): {"latency_count": 40.0}})
    assert cell.boots[0].samples == 40


def test_counts_have_the_floor_of_their_workload_and_times_that_of_the_host(store: Store) -> None:
    assert cells.floors_of(replace(MADE, mode="exact"), store) == {"pipe": 3.0}
    timed = replace(MADE, annotations=replace(MADE.annotations, floors_percent={"pipe": 9.0}))
    assert cells.floors_of(timed, store) == {"pipe": 9.0}


def test_verdicts_come_from_numbers_alone(store: Store) -> None:
    made_of_eight = replace(MADE, blocks=8)
    store.create(made_of_eight)
    for block in range(8):
        for slot in range(2):
            made = boot(block, slot, base=500.0 + block + 50.0 * slot)
            store.save_boot(MADE.id, replace(made, runs=made.runs[:1]))
    (row,) = cells.judged(made_of_eight, store, store.numbers(MADE.id))
    assert row.verdict == "regressed" and row.effect_percent == pytest.approx(10.0, abs=0.3)


def test_what_crosses_between_cpus_has_a_floor_of_its_own(store: Store) -> None:
    several = experiment(mode="exact", cases=(Case(workload="pipe"),), machine=MachineOptions(smp=8), definitions={})
    known = workloads.catalogue(())
    eight = replace(several, definitions=definitions.define(several, known))
    floor = known["pipe"].floor_percent
    wanted = {"pipe": floor, "pipe/transfers": 10.0, "pipe/waits": 10.0, "pipe/retries": 10.0}
    assert cells.floors_of(eight, store) == wanted
    one = replace(eight, machine=MachineOptions(), definitions={})
    one = replace(one, definitions=definitions.define(one, known))
    assert cells.floors_of(one, store) == {"pipe": floor}


def test_equal_kernels_whose_transfers_differ_by_chance_are_the_same(store: Store) -> None:
    several = experiment(mode="exact", cases=(Case(workload="pipe"),), machine=MachineOptions(smp=8), definitions={})
    made = replace(several, definitions=definitions.define(several, workloads.catalogue(())), blocks=8, looks=(5, 8))
    store.create(made)
    by_seed = (100.0, 104.0, 97.0, 101.0, 99.0, 103.0, 98.0, 100.0)
    numbers = [
        number(metric="transfers", block=block, slot=kernel, kernel=kernel, value=value * (1.03 if kernel else 1.0))
        for block, value in enumerate(by_seed)
        for kernel in (0, 1)
    ]
    (row,) = (row for row in cells.judged(made, store, numbers) if row.metric == "transfers" and row.patched_label)
    assert (row.verdict, [type(one).__name__ for one in row.warnings if "Floor" in type(one).__name__]) == (
        "same", ["WithinFloor"],
    )  # fmt: skip
