# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report can draw: points, distributions, scaling, other tools' readings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.model import Case, CellResult, Experiment
from kdelta.results import answer, detail
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment, kernel, run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def filled(store: Store, asked: Experiment, blocks: int = 2) -> Experiment:
    store.create(asked)
    for block in range(blocks):
        for slot in range(len(asked.kernels)):
            runs = (run(0, 500.0 + slot, histograms={}), run(1, 900.0, histograms={}))
            store.save_boot(asked.id, boot(block, slot, runs=runs))
    return asked


def test_every_boot_that_was_ok_is_a_point(store: Store) -> None:
    asked = filled(store, experiment())
    store.save_boot(asked.id, boot(2, 0, state="panicked", runs=(run(0, 1.0, histograms={}),)))
    first = detail.points(asked, store.numbers(asked.id))[0]
    assert first.cell.case == "pidfd_open" and first.unit == "ns"
    assert [(p.block, p.kernel, p.value) for p in first.points] == [
        (0, 0, 502.0), (0, 1, 503.0), (1, 0, 502.0), (1, 1, 503.0),
    ]  # fmt: skip


def test_how_the_machine_was_as_each_boot_found_it_is_told_beside_what_was_set(store: Store) -> None:
    asked = experiment(host={"cpu": "c", "smt": "off (set)"})
    store.create(asked)
    for slot, governor in enumerate(("schedutil", "performance")):
        facts = {"governor": governor, "smt": "off", "temperature_c": 40.0 + slot}
        store.save_boot(asked.id, boot(0, slot, facts=facts, runs=(run(histograms={}),)))
    told = answer.result(store, asked.id)[0].experiment.host
    assert (told["governor"], told["smt"], told["cpu"]) == ("performance, schedutil", "off (set)", "c")
    assert told["temperature"] == "40 to 41 degrees C" and "turbo" not in told


@pytest.mark.parametrize("kernels", [1, 2])
def test_other_tools_read_the_same_samples_where_two_kernels_are_compared(store: Store, kernels: int) -> None:
    asked = experiment(kernels=tuple(kernel(label) for label in ("6.12", "7.0")[:kernels]))
    filled(store, asked)
    for view in ("kbest", "lkp", "fastpath", "benchstat"):
        (legacy,) = answer.result(store, asked.id, views=(view,))[1].legacy
        assert legacy.name == view and bool(legacy.lines) is (kernels == 2)


def row(tasks: int, value: float, **more: object) -> CellResult:
    fields: dict[str, object] = {
        "case": f"pipe:writers={tasks}", "params": {"writers": str(tasks), "message": "64"}, "cgroup": "root",
        "mitigations": "default", "metric": "throughput", "unit": "MB/s", "better": "higher", "primary": True,
        "baseline_label": "a", "patched_label": "b", "baseline": value, "patched": 2 * value, "effect_percent": 100.0,
        "interval_percent": None, "verdict": None, "state": "ok", **more,
    }  # fmt: skip
    return CellResult(**fields)  # type: ignore[arg-type]


def test_cases_that_differ_in_the_number_of_tasks_alone_are_a_curve() -> None:
    asked = experiment(cases=(Case(workload="pipe"),))
    rows = [row(1, 10.0), row(4, 30.0), row(2, 20.0), row(8, 1.0, params={"writers": "8", "message": "4096"})]
    (curve,) = detail.scaling(asked, rows)
    assert {line.kernel: line.points for line in curve.lines} == {
        "a": ((1, 10.0), (2, 20.0), (4, 30.0)), "b": ((1, 20.0), (2, 40.0), (4, 60.0)),
    }  # fmt: skip
    assert detail.scaling(asked, [replace(one, state="lost") for one in rows]) == ()
